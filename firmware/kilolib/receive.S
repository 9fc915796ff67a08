/* Infrared receiver: one interrupt per light pulse.
 *
 * A pulse is a one. Bits are told apart by the time since the start bit of their byte, kept by
 * Timer1 at clk/1. A message begins with a leading byte (start and stop bit only, 2420 cycles
 * apart), then twelve bytes of ten slots of 270 cycles follow. Transmitters differ by a few per
 * cent in clock, so a slot is wide:
 *
 *     a pulse D cycles after the start bit is bit k,  270*k + 135 <= D < 270*(k+1) + 135
 *     (k = 8 is the stop bit)
 *
 * Timer1 is zeroed START_DELAY cycles later in the interrupt than it is read, so it shows t = D -
 * START_DELAY, and bit k begins at t = 270*k + FIRST_EDGE. With t = 256*n + low that is low >= 14*n
 * + FIRST_EDGE: one compare instead of a division. It needs 14*9 + FIRST_EDGE <= 255.
 *
 * Cycle counts are from the first instruction of the handler; add 4 for the response and 3 for the
 * vector's jump. Instructions that do not touch SREG are preferred so that the start bit need not
 * save it.
 */
#include <avr/io.h>
#include "hardware.h"

#define START_DELAY 6
#define FIRST_EDGE (135 - START_DELAY)
#define STALE_DELAY 60

#define IO(reg) _SFR_IO_ADDR(reg)
#define MEM(reg) _SFR_MEM_ADDR(reg)

    .section .bss
    .balign 16                      ; so that the twelve bytes share their high address byte
    .global kilo_rx_message
kilo_rx_message:
    .skip 12
    .global kilo_rx_distance
kilo_rx_distance:
    .skip 4                         ; low_gain, high_gain
rx_next:
    .skip 1                         ; low address byte of the next byte to store

    .section .text.kilo_receive,"ax",@progbits

    .global ANALOG_COMP_vect
ANALOG_COMP_vect:
    push r24                        ; 0
    sbic IO(RX_FLAGS), RX_EXPECT_START ; 2
    rjmp start_bit                  ; 3
    in   r24, IO(SREG)              ; 4
    out  IO(RX_SREG), r24           ; 5
    push r25                        ; 6
    lds  r25, MEM(TCNT1L)           ; 8   timer read in cycle 9
    lds  r24, MEM(TCNT1H)           ; 10
    push r26                        ; 12

    mov  r26, r24                   ; r26 = 14*n + FIRST_EDGE
    swap r26
    sub  r26, r24
    sub  r26, r24
    subi r26, lo8(-(FIRST_EDGE))
    cp   r25, r26
    sbci r24, 0                     ; r24 = k (255 before the first bit)
    cpi  r24, 8
    brsh not_a_bit

    ldi  r26, 1                     ; r26 = 1 << k
    sbrc r24, 1
    ldi  r26, 4
    sbrc r24, 0
    lsl  r26
    sbrc r24, 2
    swap r26
    in   r24, IO(RX_VALUE)
    or   r24, r26
    out  IO(RX_VALUE), r24
leave:
    pop  r26
    pop  r25
    in   r24, IO(RX_SREG)
    out  IO(SREG), r24
    pop  r24
    reti

/* ---- a pulse where none can be: forget the message ---- */
stray:
    ldi  r24, 0
    sts  MEM(TCCR1B), r24
    sts  MEM(ADMUX), r24
    ldi  r24, RX_IDLE
    out  IO(RX_FLAGS), r24
    rjmp leave

/* ---- stop bit ---- */
not_a_bit:
    brne stray
    sbi  IO(RX_FLAGS), RX_EXPECT_START
    sbic IO(RX_FLAGS), RX_LEADING
    rjmp leading_stop
    push r27
    lds  r26, rx_next
    ldi  r27, hi8(kilo_rx_message)
    in   r24, IO(RX_VALUE)
    st   X+, r24
    pop  r27
    sts  rx_next, r26
    cpi  r26, lo8(kilo_rx_message + 12)
    breq message_complete
    rjmp leave

/* ---- second pulse of the leading byte: low gain amplitude; no bits may have been seen ---- */
leading_stop:
    lds  r24, MEM(ADCSRA)
    sbrc r24, ADSC
    rjmp leading_stop
    lds  r24, MEM(ADCL)
    sts  kilo_rx_distance+0, r24
    lds  r24, MEM(ADCH)
    sts  kilo_rx_distance+1, r24
    in   r24, IO(RX_VALUE)
    cpi  r24, 0
    brne stray
    sts  MEM(ADMUX), r24            ; CHANNEL_HIGH_GAIN is 0
    cbi  IO(RX_FLAGS), RX_LEADING
    ldi  r24, lo8(kilo_rx_message)
    sts  rx_next, r24
    rjmp leave

/* ---- twelve bytes are there: hand over to C with all registers saved ---- */
message_complete:
    ldi  r26, 0
    sts  MEM(TCCR1B), r26
    ldi  r26, RX_IDLE
    out  IO(RX_FLAGS), r26
    in   r24, IO(RX_SREG)
    push r24                        ; a callback may switch interrupts on
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
    call kilo_message_arrived
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
    pop  r24
    pop  r26
    pop  r25
    out  IO(SREG), r24
    pop  r24
    reti

/* ---- start bit: zero the clock; in the leading byte also take the high gain amplitude ---- */
start_bit:
    cbi  IO(RX_FLAGS), RX_EXPECT_START ; 5
    ldi  r24, 0                     ; 7
    out  IO(RX_VALUE), r24          ; 8
    sbic IO(RX_FLAGS), RX_MEASURE   ; 9
    rjmp start_and_measure          ; 10
    sts  MEM(TCNT1H), r24           ; 11
    sts  MEM(TCNT1L), r24           ; 13  timer is 0 in cycle 15: START_DELAY after the read
    pop  r24
    reti

start_and_measure:
    sts  MEM(TCNT1H), r24           ; 12
    sbic IO(RX_FLAGS), RX_STALE     ; 14  this pulse had to wait, up to STALE_DELAY * 2
    ldi  r24, STALE_DELAY
    sts  MEM(TCNT1L), r24           ; 16
    ldi  r24, 1                     ; 18
    sts  MEM(TCCR1B), r24           ; 19  timer starts from 0 in cycle 21
1:  lds  r24, MEM(ADCSRA)
    sbrc r24, ADSC
    rjmp 1b
    lds  r24, MEM(ADCL)
    sts  kilo_rx_distance+2, r24
    lds  r24, MEM(ADCH)
    sts  kilo_rx_distance+3, r24
    sbis IO(RX_FLAGS), RX_LEADING
    rjmp measured                   ; byte 0, after a stale first pulse
    ldi  r24, CHANNEL_LOW_GAIN      ; for the second pulse
    sts  MEM(ADMUX), r24
    sbic IO(RX_FLAGS), RX_STALE
    rjmp measure_later
measured:
    cbi  IO(RX_FLAGS), RX_MEASURE
measure_later:
    cbi  IO(RX_FLAGS), RX_STALE
    pop  r24
    reti

/* ---- no stop bit came: forget the message ---- */
    .global TIMER1_COMPA_vect
TIMER1_COMPA_vect:
    push r24
    ldi  r24, 0
    sts  MEM(TCCR1B), r24
    sts  MEM(ADMUX), r24
    ldi  r24, RX_IDLE
    out  IO(RX_FLAGS), r24
    pop  r24
    reti
