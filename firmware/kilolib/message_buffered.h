/* Messages through ring buffers, for programs that do not want callbacks of their own: 16 messages
 * that have arrived, 4 that wait to be sent. When a ring is full its oldest message gives way.
 *
 *     buffered_init();                    in main, after kilo_init: takes the three callbacks
 *     buffered_receive(&msg, &dist)       the oldest message that has arrived, false if there is none
 *     buffered_send(&msg);                puts a message in line, with its checksum
 *
 * Everything is in this header: include it in one source file of a program.
 */
#ifndef MESSAGE_BUFFERED_H
#define MESSAGE_BUFFERED_H

#include <stdbool.h>
#include <util/atomic.h>

#include "kilolib.h"

#define BUFFERED_RX 16
#define BUFFERED_TX 4

/* Counters of messages put in and taken out; they wrap, their difference does not mind. */
static volatile unsigned int buffered_rx_in, buffered_rx_out;
static volatile unsigned int buffered_tx_in, buffered_tx_out;

static struct {
    message_t msg;
    distance_measurement_t dist;
} buffered_rx[BUFFERED_RX];
static message_t buffered_tx[BUFFERED_TX];

static void buffered_arrived(message_t *msg, distance_measurement_t *dist)
{
    unsigned int place = buffered_rx_in % BUFFERED_RX;
    buffered_rx[place].msg = *msg;
    buffered_rx[place].dist = *dist;
    buffered_rx_in++;
    if (buffered_rx_in - buffered_rx_out > BUFFERED_RX) {
        buffered_rx_out++;
    }
}

static message_t *buffered_next(void)
{
    return buffered_tx_in == buffered_tx_out ? NULL : &buffered_tx[buffered_tx_out % BUFFERED_TX];
}

static void buffered_sent(void)
{
    buffered_tx_out++;
}

static inline void buffered_init(void)
{
    kilo_message_rx = buffered_arrived;
    kilo_message_tx = buffered_next;
    kilo_message_tx_success = buffered_sent;
}

/* Interrupts stay on while the message is copied, for the sake of the next one. Should it have given
 * way to a newer one meanwhile, the counter tells, and we take the next. */
static inline bool buffered_receive(message_t *msg, distance_measurement_t *dist)
{
    unsigned int in, out;
    bool taken = false;
    do {
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
            in = buffered_rx_in;
            out = buffered_rx_out;
        }
        if (in == out) {
            return false;
        }
        *msg = buffered_rx[out % BUFFERED_RX].msg;
        *dist = buffered_rx[out % BUFFERED_RX].dist;
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
            if (buffered_rx_out == out) {
                buffered_rx_out++;
                taken = true;
            }
        }
    } while (!taken);
    return true;
}

/* The oldest goes before its place is written, and the new one counts only when it is complete: the
 * tick may send at any moment. */
static inline void buffered_send(const message_t *msg)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        if (buffered_tx_in - buffered_tx_out == BUFFERED_TX) {
            buffered_tx_out++;
        }
    }
    message_t *place = &buffered_tx[buffered_tx_in % BUFFERED_TX];
    *place = *msg;
    place->crc = message_crc(place);
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) {
        buffered_tx_in++;
    }
}

#endif
