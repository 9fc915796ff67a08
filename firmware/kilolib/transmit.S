/* Ticks and infrared transmitter.
 *
 * Timer0 runs freely at clk/1024. Its compare A (255) is the tick, every 262144 cycles. A collision
 * sets compare B to a random count for one more try; ticks and their spacing are not touched by
 * that.
 *
 * Frame, in cycles from the first rising edge (interrupts are off throughout):
 *
 *          0  first pulse (all pulses are 9 cycles)
 *    +533 ..  235 looks at the comparator, 8 cycles apart, the last at +2405: light from someone
 *             else ends the attempt
 *      +2420  second pulse
 *      +2706  byte 0: start bit, 8 data bits low first, stop bit, 270 cycles apart
 *      +5418  byte 1: bytes are 2712 apart
 *     +34968  last stop bit
 */
#include <avr/io.h>
#include "hardware.h"

#define IO(reg) _SFR_IO_ADDR(reg)
#define MEM(reg) _SFR_MEM_ADDR(reg)

/* Waits exactly `cycles` (1..767), using r18 where a loop pays. Leaves the carry flag alone. */
    .macro wait cycles
    .if \cycles >= 6
    ldi  r18, (\cycles) / 3
1:  dec  r18
    brne 1b
    .rept (\cycles) % 3
    nop
    .endr
    .else
    .rept \cycles
    nop
    .endr
    .endif
    .endm

    .section .bss
    .global kilo_tx_clock
kilo_tx_clock:
    .skip 2                         ; 255 per tick since the last message

    .section .text.kilo_tick,"ax",@progbits

    .global TIMER0_COMPA_vect
TIMER0_COMPA_vect:
    push r24
    in   r24, IO(SREG)
    push r24
    push r25

    lds  r24, kilo_ticks            ; kilo_ticks++
    inc  r24
    sts  kilo_ticks, r24
    brne 1f
    lds  r24, kilo_ticks+1
    inc  r24
    sts  kilo_ticks+1, r24
    brne 1f
    lds  r24, kilo_ticks+2
    inc  r24
    sts  kilo_ticks+2, r24
    brne 1f
    lds  r24, kilo_ticks+3
    inc  r24
    sts  kilo_ticks+3, r24
1:
    lds  r24, kilo_tx_clock         ; kilo_tx_clock += 255, not beyond 65535
    lds  r25, kilo_tx_clock+1
    subi r24, lo8(-255)
    sbci r25, hi8(-255)
    brcs 2f
    ldi  r24, 0xFF
    ldi  r25, 0xFF
2:  sts  kilo_tx_clock, r24
    sts  kilo_tx_clock+1, r25

    push r26                        ; due?
    lds  r26, kilo_tx_period
    cp   r26, r24
    lds  r26, kilo_tx_period+1
    cpc  r26, r25
    brcc no_transmission
    lds  r24, MEM(TIMSK0)           ; a second try is already set
    sbrc r24, OCIE0B
    rjmp no_transmission

try_to_transmit:
    lds  r24, kilo_state
    cpi  r24, RUNNING
    brne no_transmission
    in   r24, IO(RX_FLAGS)
    cpi  r24, RX_IDLE
    brne no_transmission
    push r0
    push r1
    push r18
    push r19
    push r20
    push r21
    push r22
    push r23
    push r27
    push r30
    push r31
    eor  r1, r1
    call kilo_transmit
    pop  r31
    pop  r30
    pop  r27
    pop  r23
    pop  r22
    pop  r21
    pop  r20
    pop  r19
    pop  r18
    pop  r1
    pop  r0
no_transmission:
    pop  r26
    pop  r25
    pop  r24
    out  IO(SREG), r24
    pop  r24
    reti

    .global TIMER0_COMPB_vect
TIMER0_COMPB_vect:
    push r24
    in   r24, IO(SREG)
    push r24
    push r25
    push r26
    ldi  r24, 1 << OCIE0A
    sts  MEM(TIMSK0), r24
    rjmp try_to_transmit

/* uint8_t kilo_message_send(const message_t *): 0 sent, 1 somebody talked into it, 2 somebody had
 * just begun. Must be called with interrupts off.
 *   X message   r19/r21 PORTB without/with light   r20 DDRB before
 *   r31:r30 bits to send   r24 bytes left   r25 slots left */
    .section .text.kilo_message_send,"ax",@progbits

    .global kilo_message_send
kilo_message_send:
    movw r26, r24
    lds  r22, kilo_tx_mask
    in   r19, IO(PORTB)
    mov  r21, r19
    or   r21, r22
    in   r20, IO(DDRB)
    mov  r23, r20
    or   r23, r22
    out  IO(DDRB), r23              ; driven low
    in   r18, IO(ACSR)
    sbrc r18, COMPARATOR_BIT_ACI    ; a first pulse since the tick began: listen, do not spoil it
    rjmp just_begun
    out  IO(PORTB), r21             ; light from cycle 0 on
    wait 8                          ; 0..7
    out  IO(PORTB), r19             ; 8: dark from 9 on
    wait 516                        ; 9..524
    in   r18, IO(ACSR)              ; 525: forget our own echo; the next is not ours
    ori  r18, 1 << COMPARATOR_BIT_ACI ; 526
    out  IO(ACSR), r18              ; 527
    ldi  r24, 235                   ; 528
    wait 4                          ; 529..532
sense:
    in   r18, IO(ACSR)              ; 533 + 8*i
    sbrc r18, COMPARATOR_BIT_ACO
    rjmp collision
    nop
    nop
    dec  r24
    brne sense                      ; leaves at 2412
    wait 7                          ; 2412..2418
    out  IO(PORTB), r21             ; 2419: light from 2420 on
    wait 8
    out  IO(PORTB), r19             ; 2428
    wait 263                        ; 2429..2691
    ldi  r24, 12                    ; 2692
    rjmp next_byte                  ; 2693, 2694; its out is at 2705: light from 2706 on

slot:                               ; carry = bit to send; 270 cycles per round
    mov  r18, r19                   ; 0
    brcc 1f                         ; 1
    mov  r18, r21                   ; 2
1:  out  IO(PORTB), r18             ; 3
    wait 8                          ; 4
    out  IO(PORTB), r19             ; 12
    wait 252                        ; 13
    lsr  r31                        ; 265
    ror  r30                        ; 266
    dec  r25                        ; 267
    brne slot                       ; 268, 269
    wait 4                          ; byte pitch: 10*270 + 12
    dec  r24
    breq sent
next_byte:
    ld   r30, X+                    ; eight bits, then the stop bit
    ldi  r31, 1
    ldi  r25, 10
    sec                             ; the start bit
    rjmp slot

sent:
    in   r18, IO(ACSR)              ; our own echo
    ori  r18, 1 << COMPARATOR_BIT_ACI
    out  IO(ACSR), r18
    out  IO(DDRB), r20
    ldi  r24, 0
    ret

collision:
    out  IO(DDRB), r20
    ldi  r24, 1
    ret

just_begun:
    out  IO(DDRB), r20
    ldi  r24, 2
    ret
