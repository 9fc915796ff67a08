"""USART0 beyond section 11: every setting, noise, errors, overrun, interrupts, pins.

Frames are made up here from DS 19.4, independently of the package; the line of the transmitter is
compared with them cycle by cycle, and they are played into the receiver.
"""

import itertools

import pytest

from tests.chip.peripherals.bench import first_seen, go_to, idle_chip
from tests.chip.section11 import boot, nops, put, put_io, register, run_to, sled, vector
from tests.reference.assemble import (
    EIMSK,
    PCICR,
    PCMSK2,
    SMCR,
    UBRR0L,
    UCSR0A,
    UCSR0B,
    UDR0,
    inc,
    ldi,
    lds,
    reti,
    rjmp,
    sbrs,
    sei,
    sleep,
    sts,
)

RXC, TXC, UDRE, FE, DOR, UPE, U2X, MPCM = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
RXCIE, TXCIE, UDRIE, RXEN, TXEN, UCSZ2, RXB8, TXB8 = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
NO_PARITY, EVEN, ODD = 0, 2, 3
PCINT2_VECTOR, RX_VECTOR, UDRE_VECTOR, TX_VECTOR = 5, 18, 19, 20
LOOP = rjmp(-1)
LEAD = 50  # cycles between set-up and first event


def parity_bit(data, parity):
    return (data.bit_count() + (parity == ODD)) % 2


def frame(data, bits=8, parity=NO_PARITY, stops=1):
    """The levels of a frame, one for each bit time."""
    levels = [0, *(data >> n & 1 for n in range(bits))]
    if parity:
        levels.append(parity_bit(data, parity))
    return levels + [1] * stops


def edges(levels, at, bit_cycles, before=1):
    """The changes of a line as (cycle, level)."""
    found = []
    for number, level in enumerate(levels):
        if level != before:
            found.append((at + number * bit_cycles, level))
            before = level
    return found


def configure(chip, *, ubrr=0, u2x=0, bits=8, parity=NO_PARITY, stops=1, enable=RXEN | TXEN):
    chip.write("UCSR0B", 0)
    chip.write("UBRR0", ubrr)
    chip.write("UCSR0A", (U2X if u2x else 0) | TXC)
    size = 7 if bits == 9 else bits - 5
    chip.write("UCSR0C", parity << 4 | (stops - 1) << 3 | (size & 3) << 1)
    chip.write("UCSR0B", enable | (UCSZ2 if bits == 9 else 0))
    return (8 if u2x else 16) * (ubrr + 1)


def play(chip, changes):
    """Put changes of RXD on the tape."""
    for cycle, level in changes:
        chip.set_pin("PD0", level, at=cycle)


def transmit(chip, data):
    if data > 0xFF:
        chip.write("UCSR0B", chip.read("UCSR0B") | TXB8)
    else:
        chip.write("UCSR0B", chip.read("UCSR0B") & ~TXB8)
    chip.write("UDR0", data & 0xFF)


def received(chip):
    """Status and data of the byte at the head of the FIFO, which goes."""
    status = chip.read("UCSR0A")
    ninth = chip.read("UCSR0B") & RXB8
    return status, chip.read("UDR0") | (0x100 if ninth else 0)


def line_changes(chip):
    """Changes of PD1 since the last call, as (cycle, level)."""
    found = [(cycle, levels >> 1 & 1) for cycle, port, levels in chip.pin_log if port == 2]
    chip.pin_log.clear()
    return found


def vote(start, bit, bit_cycles, u2x=0):
    """The cycle of the last of a bit's three samples: at the receiver's clock 6 or 10."""
    clocks = 8 if u2x else 16
    return start + (clocks * bit + (6 if u2x else 10)) * bit_cycles // clocks


@pytest.fixture(scope="module")
def chips():
    """A receiving and transmitting chip that is used by many cases."""
    chip = idle_chip()
    chip.watch_pins("PD1")
    chip.set_pin("PD0", 1)
    chip.run(cycles=10)
    return chip


UBRR_VALUES = [*range(16), 25, 51, 103, 207, 416, 832, 4095]
PATTERNS = [0x1A5, 0x000, 0x1FF, 0x0AA]


@pytest.mark.parametrize("u2x", [0, 1])
@pytest.mark.parametrize("bits", [5, 6, 7, 8, 9])
def test_every_setting_in_loop_back(chips, bits, u2x):
    """Two frames back to back, on the line to the cycle; RXD gets them and they are the same."""
    chip = chips
    settings = itertools.product(UBRR_VALUES, (NO_PARITY, EVEN, ODD), (1, 2))
    for number, (ubrr, parity, stops) in enumerate(settings):
        bit = configure(chip, ubrr=ubrr, u2x=u2x, bits=bits, parity=parity, stops=stops)
        mask = (1 << bits) - 1
        first, second = PATTERNS[number % 4] & mask, PATTERNS[(number + 1) % 4] & mask
        line_changes(chip)
        go_to(chip, chip.cycle + LEAD)
        start = chip.cycle
        transmit(chip, first)
        assert chip.read("UCSR0A") & UDRE
        transmit(chip, second)
        assert not chip.read("UCSR0A") & UDRE
        one, two = frame(first, bits, parity, stops), frame(second, bits, parity, stops)
        first_seen(chip, start + len(one) * bit, lambda: chip.read("UCSR0A") & UDRE)
        end = start + len(one + two) * bit
        first_seen(chip, end, lambda: chip.read("UCSR0A") & TXC)
        sent = line_changes(chip)
        assert sent == edges(one + two, start, bit)

        begin = end + LEAD
        play(chip, [(cycle - start + begin, level) for cycle, level in sent])
        stop_bit = 1 + bits + (parity > 0)
        done = vote(begin, stop_bit, bit, u2x)
        first_seen(chip, done, lambda: chip.read("UCSR0A") & RXC)
        done = vote(begin + len(one) * bit, stop_bit, bit, u2x)
        go_to(chip, done)
        for expected in (first, second):
            status, data = received(chip)
            assert (status & (RXC | FE | DOR | UPE), data) == (RXC, expected)
        assert not chip.read("UCSR0A") & RXC


@pytest.mark.jit_off
def test_every_byte_at_the_fastest_rate():
    chip = idle_chip()
    bit = configure(chip, u2x=1)
    chip.set_pin("PD0", 1)
    chip.watch_pins("PD1")
    go_to(chip, 20)
    for byte in range(0, 256, 5):
        start = chip.cycle
        chip.write("UDR0", byte)
        play(chip, edges(frame(byte), start + 4, bit))
        go_to(chip, start + 10 * bit + 4)
        assert line_changes(chip)[-len(edges(frame(byte), 0, 1)) :] == edges(
            frame(byte), start, bit
        )
        assert received(chip) == (RXC | TXC | UDRE | U2X, byte)
        chip.write("UCSR0A", TXC | U2X)
    assert chip.uart == bytes(range(0, 256, 5))


# ---- receiver ------------------------------------------------------------------------------------


def receiver(**setting):
    chip = idle_chip()
    chip.set_pin("PD0", 1)
    chip.run(cycles=5)
    return chip, configure(chip, **setting)


@pytest.mark.parametrize("error", [-8, 8])
@pytest.mark.parametrize("byte", [0x00, 0x55, 0xFF, 0x81])
def test_sender_with_another_clock(byte, error):
    """DS table 19-2: 8N1 stands bits 4.4 % shorter and 4.9 % longer; 208 +- 8 is 3.8 %."""
    chip, bit = receiver(ubrr=12)
    start = chip.cycle + LEAD
    play(chip, edges(frame(byte), start, bit + error))
    go_to(chip, start + 12 * bit)
    assert received(chip) == (RXC | UDRE, byte)


def test_sender_far_too_fast():
    chip, bit = receiver(ubrr=12)
    start = chip.cycle + LEAD
    play(chip, edges(frame(0x00), start, bit * 8 // 10))
    go_to(chip, start + 12 * bit)
    assert received(chip) != (RXC | UDRE, 0x00)


@pytest.mark.jit_off
@pytest.mark.parametrize("u2x", [0, 1])
@pytest.mark.parametrize("disturbed", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
def test_majority_of_three_samples(disturbed, u2x):
    """One wrong sample of data bit 3 does nothing, two turn the bit."""
    chip, bit = receiver(ubrr=1, u2x=u2x)
    start = chip.cycle + LEAD
    changes = edges(frame(0xFF), start, bit)
    clock = 2
    first_sample = vote(start, 4, bit, u2x) - 2 * clock
    for sample in disturbed:
        at = first_sample + sample * clock
        changes += [(at - 1, 0), (at, 1)]  # a sample sees the cycle before its edge
    play(chip, sorted(changes))
    go_to(chip, start + 11 * bit)
    assert received(chip)[1] == (0xFF if len(disturbed) < 2 else 0xF7)


@pytest.mark.jit_off
def test_noise_spike_is_no_start_bit():
    """Low for less than the vote of the start bit; a start bit right after that is taken."""
    chip, bit = receiver(ubrr=1)
    start = chip.cycle + LEAD
    again = vote(start, 0, bit) + 1
    play(chip, [(start, 0), (start + 16, 1), *edges(frame(0x5A), again, bit)])
    go_to(chip, again + 11 * bit)
    assert received(chip) == (RXC | UDRE, 0x5A)
    assert not chip.read("UCSR0A") & RXC


def test_start_bit_right_after_the_vote_of_the_stop_bit():
    chip, bit = receiver(ubrr=3)
    start = chip.cycle + LEAD
    again = vote(start, 9, bit)
    play(chip, edges(frame(0x12), start, bit) + edges(frame(0x34), again, bit))
    go_to(chip, again + 11 * bit)
    assert [received(chip) for _ in range(2)] == [(RXC | UDRE, 0x12), (RXC | UDRE, 0x34)]


def test_break_gives_one_byte_with_a_frame_error():
    chip, bit = receiver(ubrr=3)
    start = chip.cycle + LEAD
    play(chip, [(start, 0), (start + 50 * bit, 1)])
    first_seen(chip, vote(start, 9, bit), lambda: chip.read("UCSR0A") & RXC)
    assert received(chip) == (RXC | FE | UDRE, 0x00)
    go_to(chip, start + 70 * bit)
    assert not chip.read("UCSR0A") & RXC
    at = chip.cycle + LEAD
    play(chip, edges(frame(0x77), at, bit))
    go_to(chip, at + 10 * bit)
    assert received(chip) == (RXC | UDRE, 0x77)


def test_line_that_was_low_before_is_no_start_bit():
    chip = idle_chip()
    bit = configure(chip, ubrr=3)
    go_to(chip, 20 * bit)
    assert not chip.read("UCSR0A") & RXC


@pytest.mark.parametrize("parity", [EVEN, ODD])
def test_errors_belong_to_their_byte(parity):
    """A byte with wrong parity and one without a stop bit, each between good ones."""
    chip, bit = receiver(ubrr=3, parity=parity)
    at = chip.cycle + LEAD
    wrong_parity = frame(0x21, 8, parity)
    wrong_parity[9] ^= 1
    no_stop = [*frame(0x42, 8, parity)[:-1], 0]
    for levels in (frame(0x10, 8, parity), wrong_parity, no_stop):
        play(chip, [*edges(levels, at, bit), (at + len(levels) * bit, 1)])
        at += (len(levels) + 2) * bit
    go_to(chip, at)
    assert [received(chip) for _ in range(3)] == [
        (RXC | UDRE, 0x10),
        (RXC | UPE | UDRE, 0x21),
        (RXC | FE | UDRE, 0x42),
    ]
    assert chip.read("UCSR0A") == UDRE


def test_ninth_bit_belongs_to_its_byte():
    chip, bit = receiver(ubrr=1, bits=9)
    at = chip.cycle + LEAD
    for data in (0x1AB, 0x0CD, 0x1EF):
        play(chip, edges(frame(data, 9), at, bit))
        at += 11 * bit
    go_to(chip, at)
    assert [received(chip)[1] for _ in range(3)] == [0x1AB, 0x0CD, 0x1EF]


@pytest.mark.jit_off
def test_overrun():
    """Three are kept, the fourth is lost from its start bit on; DOR until UDR0 is read."""
    chip, bit = receiver(ubrr=1)
    at = chip.cycle + LEAD
    starts = [at + number * 11 * bit for number in range(5)]
    for byte, start in zip(b"ABCDE", starts, strict=True):
        play(chip, edges(frame(byte), start, bit))
    first_seen(chip, vote(starts[3], 0, bit), lambda: chip.read("UCSR0A") & DOR)
    assert received(chip) == (RXC | DOR | UDRE, ord("A"))  # too late for the fourth, in time for E
    go_to(chip, starts[4] + 10 * bit)
    found = [received(chip) for _ in range(3)]
    assert found == [(RXC | UDRE, ord(letter)) for letter in "BCE"]
    assert not chip.read("UCSR0A") & (RXC | DOR)


def test_room_made_in_time_loses_nothing():
    chip, bit = receiver(ubrr=1)
    starts = [chip.cycle + LEAD + number * 11 * bit for number in range(4)]
    for byte, start in zip(b"ABCD", starts, strict=True):
        play(chip, edges(frame(byte), start, bit))
    go_to(chip, vote(starts[3], 0, bit) - 1)
    found = [received(chip)]
    go_to(chip, starts[3] + 10 * bit)
    found += [received(chip) for _ in range(3)]
    assert found == [(RXC | UDRE, ord(letter)) for letter in "ABCD"]


def test_switching_the_receiver_off_empties_the_fifo():
    chip, bit = receiver(ubrr=1)
    at = chip.cycle + LEAD
    for byte in b"XY":
        play(chip, edges(frame(byte), at, bit))
        at += 10 * bit
    play(chip, edges(frame(0), at, bit))
    go_to(chip, at + 4 * bit)  # in the middle of the third
    chip.write("UCSR0B", TXEN)
    assert not chip.read("UCSR0A") & RXC
    chip.write("UCSR0B", TXEN | RXEN)
    go_to(chip, at + 20 * bit)
    assert not chip.read("UCSR0A") & RXC
    at = chip.cycle + LEAD
    play(chip, edges(frame(0x3C), at, bit))
    go_to(chip, at + 10 * bit)
    assert received(chip) == (RXC | UDRE, 0x3C)


@pytest.mark.parametrize("bits", [8, 9])
def test_multi_processor_mode_drops_data_frames(bits):
    """Addresses have the ninth bit set; with eight bits, the first stop bit says so (DS 19.9)."""
    chip, bit = receiver(ubrr=1, bits=bits)
    chip.write("UCSR0A", MPCM)
    at = chip.cycle + LEAD
    for data, is_address in ((0x31, False), (0x42, True), (0x53, False)):
        levels = frame(data | (0x100 if is_address and bits == 9 else 0), bits)
        if bits == 8 and not is_address:
            levels[-1] = 0
        play(chip, [*edges(levels, at, bit), (at + len(levels) * bit, 1)])
        at += 14 * bit
    go_to(chip, at)
    status, data = received(chip)
    assert (status & (RXC | FE | MPCM), data & 0xFF) == (RXC | MPCM, 0x42)
    assert not chip.read("UCSR0A") & RXC


def test_looking_at_all_memory_leaves_the_fifo_alone():
    chip, bit = receiver(ubrr=1)
    at = chip.cycle + LEAD
    play(chip, edges(frame(0x99), at, bit))
    go_to(chip, at + 11 * bit)
    assert chip.data[UCSR0A] & RXC
    assert chip.data[UDR0] == 0x99
    assert received(chip) == (RXC | UDRE, 0x99)


# ---- transmitter ---------------------------------------------------------------------------------


def transmitter(**setting):
    chip = idle_chip()
    bit = configure(chip, **setting)
    chip.watch_pins("PD1")
    go_to(chip, 20)
    line_changes(chip)
    return chip, bit


@pytest.mark.jit_off
def test_write_into_a_full_buffer_is_lost():
    chip, bit = transmitter(ubrr=1)
    for byte in b"ABC":
        chip.write("UDR0", byte)
    chip.run(cycles=40 * bit)
    assert chip.uart == b"AB"


def test_nothing_is_sent_while_switched_off():
    chip, bit = transmitter(ubrr=1, enable=RXEN)
    chip.write("UDR0", 0x41)
    assert chip.read("UCSR0A") == UDRE
    chip.write("UCSR0B", TXEN)
    chip.run(cycles=20 * bit)
    assert chip.uart == b""


@pytest.mark.jit_off
def test_switching_off_lets_waiting_bytes_go_first():
    """PD1 belongs to the transmitter until its last stop bit; then PORTD decides again."""
    chip, bit = transmitter(ubrr=1)
    chip.write("DDRD", 0x02)  # and PORTD is 0
    line_changes(chip)
    start = chip.cycle
    chip.write("UDR0", 0xF0)
    chip.write("UDR0", 0x0F)
    chip.write("UCSR0B", 0)
    go_to(chip, start + 25 * bit)
    expected = edges(frame(0xF0) + frame(0x0F), start, bit)
    assert line_changes(chip) == [*expected, (start + 20 * bit, 0)]
    assert chip.uart == b"\xf0\x0f"


def test_ninth_bit_goes_with_the_write_of_udr0():
    chip, bit = transmitter(ubrr=1, bits=9)
    start = chip.cycle
    transmit(chip, 0x155)
    transmit(chip, 0x0AA)
    chip.write("UCSR0B", chip.read("UCSR0B") | TXB8)
    chip.run(cycles=30 * bit)
    assert line_changes(chip) == edges(frame(0x155, 9) + frame(0x0AA, 9), start, bit)


def test_running_frame_keeps_rate_and_format():
    chip, bit = transmitter(ubrr=3)
    start = chip.cycle
    chip.write("UDR0", 0x55)
    chip.write("UDR0", 0x55)
    go_to(chip, start + 3 * bit)
    chip.write("UBRR0", 1)
    chip.write("UCSR0C", 0x3E)  # odd parity, two stop bits
    go_to(chip, start + 20 * bit)
    second = edges(frame(0x55, 8, ODD, 2), start + 10 * bit, 32)
    assert line_changes(chip) == edges(frame(0x55), start, bit) + second


def test_transmit_complete_is_cleared_by_writing_1_only():
    chip, bit = transmitter(ubrr=1)
    start = chip.cycle
    chip.write("UDR0", 0x41)
    go_to(chip, start + 10 * bit)
    assert chip.read("UCSR0A") == TXC | UDRE
    chip.write("UCSR0A", 0)
    chip.write("UDR0", 0x42)
    assert chip.read("UCSR0A") == TXC | UDRE
    chip.write("UCSR0A", TXC)
    assert chip.read("UCSR0A") == UDRE
    first_seen(chip, start + 20 * bit, lambda: chip.read("UCSR0A") & TXC)


@pytest.mark.jit_off
def test_pin_register_shows_the_line_without_being_watched():
    """PIND shows the level of the cycle before, also when bit boundaries are no events."""
    chip = idle_chip()
    bit = configure(chip, u2x=1)
    go_to(chip, 20)
    start = chip.cycle
    chip.write("UDR0", 0x35)
    levels = [*frame(0x35), 1, 1]
    for cycle in range(start + 1, start + 11 * bit):
        go_to(chip, cycle)
        assert chip.read("PIND") >> 1 & 1 == levels[(cycle - 1 - start) // bit], cycle - start


def test_pin_register_when_another_pin_moved_after_the_line():
    """The line rose, five cycles later PD7 did: in that cycle PIND shows the first only."""
    chip = idle_chip()
    bit = configure(chip, ubrr=1)
    go_to(chip, 20)
    chip.write("UDR0", 0xFF)
    moves = chip.cycle + bit + 5
    chip.set_pin("PD7", 1, at=moves)
    go_to(chip, moves)
    assert chip.read("PIND") & 0x82 == 0x02
    go_to(chip, moves + 1)
    assert chip.read("PIND") & 0x82 == 0x82


def test_watching_in_the_middle_of_a_frame():
    chip = idle_chip()
    bit = configure(chip, ubrr=1)
    go_to(chip, 20)
    start = chip.cycle
    chip.write("UDR0", 0x55)
    go_to(chip, start + 4 * bit + 1)
    chip.watch_pins("PD1")
    go_to(chip, start + 12 * bit)
    assert line_changes(chip) == edges(frame(0x55), start, bit)[5:]


def test_pin_change_interrupt_enabled_in_the_middle_of_a_frame():
    """Bit boundaries become events when PCMSK2 asks for them: PCIF three edges after the change."""
    setup = put(UBRR0L, 3) + put(UCSR0B, TXEN) + put(PCICR, 4) + sei() + ldi(17, 0x0F)
    late = nops(100) + put(PCMSK2, 0x02)  # lands 103 cycles after the start bit began
    chip = boot(setup, sts(UDR0, 17), late, sled(), isr={PCINT2_VECTOR: inc(20) + reti()})
    start = run_to(chip, 0x200 + 2 * len(setup)) + 2
    falls_at = start + 5 * 64  # start bit, four ones, then zeros
    assert run_to(chip, vector(PCINT2_VECTOR)) == falls_at + 3 + 1 + 3
    chip.run(cycles=1000)
    assert register(chip, 20) == 2  # that one and the rise of the stop bit


def test_stopped_clock_stretches_the_frame():
    """PRR.PRUSART0 freezes transmitter and receiver, and the registers take no writes."""
    chip, bit = transmitter(ubrr=1)
    start = chip.cycle
    chip.write("UDR0", 0x55)
    go_to(chip, start + 4 * bit + 7)
    chip.write("PRR", 0x02)
    chip.write("UBRR0", 7)
    chip.write("UDR0", 0x66)
    go_to(chip, chip.cycle + 1000)
    chip.write("PRR", 0x00)
    go_to(chip, start + 1000 + 12 * bit)
    expected = edges(frame(0x55), start, bit)
    assert line_changes(chip) == [
        (c + (1000 if c > start + 4 * bit else 0), v) for c, v in expected
    ]
    assert chip.read("UBRR0") == 1
    assert chip.uart == b"\x55"


def test_stopped_clock_stretches_reception():
    chip, bit = receiver(ubrr=1)
    start = chip.cycle + LEAD
    stops, lasts = start + 4 * bit + 7, 1000
    changes = edges(frame(0x55), start, bit)
    play(chip, [(cycle + (lasts if cycle > stops else 0), level) for cycle, level in changes])
    go_to(chip, stops)
    chip.write("PRR", 0x02)
    go_to(chip, stops + lasts)
    chip.write("PRR", 0x00)
    first_seen(chip, vote(start, 9, bit) + lasts, lambda: chip.read("UCSR0A") & RXC)
    assert received(chip) == (RXC | UDRE, 0x55)


def test_synchronous_mode_is_not_clocked():
    chip, bit = transmitter(ubrr=1)
    chip.write("UCSR0C", 0x46)
    chip.write("UDR0", 0x41)
    chip.run(cycles=100 * bit)
    assert not chip.read("UCSR0A") & (UDRE | TXC)
    assert line_changes(chip) == []


def test_registers_hold_what_they_can():
    chip = idle_chip()
    chip.write("UBRR0H", 0xFF)
    chip.write("UBRR0L", 0xA5)
    chip.write("UCSR0C", 0xFF)
    chip.write("UCSR0A", 0xFF)
    chip.write("UCSR0B", 0xE7)
    found = [chip.read(name) for name in ("UBRR0H", "UBRR0L", "UCSR0C", "UCSR0A", "UCSR0B")]
    assert found == [0x0F, 0xA5, 0xFF, 0x23, 0xE5]


def poll(register, bit):
    """Wait for a bit of a register above the reach of SBIS."""
    return lds(16, register) + sbrs(16, bit) + rjmp(-4)


def test_polling_program():
    """Sends, waits for the end, sends again: loops that only look are no reason to skip time."""
    setup = put(UBRR0L, 12) + put(UCSR0B, TXEN)
    send = poll(UCSR0A, 5) + put(UDR0, 0x41) + poll(UCSR0A, 5) + put(UDR0, 0x42)
    chip = boot(setup, send, poll(UCSR0A, 6), inc(20), LOOP)
    start = 6 + 4 + 3  # set-up, one look at UDRE, the write
    chip.run(cycles=start + 2 * 2080 - 1)
    assert register(chip, 20) == 0
    chip.run(cycles=30)
    assert register(chip, 20) == 1
    assert chip.uart == b"AB"


def test_polling_receiver():
    """An echo without interrupts."""
    setup = put(UBRR0L, 12) + put(UCSR0B, TXEN | RXEN)
    chip = boot(setup, poll(UCSR0A, 7), lds(20, UDR0), sts(UDR0, 20), rjmp(-9))
    chip.set_pin("PD0", 1)
    chip.run(cycles=100)
    end = chip.uart_send(b"Hello", at=chip.cycle + 1234)
    chip.run(cycles=end + 5000 - chip.cycle)
    assert chip.uart == b"Hello"


# ---- interrupts ----------------------------------------------------------------------------------


def test_transmit_complete_interrupt():
    """At the end of the frame, once: the vector clears TXC."""
    setup = put(UBRR0L, 3) + put(UCSR0B, TXEN | TXCIE) + sei() + ldi(17, 0x41)
    chip = boot(setup, sts(UDR0, 17), sled(), isr={TX_VECTOR: inc(20) + reti()})
    start = run_to(chip, 0x200 + 2 * len(setup)) + 2
    assert run_to(chip, vector(TX_VECTOR)) == start + 10 * 64 + 1 + 3
    chip.run(cycles=1000)
    assert register(chip, 20) == 1
    assert not chip.read("UCSR0A") & TXC


def test_data_register_empty_interrupt():
    """Level: it keeps the buffer full by itself."""
    setup = put(UBRR0L, 3) + ldi(20, 0x61) + sei()
    routine = sts(UDR0, 20) + inc(20) + reti()
    chip = boot(setup, put(UCSR0B, TXEN | UDRIE), sled(), isr={UDRE_VECTOR: routine})
    chip.run(cycles=640 * 6 + 100)
    assert chip.uart == b"abcdefg"


def test_receive_complete_interrupt():
    """Level: it comes again until UDR0 is read."""
    setup = put(UBRR0L, 3) + put(UCSR0B, RXEN | RXCIE) + sei()
    chip = boot(setup, sled(), isr={RX_VECTOR: inc(20) + lds(21, UDR0) + reti()})
    chip.set_pin("PD0", 1)
    chip.run(cycles=100)
    start = chip.cycle + LEAD
    play(chip, edges(frame(0x5C), start, 64))
    assert run_to(chip, vector(RX_VECTOR)) == vote(start, 9, 64) + 1 + 3
    chip.run(cycles=1000)
    assert (register(chip, 20), register(chip, 21)) == (1, 0x5C)


def test_receive_complete_interrupt_repeats_until_read():
    setup = put(UBRR0L, 3) + put(UCSR0B, RXEN | RXCIE) + sei()
    chip = boot(setup, sled(), isr={RX_VECTOR: inc(20) + reti()})
    chip.set_pin("PD0", 1)
    chip.run(cycles=100)
    at = chip.cycle + LEAD
    play(chip, edges(frame(0x5C), at, 64))
    chip.run(cycles=1000)
    assert register(chip, 20) > 10


# ---- deep sleep ----------------------------------------------------------------------------------

POWER_DOWN = put_io(EIMSK, 1) + put_io(SMCR, 5) + sei()
INT0_VECTOR = 1
WAKE_TO_VECTOR = 4 + 3  # after the clock runs again: halted, then interrupt entry


def test_power_down_stretches_the_frame():
    """clk_IO stands still from the cycle after SLEEP until the oscillator has started."""
    setup = put(UBRR0L, 3) + put(UCSR0B, TXEN) + POWER_DOWN + ldi(17, 0x55)
    chip = boot(setup, sts(UDR0, 17), nops(150), sleep(), sled(), isr={INT0_VECTOR: LOOP})
    chip.set_pin("PD2", 1)
    chip.watch_pins("PD1")
    start = run_to(chip, 0x200 + 2 * len(setup)) + 2
    line_changes(chip)
    asleep = start + 150 + 1
    chip.set_pin("PD2", 0, at=asleep + 5000)
    awake = run_to(chip, vector(INT0_VECTOR)) - WAKE_TO_VECTOR
    chip.run(cycles=1000)
    shifts = [
        0 if cycle <= asleep else awake - asleep for cycle, _ in edges(frame(0x55), start, 64)
    ]
    expected = [(c + s, v) for (c, v), s in zip(edges(frame(0x55), start, 64), shifts, strict=True)]
    assert line_changes(chip) == expected


def test_nothing_is_received_in_power_down():
    setup = put(UBRR0L, 3) + put(UCSR0B, RXEN) + POWER_DOWN
    chip = boot(setup, sleep(), sled(), isr={INT0_VECTOR: LOOP})
    chip.set_pin("PD0", 1)
    chip.set_pin("PD2", 1)
    chip.run(cycles=100)
    assert chip.asleep
    at = chip.cycle + LEAD
    play(chip, edges(frame(0x5C), at, 64))
    chip.set_pin("PD2", 0, at=at + 20 * 64)
    run_to(chip, vector(INT0_VECTOR))
    assert not chip.read("UCSR0A") & RXC
    chip.run(cycles=2000)
    assert not chip.read("UCSR0A") & RXC
