#include <util/crc16.h>

#include "message_crc.h"

uint16_t message_crc(const message_t *msg)
{
    const uint8_t *byte = (const uint8_t *)msg;
    const uint8_t *end = byte + sizeof(msg->data) + sizeof(msg->type);
    uint16_t crc = 0xFFFF;
    do {
        crc = _crc_ccitt_update(crc, *byte++);
    } while (byte != end);
    return crc;
}
