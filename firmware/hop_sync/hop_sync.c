/* Time, handed on from robot to robot. Robot 0 has the time; every message says what time it is and
 * how many hops away from robot 0 it was sent. Whoever hears one from fewer hops away takes over its
 * time, a hop further. How wrong a robot's time is depends on how far its clock runs away between
 * two messages, and adds up along a chain: `avrswarm timing hop_sync --sync` measures it.
 *
 * What one should see: blue flashes once a second, along a line of robots almost together.
 */
#include <avr/io.h>
#include <kilolib.h>

#define FAR 255
#define PERIOD 7812 /* time units of 128 us: 1.0 s */

/* From the sender's look at its clock to the receiver's: 35520 cycles, 34.7 units. Both looks lose
 * the fraction of a unit, the sender's little (it looks right after a tick), the receiver's half a
 * unit on average: 34.3 would be right, so a third of a unit is lost at every hop. */
#define TRAVEL 34

message_t message;

/* What the study looks at. */
volatile int32_t sync_offset;
volatile uint8_t sync_hops = FAR;

/* The robot's own clock, in units of 128 us; interrupts must be off. */
static uint32_t own_time(void)
{
    uint8_t count = TCNT0;
    uint32_t ticks = kilo_ticks;
    if ((TIFR0 & _BV(OCF0A)) && count < 128) {
        ticks++; /* the tick has come but waits for its interrupt */
    }
    return ticks << 8 | count;
}

message_t *message_tx(void)
{
    if (sync_hops == FAR) {
        return NULL;
    }
    uint32_t now = own_time() + sync_offset;
    message.data[0] = sync_hops;
    message.data[1] = now;
    message.data[2] = now >> 8;
    message.data[3] = now >> 16;
    message.data[4] = now >> 24;
    message.crc = message_crc(&message);
    return &message;
}

void message_rx(message_t *msg, distance_measurement_t *dist)
{
    (void)dist;
    if (msg->data[0] >= sync_hops) {
        return;
    }
    uint32_t sent = msg->data[1] | (uint16_t)msg->data[2] << 8 | (uint32_t)msg->data[3] << 16
                    | (uint32_t)msg->data[4] << 24;
    sync_offset = sent + TRAVEL - own_time();
    if (msg->data[0] + 1 < sync_hops) {
        sync_hops = msg->data[0] + 1;
    }
}

void setup(void)
{
    message.type = NORMAL;
    if (kilo_uid == 0) {
        sync_hops = 0;
    }
}

void loop(void)
{
    uint8_t sreg = SREG;
    asm volatile("cli" ::: "memory");
    uint32_t now = own_time() + sync_offset;
    SREG = sreg;
    set_color(sync_hops != FAR && now % PERIOD < PERIOD / 10 ? RGB(0, 0, 3) : RGB(0, 0, 0));
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_message_rx = message_rx;
    kilo_start(setup, loop);
    return 0;
}
