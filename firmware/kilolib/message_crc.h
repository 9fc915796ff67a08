/* Checksum of a message: CRC-16, polynomial x^16+x^12+x^5+1 reflected (0x8408), start 0xFFFF,
 * over data[0..8] and type. Put it into msg.crc before the message is sent. */
#ifndef MESSAGE_CRC_H
#define MESSAGE_CRC_H

#include "message.h"

#ifdef __cplusplus
extern "C" {
#endif

uint16_t message_crc(const message_t *msg);

#ifdef __cplusplus
}
#endif

#endif
