/* Bootloader: takes a new program through infrared messages and writes it into flash.
 *
 * Lives at byte address 0x7000 (boot section of 2048 words) with its own interrupt table; never
 * transmits. It is entered by a BOOT message in the application (a jump to 0x7000, or a run through
 * erased flash from below it), or by reset if the chip is so fused or if there is no application.
 *
 * A page of 64 words comes in 22 messages BOOTPGM_PAGE: page number, word offset (0, 3, ... 63),
 * three words. BOOTPGM_SIZE tells how many pages there are. A page is written when all 22 have been
 * heard without another page in between; the controller repeats the whole program until it is
 * stopped, so what was missed comes again.
 *
 * What one should see: a short blue flash every second while waiting, dim blue while pages arrive,
 * green after each page written; when all are written the new program starts (green blinks of the
 * idle state). A command other than BOOT starts the old program as long as nothing has been
 * written.
 */
#include <avr/boot.h>
#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/wdt.h>
#include <string.h>
#include <util/delay.h>

#include "hardware.h"
#include "message.h"
#include "message_crc.h"

#define WORDS_PER_PAGE (SPM_PAGESIZE / 2)
#define WORDS_PER_MESSAGE 3
#define PIECES ((WORDS_PER_PAGE + WORDS_PER_MESSAGE - 1) / WORDS_PER_MESSAGE)
#define APPLICATION_PAGES (BOOTLOADER_START / SPM_PAGESIZE)
#define DEFAULT_PAGES 220
#define NO_PAGE 0xFF

extern message_t kilo_rx_message; /* receive.S */
void kilo_message_arrived(void);

static uint8_t pages_wanted;
static volatile uint8_t pages_written;
static uint8_t page_is_written[APPLICATION_PAGES];

/* The page in hand. */
static volatile uint8_t page = NO_PAGE;
static uint16_t page_words[WORDS_PER_PAGE];
static uint8_t piece_is_here[PIECES];
static uint8_t pieces;

static void led(uint8_t green, uint8_t blue)
{
    uint8_t ddr = 0; /* port C has nothing but LED segments */
    if (green & 1) ddr |= _BV(GREEN_LOW_BIT);
    if (green & 2) ddr |= _BV(GREEN_HIGH_BIT);
    if (blue & 1) ddr |= _BV(BLUE_LOW_BIT);
    if (blue & 2) ddr |= _BV(BLUE_HIGH_BIT);
    DDRC = ddr;
}

static void forget_progress(void)
{
    pages_wanted = DEFAULT_PAGES;
    pages_written = 0;
    memset(page_is_written, 0, sizeof(page_is_written));
    page = NO_PAGE;
}

static uint8_t nothing_yet(void)
{
    return page == NO_PAGE && pages_written == 0;
}

/* Interrupts stay off: the application's start-up does the rest. */
static void start_application(void)
{
    cli();
    ACSR = _BV(ACI);
    TCCR1B = 0;
    TIMSK1 = 0;
    DDRC = 0;
    MCUCR = _BV(IVCE);
    MCUCR = 0;
    asm volatile("jmp 0");
}

static void finish_if_complete(void)
{
    if (pages_written >= pages_wanted) {
        start_application();
    }
}

static void write_page(void)
{
    uint16_t address = page * (uint16_t)SPM_PAGESIZE;
    eeprom_busy_wait();
    boot_page_erase(address);
    boot_spm_busy_wait();
    for (uint8_t i = 0; i < WORDS_PER_PAGE; i++) {
        boot_page_fill(address + 2 * i, page_words[i]);
    }
    boot_page_write(address);
    boot_spm_busy_wait();
    boot_rww_enable();
    page_is_written[page] = 1;
    pages_written++;
}

static void take_piece(const uint8_t *data)
{
    uint8_t number = data[0];
    uint8_t offset = data[1];
    uint8_t piece = offset / WORDS_PER_MESSAGE;
    led(0, 1);
    if (number >= APPLICATION_PAGES || page_is_written[number]) {
        return; /* the bootloader never writes over itself */
    }
    if (piece >= PIECES || piece * WORDS_PER_MESSAGE != offset) {
        return;
    }
    if (number != page) {
        page = number;
        pieces = 0;
        memset(piece_is_here, 0, sizeof(piece_is_here));
    }
    for (uint8_t i = 0; i < WORDS_PER_MESSAGE && offset + i < WORDS_PER_PAGE; i++) {
        page_words[offset + i] = data[2 + 2 * i] | (uint16_t)data[3 + 2 * i] << 8;
    }
    if (!piece_is_here[piece]) {
        piece_is_here[piece] = 1;
        pieces++;
    }
    if (pieces == PIECES) {
        write_page();
        led(3, 0);
        finish_if_complete();
    }
}

/* Called by the comparator interrupt after the twelfth byte. */
void kilo_message_arrived(void)
{
    const message_t *msg = &kilo_rx_message;
    if (message_crc(msg) != msg->crc) {
        return;
    }
    switch (msg->type) {
    case BOOT:
        forget_progress();
        break;
    case BOOTPGM_SIZE:
        if (msg->data[0] != 0) {
            pages_wanted = msg->data[0] < APPLICATION_PAGES ? msg->data[0] : APPLICATION_PAGES;
            finish_if_complete();
        }
        break;
    case BOOTPGM_PAGE:
        take_piece(msg->data);
        break;
    default:
        if (msg->type >= BOOT && pages_written == 0) { /* talk between robots does not count */
            start_application();
        }
    }
}

/* Runs before main: the watchdog may still be on. */
void watchdog_off(void) __attribute__((naked, used, section(".init3")));
void watchdog_off(void)
{
    MCUSR = 0;
    wdt_disable();
}

int main(void)
{
    /* Whatever the application had switched on, switch it off. */
    TIMSK0 = 0;
    TIMSK2 = 0;
    UCSR0B = 0;
    SPCR = 0;
    TWCR = 0;
    EIMSK = 0;
    PCICR = 0;
    ADCSRA = _BV(ADIF);
    DDRB = 0;
    DDRC = 0;
    DDRD = _BV(ANALOG_SUPPLY_BIT);
    PORTB = 0;
    PORTC = 0;
    PORTD = _BV(ANALOG_SUPPLY_BIT);

    uint8_t osccal = eeprom_read_byte((const uint8_t *)EEPROM_OSCCAL);
    if (osccal != 0xFF) {
        OSCCAL = osccal;
    }
    forget_progress();

    TCCR1A = 0;
    TCCR1B = 0;
    OCR1A = RX_TIMEOUT;
    TIFR1 = _BV(OCF1A);
    TIMSK1 = _BV(OCIE1A);
    RX_FLAGS = RX_IDLE;
    DIDR1 = _BV(AIN1D) | _BV(AIN0D);
    ADMUX = CHANNEL_HIGH_GAIN;
    ACSR = COMPARATOR_ON;
    MCUCR = _BV(IVCE);
    MCUCR = _BV(IVSEL);
    sei();

    for (;;) {
        if (nothing_yet()) {
            led(0, 3);
        }
        _delay_ms(5);
        if (nothing_yet()) {
            led(0, 0);
        }
        _delay_ms(1000);
    }
}
