/* Overhead controller: takes packets from a PC on the serial line and sends infrared messages to
 * all robots below.
 *
 * Standard board: ATmega328P at 8 MHz, infrared LEDs on PD3, indicator LED on PB1, serial 38400 8N1
 * on RXD. Runs from 0x0000.
 *
 * A packet is 132 bytes: 0x55, type, 129 bytes of payload, and a checksum that makes the XOR of all
 * 132 zero.
 *
 *   type                payload                            action
 *   0 STOP                                                 ends a repetition
 *   1 LEDTOGGLE                                            toggles the indicator
 *   2 FORWARDMSG        data[9], message type              sends it again and again, 10.4 ms apart
 *   3 FORWARDRAWMSG     complete message with its CRC      the same, CRC as given
 *   4 BOOTPAGE          page number, 128 bytes             22 messages BOOTPGM_PAGE, once
 *   5 GPSFRAME          up to 16 records of 8 bytes        a GPS message each, up to a zero one
 *   6 FORWARDMSGSINGLE  as 2                               sends it once
 *
 * What one should see: five blinks of the indicator at power-on, then a flicker at each repeated
 * message.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/wdt.h>
#include <string.h>
#include <util/delay.h>

#include "message.h"
#include "message_crc.h"

#define PACKET_SIZE 132
#define PACKET_HEADER 0x55
#define PAGE_SIZE 128
#define WORDS_PER_PAGE 64
#define WORDS_PER_MESSAGE 3
#define GPS_RECORDS 16
#define GPS_RECORD_SIZE 8

#define IR_BIT 3  /* PD3 */
#define LED_BIT 1 /* PB1 */

enum { STOP, LEDTOGGLE, FORWARDMSG, FORWARDRAWMSG, BOOTPAGE, GPSFRAME, FORWARDMSGSINGLE };

/* send.S: sends with interrupts off and puts serial bytes that arrive meanwhile into serial_fifo
 * itself. */
void ohc_send(const message_t *msg);
extern uint8_t serial_fifo[256];
extern volatile uint8_t serial_in;

static uint8_t serial_out;

ISR(USART_RX_vect)
{
    serial_fifo[serial_in] = UDR0;
    serial_in++;
}

/* ---- packets ---- */

static uint8_t window[PACKET_SIZE]; /* the last 132 bytes, as a ring */
static uint8_t window_next;         /* place of the oldest, which the next byte takes */
static uint8_t window_fill;         /* bytes since the last packet */
static uint8_t window_xor;

static uint8_t packet[PACKET_SIZE];
static uint8_t packet_is_new;

/* A packet is there when the oldest byte is the header and the XOR is zero; so a lost byte costs
 * one packet at most. */
static void take_byte(uint8_t byte)
{
    window_xor ^= window[window_next] ^ byte;
    window[window_next] = byte;
    if (++window_next == PACKET_SIZE) {
        window_next = 0;
    }
    if (window_fill < PACKET_SIZE) {
        window_fill++;
    }
    if (window_fill == PACKET_SIZE && window[window_next] == PACKET_HEADER && window_xor == 0) {
        uint8_t older = PACKET_SIZE - window_next;
        memcpy(packet, window + window_next, older);
        memcpy(packet + older, window, window_next);
        packet_is_new = 1;
        window_fill = 0;
    }
}

static void look_at_serial(void)
{
    while (serial_out != serial_in) {
        take_byte(serial_fifo[serial_out++]);
    }
}

/* Waits 200 ms and takes what comes in meanwhile; of several packets the last one counts. */
static void wait_and_listen(void)
{
    for (uint8_t i = 0; i < 20; i++) {
        _delay_ms(10);
        look_at_serial();
    }
}

/* ---- messages ---- */

static message_t message;
static uint8_t repeating;
static uint8_t page_bytes[3 * 44]; /* 22 messages of 6 bytes: a page, and zeros behind it */

static void led_on(void)
{
    PORTB |= _BV(LED_BIT);
}

static void led_off(void)
{
    PORTB &= ~_BV(LED_BIT);
}

static void send(void)
{
    message.crc = message_crc(&message);
    ohc_send(&message);
}

static void send_page(void)
{
    uint8_t number = packet[2];
    memcpy(page_bytes, packet + 3, PAGE_SIZE); /* the next packet may arrive while this goes out */
    led_on();
    for (uint8_t offset = 0; offset < WORDS_PER_PAGE; offset += WORDS_PER_MESSAGE) {
        message.type = BOOTPGM_PAGE;
        message.data[0] = number;
        message.data[1] = offset;
        memcpy(message.data + 2, page_bytes + 2 * offset, 2 * WORDS_PER_MESSAGE);
        message.data[8] = 0;
        send();
        look_at_serial();
        _delay_us(20); /* receivers need their time for what has just ended */
    }
    _delay_ms(10);
    led_off();
    _delay_ms(10);
}

static void send_positions(void)
{
    static uint8_t records[GPS_RECORDS * GPS_RECORD_SIZE];
    memcpy(records, packet + 2, sizeof(records));
    for (uint8_t i = 0; i < GPS_RECORDS; i++) {
        const uint8_t *record = records + i * GPS_RECORD_SIZE;
        uint8_t any = 0;
        for (uint8_t j = 0; j < GPS_RECORD_SIZE; j++) {
            any |= record[j];
        }
        if (!any) {
            break;
        }
        message.type = GPS;
        memcpy(message.data, record, GPS_RECORD_SIZE);
        message.data[8] = 0;
        send();
        look_at_serial();
        _delay_us(50);
    }
}

static void obey(void)
{
    packet_is_new = 0;
    repeating = 0;
    switch (packet[1]) {
    case LEDTOGGLE:
        PINB = _BV(LED_BIT);
        break;
    case FORWARDMSG:
    case FORWARDMSGSINGLE:
        memcpy(message.data, packet + 2, sizeof(message.data));
        message.type = packet[11];
        message.crc = message_crc(&message);
        if (packet[1] == FORWARDMSG) {
            repeating = 1;
        } else {
            ohc_send(&message);
        }
        break;
    case FORWARDRAWMSG:
        memcpy(&message, packet + 2, sizeof(message));
        repeating = 1;
        break;
    case BOOTPAGE:
        send_page();
        break;
    case GPSFRAME:
        send_positions();
        break;
    }
}

int main(void)
{
    MCUSR = 0;
    wdt_disable();
    ACSR = _BV(ACD);
    DDRB = _BV(LED_BIT);
    DDRD = _BV(IR_BIT);
    UBRR0 = 12; /* 38462 baud */
    UCSR0B = _BV(RXEN0) | _BV(RXCIE0);
    UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
    sei();
    for (uint8_t i = 0; i < 5; i++) {
        led_on();
        wait_and_listen();
        led_off();
        wait_and_listen();
    }
    for (;;) {
        look_at_serial();
        if (packet_is_new) {
            obey();
        }
        if (repeating) {
            ohc_send(&message);
            led_on();
            _delay_ms(3);
            led_off();
            _delay_ms(3);
        }
    }
}
