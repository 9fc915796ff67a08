/* Sends one infrared message from PD3, to the cycle, and does not lose a serial byte meanwhile.
 *
 * Same frame as a robot's (see kilolib/transmit.S), without carrier sense. Interrupts are off;
 * instead the receiver of the USART is looked at once per bit slot (270 cycles; a byte takes 2080),
 * in the same number of cycles whether a byte is there or not.
 *
 *   X message   Y place in serial_fifo   r19/r21 PORTD without/with light
 *   r31:r30 bits to send   r24 bytes left   r25 slots left
 */
#include <avr/io.h>

#define IO(reg) _SFR_IO_ADDR(reg)
#define MEM(reg) _SFR_MEM_ADDR(reg)
#define IR_BIT 3

    .macro wait cycles              ; 6..767; leaves the carry flag alone
    ldi  r18, (\cycles) / 3
1:  dec  r18
    brne 1b
    .rept (\cycles) % 3
    nop
    .endr
    .endm

    .macro look_at_serial           ; 11 cycles
    lds  r18, MEM(UCSR0A)
    sbrs r18, RXC0
    rjmp 1f
    lds  r18, MEM(UDR0)
    st   Y, r18
    inc  r28
    rjmp 2f
1:  wait 6
2:
    .endm

    .section .bss
    .balign 256
    .global serial_fifo
serial_fifo:
    .skip 256
    .global serial_in
serial_in:
    .skip 1

    .section .text.ohc_send,"ax",@progbits

    .global ohc_send
ohc_send:
    push r28
    push r29
    in   r22, IO(SREG)
    cli
    lds  r28, serial_in
    ldi  r29, hi8(serial_fifo)
    movw r26, r24
    in   r19, IO(PORTD)
    mov  r21, r19
    ori  r21, 1 << IR_BIT
    out  IO(PORTD), r21             ; light from cycle 0 on
    wait 8
    out  IO(PORTD), r19             ; 8
    ldi  r24, 9                     ; 9
gap:                                ; 9 rounds of 265: 10..2393 (the last is one shorter)
    look_at_serial                  ; 11
    wait 251
    dec  r24
    brne gap
    wait 25                         ; 2394..2418
    out  IO(PORTD), r21             ; 2419: light from 2420 on
    wait 8
    out  IO(PORTD), r19             ; 2428
    look_at_serial                  ; 2429..2439
    wait 252                        ; 2440..2691
    ldi  r24, 12                    ; 2692
    rjmp next_byte                  ; 2693, 2694

slot:                               ; carry = bit to send; 270 cycles per round
    mov  r18, r19                   ; 0
    brcc 3f                         ; 1
    mov  r18, r21                   ; 2
3:  out  IO(PORTD), r18             ; 3
    wait 8                          ; 4
    out  IO(PORTD), r19             ; 12
    look_at_serial                  ; 13..23
    wait 241                        ; 24..264
    lsr  r31                        ; 265
    ror  r30                        ; 266
    dec  r25                        ; 267
    brne slot                       ; 268, 269
    nop                             ; byte pitch: 10*270 + 12
    nop
    nop
    nop
    dec  r24
    breq sent
next_byte:
    ld   r30, X+                    ; eight bits, then the stop bit
    ldi  r31, 1
    ldi  r25, 10
    sec                             ; the start bit
    rjmp slot

sent:
    sts  serial_in, r28
    out  IO(SREG), r22
    pop  r29
    pop  r28
    ret
