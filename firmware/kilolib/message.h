/* Infrared message: what travels between robots, and from the overhead controller to robots.
 *
 * Twelve bytes, in memory and on the air in this order: data[0..8], type, CRC low byte, CRC high
 * byte. Each byte goes out least significant bit first.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types 0x00-0x7F belong to the user: they reach kilo_message_rx in every state.
 * Types from 0x80 on are commands to the library and never reach the user. */
typedef enum {
    NORMAL = 0x00,       /* message between robots */
    GPS = 0x01,          /* position record from an overhead tracker: id, x, y, theta */

    BOOT = 0x80,         /* enter the bootloader */
    BOOTPGM_PAGE = 0x81, /* bootloader: three words of a flash page */
    BOOTPGM_SIZE = 0x82, /* bootloader: number of pages */
    RESET = 0x83,        /* restart the program from the beginning */
    SLEEP = 0x84,        /* power-down, looking up every eight seconds */
    WAKEUP = 0x85,       /* pause: back to idle */
    CHARGE = 0x86,       /* show whether the charger is working */
    VOLTAGE = 0x87,      /* show the battery voltage as a colour */
    RUN = 0x88,          /* call setup (once per reset), then loop for ever */
    READUID = 0x89,      /* data[0] = bit number: turn left if that bit of the id is 1 */
    CALIB = 0x8A         /* data[0] = one of the modes below */
} message_type_t;

/* Modes of a CALIB message (data[0]). */
typedef enum {
    CALIB_SAVE = 0,
    CALIB_UID = 1,
    CALIB_TURN_LEFT = 2,
    CALIB_TURN_RIGHT = 3,
    CALIB_STRAIGHT = 4
} calib_mode_t;

/* What data[] of a CALIB message holds. */
typedef struct __attribute__((packed)) {
    uint8_t mode;
    uint16_t uid;
    uint8_t turn_left;
    uint8_t turn_right;
    uint8_t straight_left;
    uint8_t straight_right;
    uint8_t unused[2];
} calibmsg_t;

typedef struct __attribute__((packed)) {
    uint8_t data[9];
    uint8_t type;
    uint16_t crc;
} message_t;

/* Amplitude of a message at the receiver, in ADC counts: low gain is taken at its second pulse,
 * high gain at its first. */
typedef struct __attribute__((packed)) {
    int16_t low_gain;
    int16_t high_gain;
} distance_measurement_t;

typedef void (*message_rx_t)(message_t *, distance_measurement_t *);
typedef message_t *(*message_tx_t)(void);
typedef void (*message_tx_success_t)(void);

#ifdef __cplusplus
}
#endif

#endif
