/* States, commands, start-up and the main loop. */
#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/sleep.h>
#include <avr/wdt.h>
#include <util/atomic.h>
#include <util/delay.h>

#include "private.h"

volatile uint32_t kilo_ticks;
uint16_t kilo_tx_period = 3906;
uint16_t kilo_uid;
uint8_t kilo_turn_left;
uint8_t kilo_turn_right;
uint8_t kilo_straight_left;
uint8_t kilo_straight_right;

volatile uint8_t kilo_state;
uint8_t kilo_tx_mask;

/* ---- callbacks ---- */

static void ignore_message(message_t *msg, distance_measurement_t *dist)
{
    (void)msg;
    (void)dist;
}

static message_t *no_message(void)
{
    return NULL;
}

static void ignore_success(void)
{
}

message_rx_t kilo_message_rx = ignore_message;
message_tx_t kilo_message_tx = no_message;
message_tx_success_t kilo_message_tx_success = ignore_success;

/* ---- motors and LED ---- */

static void motors_on(void)
{
    OCR2A = 0;
    OCR2B = 0;
    DDRB |= _BV(MOTOR_LEFT_BIT);
    DDRD |= _BV(MOTOR_RIGHT_BIT);
}

static void motors_off(void)
{
    DDRB &= ~_BV(MOTOR_LEFT_BIT);
    DDRD &= ~_BV(MOTOR_RIGHT_BIT);
    OCR2A = 0;
    OCR2B = 0;
}

void set_motors(uint8_t left, uint8_t right)
{
    OCR2A = left;
    OCR2B = right;
}

void spinup_motors(void)
{
    set_motors(255, 255);
    _delay_ms(15);
}

/* One bit at a time (SBI and CBI): an interrupt may switch the motor bits of the same ports. */
void set_color(uint8_t color)
{
    if (color & 0x01) DDRD |= _BV(RED_LOW_BIT); else DDRD &= ~_BV(RED_LOW_BIT);
    if (color & 0x02) DDRD |= _BV(RED_HIGH_BIT); else DDRD &= ~_BV(RED_HIGH_BIT);
    if (color & 0x04) DDRC |= _BV(GREEN_LOW_BIT); else DDRC &= ~_BV(GREEN_LOW_BIT);
    if (color & 0x08) DDRC |= _BV(GREEN_HIGH_BIT); else DDRC &= ~_BV(GREEN_HIGH_BIT);
    if (color & 0x10) DDRC |= _BV(BLUE_LOW_BIT); else DDRC &= ~_BV(BLUE_LOW_BIT);
    if (color & 0x20) DDRC |= _BV(BLUE_HIGH_BIT); else DDRC &= ~_BV(BLUE_HIGH_BIT);
}

/* 8006 cycles per millisecond, plus the interrupts that fall into it. */
void delay(uint16_t ms)
{
    if (ms == 0) {
        return;
    }
    do {
        _delay_loop_2(2000);
        asm volatile("nop\n\tnop");
    } while (--ms);
}

/* ---- sending ---- */

static uint16_t backoff_state;

/* Sixteen-bit xorshift, seeded with the robot's id, so that two robots that collided draw
 * different numbers. */
static uint8_t backoff_random(void)
{
    uint16_t x = backoff_state;
    x ^= x << 7;
    x ^= x >> 9;
    x ^= x << 8;
    backoff_state = x;
    return x;
}

void kilo_transmit(void)
{
    const message_t *msg = kilo_message_tx();
    if (msg == NULL) {
        return;
    }
    uint8_t outcome = kilo_message_send(msg);
    if (outcome == SENT) {
        kilo_tx_clock = 0;
        kilo_message_tx_success();
        return;
    }
    if (ACSR & _BV(ACI)) {
        RX_FLAGS |= _BV(RX_STALE); /* the pulse that stopped us has waited about a hundred cycles */
    }
    if (outcome == COLLISION) {
        OCR0B = backoff_random();
        TIFR0 = _BV(OCF0B);
        TIMSK0 = _BV(OCIE0A) | _BV(OCIE0B);
    }
}

/* ---- receiving ---- */

/* What the robot does in MOVING. */
static enum { STOP, TURN_LEFT, TURN_RIGHT, STRAIGHT, SAVE } motion;
static volatile uint8_t motion_is_new;

static void start_motion(uint8_t what)
{
    motion = what;
    motion_is_new = 1;
}

static void enter_moving(void)
{
    if (kilo_state != MOVING) {
        set_color(RGB(0, 0, 0));
        motors_on();
        start_motion(STOP);
        kilo_state = MOVING;
    }
}

/* Spins up again only if the motion or one of its values is another one than before. */
static void calibrate(const calibmsg_t *wanted)
{
    if (wanted->mode == CALIB_SAVE) {
        if (kilo_state == MOVING) {
            motors_off();
            start_motion(SAVE);
        }
        return;
    }
    enter_moving();
    switch (wanted->mode) {
    case CALIB_UID:
        kilo_uid = wanted->uid;
        if (motion != STOP) {
            start_motion(STOP);
        }
        break;
    case CALIB_TURN_LEFT:
        if (motion != TURN_LEFT || kilo_turn_left != wanted->turn_left) {
            kilo_turn_left = wanted->turn_left;
            start_motion(TURN_LEFT);
        }
        break;
    case CALIB_TURN_RIGHT:
        if (motion != TURN_RIGHT || kilo_turn_right != wanted->turn_right) {
            kilo_turn_right = wanted->turn_right;
            start_motion(TURN_RIGHT);
        }
        break;
    case CALIB_STRAIGHT:
        if (motion != STRAIGHT || kilo_straight_left != wanted->straight_left
            || kilo_straight_right != wanted->straight_right) {
            kilo_straight_left = wanted->straight_left;
            kilo_straight_right = wanted->straight_right;
            start_motion(STRAIGHT);
        }
        break;
    }
}

static void read_uid(uint8_t bit)
{
    enter_moving();
    uint8_t wanted = bit < 16 && (kilo_uid >> bit & 1) ? TURN_LEFT : STOP;
    if (motion != wanted) {
        start_motion(wanted);
    }
}

static void change_state(uint8_t state)
{
    motors_off();
    kilo_state = state;
}

static void obey(const message_t *msg)
{
    switch (msg->type) {
    case BOOT:
        motors_off();
        TIMSK0 = 0;
        asm volatile("jmp %0" :: "i"(BOOTLOADER_START));
        break;
    case RESET:
        motors_off();
        asm volatile("jmp 0");
        break;
    case SLEEP:
        change_state(SLEEPING);
        break;
    case WAKEUP:
        change_state(IDLE);
        break;
    case CHARGE:
        change_state(CHARGING);
        break;
    case VOLTAGE:
        change_state(BATTERY);
        break;
    case RUN:
        if (kilo_state != SETUP && kilo_state != RUNNING) {
            motors_on();
            kilo_state = SETUP;
        }
        break;
    case READUID:
        read_uid(msg->data[0]);
        break;
    case CALIB:
        calibrate((const calibmsg_t *)msg->data);
        break;
    }
}

void kilo_message_arrived(void)
{
    message_t *msg = &kilo_rx_message;
    if (message_crc(msg) != msg->crc) {
        return;
    }
    if (msg->type < BOOT) {
        kilo_message_rx(msg, &kilo_rx_distance);
    } else {
        obey(msg);
    }
}

/* ---- start-up ---- */

/* Runs before main: a watchdog left on by whoever ran before must not bite. */
void kilo_watchdog_off(void) __attribute__((naked, used, section(".init3")));
void kilo_watchdog_off(void)
{
    MCUSR = 0;
    wdt_disable();
}

static void ports_off(void)
{
    DDRB = 0;
    DDRC = 0;
    DDRD = 0;
    PORTB = 0;
    PORTC = 0;
    PORTD = 0;
}

static void analog_supply_on(void)
{
    DDRD |= _BV(ANALOG_SUPPLY_BIT);
    PORTD |= _BV(ANALOG_SUPPLY_BIT);
}

static void receiver_on(void)
{
    TCCR1B = 0;
    TIFR1 = _BV(OCF1A);
    RX_FLAGS = RX_IDLE;
    DIDR1 = _BV(AIN1D) | _BV(AIN0D);
    ACSR = COMPARATOR_ON;
}

static void arm_adc(void)
{
    ADMUX = CHANNEL_HIGH_GAIN;
    ADCSRB = ADC_FROM_COMPARATOR;
    ADCSRA = ADC_ARMED;
}

static inline uint8_t stored(uint16_t address)
{
    EEAR = address;
    EECR = _BV(EERE);
    return EEDR;
}

/* Tables are kept high byte first. */
static void read_table(uint16_t *table, uint16_t address)
{
    for (uint8_t i = 0; i < DISTANCE_POINTS; i++) {
        uint8_t high = stored(address++);
        table[i] = (uint16_t)high << 8 | stored(address++);
    }
}

static void read_eeprom(void)
{
    eeprom_busy_wait();
    uint8_t osccal = stored(EEPROM_OSCCAL);
    if (osccal != 0xFF) {
        OSCCAL = osccal;
    }
    kilo_uid = stored(EEPROM_UID) | (uint16_t)stored(EEPROM_UID + 1) << 8;
    kilo_turn_left = stored(EEPROM_TURN_LEFT);
    kilo_turn_right = stored(EEPROM_TURN_RIGHT);
    kilo_straight_left = stored(EEPROM_STRAIGHT_LEFT);
    kilo_straight_right = stored(EEPROM_STRAIGHT_RIGHT);
    kilo_tx_mask = stored(EEPROM_TX_MASK);
    if (kilo_tx_mask & ~IR_PINS) {
        kilo_tx_mask = 0x01;
    }
    read_table(kilo_low_gain_table, EEPROM_LOW_GAIN);
    read_table(kilo_high_gain_table, EEPROM_HIGH_GAIN);
}

void kilo_init(void)
{
    cli();
    ports_off();
    analog_supply_on();

    /* Ticks. The count is left alone, so robots that are reset together stay out of step. */
    TCCR0A = 0;
    OCR0A = TICK_TOP;
    TIMSK0 = _BV(OCIE0A);
    TCCR0B = _BV(CS02) | _BV(CS00);

    TCCR1A = 0; /* receive bit clock */
    OCR1A = RX_TIMEOUT;
    TIMSK1 = _BV(OCIE1A);

    OCR2A = 0; /* motors: phase-correct PWM, 1961 Hz */
    OCR2B = 0;
    TCCR2A = _BV(COM2A1) | _BV(COM2B1) | _BV(WGM20);
    TCCR2B = _BV(CS21);

    ADCSRB = 0;
    ADMUX = CHANNEL_BATTERY; /* the first conversion takes longer: now, not for a message */
    ADCSRA = _BV(ADEN) | _BV(ADSC) | ADC_CLOCK_8;
    read_eeprom();
    loop_until_bit_is_clear(ADCSRA, ADSC);
    arm_adc();
    receiver_on();

    backoff_state = kilo_uid ^ 0x6B1D;
    if (backoff_state == 0) {
        backoff_state = 1;
    }
    kilo_state = IDLE;
    sei();
}

/* ---- what the robot does in each state ---- */

ISR(WDT_vect)
{
    wdt_disable();
}

static void watchdog_in_8_s(void)
{
    wdt_reset();
    WDTCSR = _BV(WDCE) | _BV(WDE);
    WDTCSR = _BV(WDIE) | _BV(WDP3) | _BV(WDP0);
}

/* Eight seconds of power-down, then ten milliseconds of listening; a tenth of a second more if
 * there was light. */
static void sleep_and_look_up(void)
{
    cli();
    ACSR = _BV(ACI);
    TCCR1B = 0;
    RX_FLAGS = RX_IDLE;
    ADCSRA = 0;
    ports_off();
    watchdog_in_8_s();
    set_sleep_mode(SLEEP_MODE_PWR_DOWN);
    sleep_enable();
    sei();
    sleep_cpu();
    sleep_disable();

    analog_supply_on();
    arm_adc();
    _delay_us(300);
    ATOMIC_BLOCK(ATOMIC_FORCEON) {
        TCNT1 = 0; /* any pulse starts this timer */
        receiver_on();
    }
    set_color(RGB(3, 3, 3));
    _delay_ms(10);
    uint16_t clock;
    ATOMIC_BLOCK(ATOMIC_FORCEON) {
        clock = TCNT1;
    }
    if (kilo_state == SLEEPING && (clock != 0 || receiving())) {
        set_color(RGB(3, 0, 0));
        _delay_ms(100);
    }
    set_color(RGB(0, 0, 0));
}

/* 201.1 ms with the ticks that fall into it. */
static void blink(uint8_t color)
{
    set_color(color);
    _delay_ms(1);
    set_color(RGB(0, 0, 0));
    _delay_ms(200.05);
}

static void show_battery(void)
{
    int16_t voltage = get_voltage();
    if (voltage < 0) {
        return; /* a message is coming in: keep the colour */
    }
    if (voltage > 682) {
        set_color(RGB(0, 3, 0));
    } else if (voltage > 648) {
        set_color(RGB(0, 0, 3));
    } else if (voltage > 614) {
        set_color(RGB(3, 3, 0));
    } else {
        set_color(RGB(3, 0, 0));
    }
}

static void save_calibration(void)
{
    eeprom_update_byte((uint8_t *)EEPROM_UID, kilo_uid & 0xFF);
    eeprom_update_byte((uint8_t *)EEPROM_UID + 1, kilo_uid >> 8);
    eeprom_update_byte((uint8_t *)EEPROM_TURN_LEFT, kilo_turn_left);
    eeprom_update_byte((uint8_t *)EEPROM_TURN_RIGHT, kilo_turn_right);
    eeprom_update_byte((uint8_t *)EEPROM_STRAIGHT_LEFT, kilo_straight_left);
    eeprom_update_byte((uint8_t *)EEPROM_STRAIGHT_RIGHT, kilo_straight_right);
    ATOMIC_BLOCK(ATOMIC_FORCEON) {
        if (kilo_state == MOVING && motion == SAVE) {
            kilo_state = IDLE;
        }
    }
}

static void move(uint8_t left, uint8_t right)
{
    set_motors(left ? 255 : 0, right ? 255 : 0);
    _delay_ms(15);
    set_motors(left, right);
}

static void perform_motion(void)
{
    if (!motion_is_new) {
        return;
    }
    motion_is_new = 0;
    switch (motion) {
    case STOP:
        set_motors(0, 0);
        break;
    case TURN_LEFT:
        move(kilo_turn_left, 0);
        break;
    case TURN_RIGHT:
        move(0, kilo_turn_right);
        break;
    case STRAIGHT:
        move(kilo_straight_left, kilo_straight_right);
        break;
    case SAVE:
        save_calibration();
        break;
    }
}

void kilo_start(void (*setup)(void), void (*loop)(void))
{
    uint8_t was_set_up = 0;
    for (;;) {
        switch (kilo_state) {
        case SLEEPING:
            sleep_and_look_up();
            break;
        case IDLE:
            blink(RGB(0, 3, 0));
            break;
        case BATTERY:
            show_battery();
            break;
        case CHARGING:
            if (bit_is_clear(PIND, CHARGER_BIT)) {
                blink(RGB(1, 0, 0));
            } else {
                set_color(RGB(0, 0, 0));
            }
            break;
        case SETUP:
            if (!was_set_up) {
                setup();
                was_set_up = 1;
            }
            ATOMIC_BLOCK(ATOMIC_FORCEON) {
                if (kilo_state == SETUP) { /* not if a command came meanwhile */
                    kilo_state = RUNNING;
                }
            }
            break;
        case RUNNING:
            loop();
            break;
        case MOVING:
            perform_motion();
            break;
        }
    }
}
