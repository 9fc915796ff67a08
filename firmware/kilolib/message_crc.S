/* uint16_t message_crc(const message_t *msg): checksum of the first ten bytes, 155 cycles and 4
 * for the call.
 *
 * One byte b, with low and high byte of the checksum so far (all shifts in eight bits except where
 * two halves are named):
 *
 *     d = b ^ low;  d = d ^ (d << 4);  low' = high ^ (d >> 4) ^ (d << 3);  high' = d ^ (d >> 5)
 *
 * A multiplication by 16 or 8 gives the left shift in r0 and the right shift by 4 or 5 in r1. Low
 * and high change places with each byte, so bytes are taken in pairs.
 */
    .macro add_byte low high        ; 13 cycles; afterwards \high is the low byte
    ld   r18, Z+
    eor  \low, r18
    mul  \low, r19
    eor  \low, r0
    mul  \low, r19
    eor  \high, r1
    mul  \low, r20
    eor  \high, r0
    eor  \low, r1
    .endm

    .section .text.message_crc,"ax",@progbits

    .global message_crc
message_crc:
    movw r30, r24
    ldi  r24, 0xFF
    ldi  r25, 0xFF
    ldi  r19, 16
    ldi  r20, 8
    ldi  r21, 5
1:  add_byte r24 r25
    add_byte r25 r24
    dec  r21
    brne 1b
    eor  r1, r1
    ret
