"""What one chip remembers, as one record; a swarm is an array of them (first axis = robot).

``ChipRow`` and ``TimerRow`` are the single description: their annotations give the numpy record
layout that kernels work on, and mypy the names and types of its fields. All numbers are 64-bit
unless memory matters, because mixed widths cost conversions in compiled code.

Times are cycles of this chip's own CPU clock since power-on. ``NEVER`` is later than any of them.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any, NamedTuple, Protocol, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

NEVER = 1 << 62
DATA_SIZE = 0x900
SRAM_START = 0x100
EEPROM_SIZE = 0x400
PAGE_WORDS = 64
LOG_SIZE = 40
REPORT_SIZE = 8
UNDO_SIZE = 4
"""EEPROM cells that can be put back; one takes at least 1.8 ms to write."""
DELAYED_SIZE = 26
"""Edges on their way at once: 9 of PCINT (3 ports, 3 cycles), 4 of INT0/1, 6 of T0/T1, 3 of the
capture unit, 1 of RXD, 2 of the comparator."""
DATA_WORDS = DATA_SIZE // 8
TOUCHED_WORDS = 8
LOOP_PUSHES = 8
STACK_WORDS = 12
IMAGE_WORDS = 12

RUNNING = -1
"""In place of the cycle at which the clock of a block stopped."""

IDLE_SLEEP, NOISE_REDUCTION_SLEEP = 1, 2
"""``ChipRow.asleep`` in idle mode, above which clk_IO stands still, and in ADC noise reduction,
above which the ADC's clock does too."""

HELD_IN_RESET = 9
"""``ChipRow.asleep`` from a reset to the first instruction after it: no clock runs."""

CPU_SIZE = 28

TIME_UNITS_PER_SECOND = 10**14
"""World time is an integer count of 10 femtoseconds: 25 hours fit; 8 MHz is 12 500 000 units."""


class Source(IntEnum):
    """Who may have something to do at a known cycle; index into ``ChipRow.next``."""

    TAPE = 0  # stimulus from outside: pins, voltages, comparator
    PINS = 1  # synchronised pin edges on their way to INT, PCINT, T0, T1, ICP1
    TIMER0 = 2
    TIMER1 = 3
    TIMER2 = 4
    ADC = 5
    EEPROM = 6  # from here on those that act rarely
    FLASH = 7
    WATCHDOG = 8
    USART_TX = 9
    USART_RX = 10
    SPI = 11
    TWI = 12


class Tape(IntEnum):
    """Kinds of stimulus; a tape row is (cycle or world time, kind, first value, second value)."""

    PIN = 0  # value = 8 x port + bit, level 0, 1 or 2 (= not driven)
    ADC = 1  # value = channel, or 16, 17 for AIN0, AIN1; microvolts
    ACO = 2  # value = comparator output after its synchroniser
    PULSE = 3  # value = comparator output; microvolts: ADC0 in bits 0-31, ADC1 in bits 32-63


class Touch(IntEnum):
    """What a loop under probe depends on but bytes that stay (bits of ``ChipRow.io_touched``)."""

    STABLE_READ = 1  # read something that only an event can change
    VOLATILE = 2  # read something that changes with time, or wrote something
    EVENT = 4  # something happened meanwhile
    FRAME = 8  # the stack was used in other ways than by pushes, pops, calls and returns


class Log(IntEnum):
    """What a chip tells its surroundings; packed as ``cycle << 16 | kind << 8 | value``."""

    PORTB = 0  # value = pin levels from that cycle on
    PORTC = 1
    PORTD = 2
    UART = 3  # value = byte, at the first cycle of its start bit
    BREAK = 4


class Numbers(Protocol):
    """A field that holds several 64-bit numbers; compiled code sees a numpy array."""

    def __getitem__(self, place: int, /) -> int: ...

    def __setitem__(self, place: int | slice, value: int, /) -> None: ...

    def __len__(self) -> int: ...


def word_of(address: int) -> int:
    """Return the number of the word in ``ChipRow.bytes_read`` that stands for a byte.

    Bytes of SRAM that are 256 apart share a bit, I/O registers have one each.
    """
    return address >> 6 & 3 | (4 if address < SRAM_START else 0)


def bit_of(address: int) -> int:
    """Return the bit of that word, as a signed number."""
    if address & 63 == 63:
        return -1 << 63
    return 1 << (address & 63)


class Overlay(NamedTuple):
    """Marks a field that is another view of the memory of one before it."""

    of: str


class TimerRow:
    """One timer/counter. Counting is closed-form: ``count`` is the value at cycle ``at``."""

    count: int
    at: int  # cycle up to which (inclusive) this timer has been brought up to date
    down: int  # 1 while a phase-correct mode counts down
    blocked: int  # a TCNT write blocks compare matches at the next tick (DS 15.5.2)
    maximum: int  # 0xFF or 0xFFFF
    divisor: int  # CPU cycles per tick; 0 = stopped; -1, -2 = falling, rising edges of Tn
    shift: int  # log2 of a divisor above 0
    prescaler: int  # index of the prescaler it counts from
    waveform: int  # a Waveform
    top_source: int  # a TopSource
    fixed_top: int
    temp: int  # TEMP of 16-bit accesses (DS 16.3)
    capture: int  # ICR1
    tifr: int  # TIFRn
    enabled: int  # TIMSKn
    wanted: int  # TIFRn bits whose setting is an event: enabled interrupts and ADC triggers
    watched: int  # 1 if a change of an OC pin is an event
    compare: Annotated[Numbers, (2,)]  # active OCRnA, OCRnB
    buffer: Annotated[Numbers, (2,)]  # what the CPU wrote; equal unless a PWM mode buffers
    output_mode: Annotated[Numbers, (2,)]  # COMnA, COMnB
    level: Annotated[Numbers, (2,)]  # OC register, survives mode changes


class ChipRow:
    """Everything one ATmega328P remembers."""

    # --- core -------------------------------------------------------------------------------------
    cycle: int  # start of the next instruction
    pc: int  # word address
    sreg: int
    next_event: int  # no event is earlier: see chip.agenda
    next_rare: int  # the earliest of the sources from EEPROM on
    requests: int  # bit n: vector n is requested (flag and enable), as of the last update
    sampled: int  # requests seen in the last cycle of an instruction, before its own write landed
    sampled_at: int  # the boundary that `sampled` is for
    stall: int  # cycles the CPU must halt after the running instruction (EEPROM, SPM)
    held_until: int  # no interrupt is taken at a boundary before this cycle (IVCE sequence)
    asleep: int  # 0, 1 + SM bits of the sleep mode, or HELD_IN_RESET
    asleep_since: int
    starts_at: int  # cycle of the first instruction after the last reset
    flash_changed: int  # 1: self-programming has changed that image since power-on
    vector_base: int  # word address of the interrupt table
    reset_cause: int  # MCUSR bits of a reset that is due; 0 = none
    fault: int  # a Fault, 0 = none
    fault_address: int
    last_erased: int  # word address of the erased word executed last; -1 = none
    io_touched: int  # what a probed loop did to the I/O space: see `Touch`
    io_seen: int  # the same before that loop was probed, since somebody last cleared it
    idle_period: int  # cycles after which the running loop repeats exactly; 0 = not known
    idle_reads_io: int  # 1: that loop reads I/O registers that events may change
    calm_since: int  # cycle of the last wake, failed probe, or interrupt that changed a loop
    probe_wait: int  # calm cycles to wait before the next probe
    loop_id: int  # which loop that is: the one that is remembered below, or an earlier one
    loop_origin: int  # a cycle in which it begins; moves on with every interrupt
    spoiled: int  # 1: an interrupt has left its traces in the stack of the running loop
    suspended: int  # period of a proven loop while an interrupt is served; 0 = none
    report_count: int
    reports_lost: int  # 1: there were more places than fit
    log_count: int
    tape_next: int  # index of the next tape row
    outputs_watched: int  # 1: edges of a timer's pin are events
    next: Annotated[Numbers, (13,)]

    # --- clock and sleep --------------------------------------------------------------------------
    period: int  # time units per CPU cycle
    rc_period: int  # time units per cycle of the RC oscillator, before CLKPR
    time_base: int  # world time of time_base_cycle
    time_base_cycle: int
    clock_divisor: int
    clock_changed: int  # 1: the period has changed since the host last looked
    clock_change_edge: int  # landing edge of CLKPCE; NEVER = window closed
    vector_change_edge: int  # landing edge of IVCE; NEVER = window closed
    prescaler_base: Annotated[Numbers, (2,)]
    prescaler_held: Annotated[Numbers, (2,)]

    # --- GPIO -------------------------------------------------------------------------------------
    pin_level: Annotated[Numbers, (3,)]
    pin_before: Annotated[Numbers, (3,)]  # level before the last change
    pin_changed: Annotated[Numbers, (3,)]  # cycle of the last change
    outside_driven: Annotated[Numbers, (3,)]
    outside_level: Annotated[Numbers, (3,)]
    delayed_count: int
    delayed: Annotated[Numbers, (DELAYED_SIZE,)]  # cycle << 16 | action
    capture_level: int  # source of the capture unit behind synchroniser and noise canceler
    slept_edges: int  # T0, T1 (bits 0, 1): level changed while clk_IO stood still
    int_flags: int  # EIFR
    pcint_flags: int  # PCIFR

    # --- timers -----------------------------------------------------------------------------------
    timers: Annotated[Sequence[TimerRow], TimerRow, (3,)]

    # --- ADC and comparator -----------------------------------------------------------------------
    adc_stopped: int  # cycle at which its clock stopped (PRR, deep sleep), or RUNNING
    adc_busy: int
    adc_first: int  # the next conversion is the long first one after ADEN
    adc_base: int  # a rising edge of the ADC clock
    adc_start: int
    adc_sample: int
    adc_done: int
    adc_mux: int  # ADMUX as locked at the start of the conversion
    adc_value: int  # microvolts that the sample-and-hold caught; -1 = not yet
    adc_result: int  # unless adc_caught is newer
    adc_caught: int  # microvolts of the last conversion that ended; -1 = is in adc_result
    adc_caught_mux: int
    adc_caught_number: int  # which conversion that was
    adc_locked: int  # ADCL was read, ADCH not yet
    adc_flag: int  # ADIF
    adc_conversions: int
    adc_microvolts: Annotated[NDArray[np.int32], (16,)]
    ain_microvolts: Annotated[Numbers, (2,)]  # AIN0, AIN1, used with band gap or multiplexer
    comparator_input: int  # outside source, while neither band gap nor multiplexer is chosen
    comparator_level: int  # the same before the synchroniser, of whatever is chosen
    comparator_output: int  # ACO
    comparator_flag: int  # ACI

    # --- EEPROM and flash programming -------------------------------------------------------------
    eeprom_window: int  # landing edge of EEMPE; NEVER = closed
    eeprom_done: int  # cycle at which EEPE falls; NEVER = idle
    eeprom_changes: int  # cells written so far
    eeprom_undo: Annotated[Numbers, (UNDO_SIZE,)]  # the last of them: address << 8 | content before
    spm_window: int  # landing edge of the SPMCSR write; NEVER = closed
    spm_done: int
    rww_busy: int

    # --- watchdog ---------------------------------------------------------------------------------
    watchdog_start: int  # cycle at which its counter was watchdog_elapsed
    watchdog_elapsed: int  # in time units, because the CPU's clock may change while it counts
    watchdog_window: int  # landing edge of WDCE; NEVER = closed

    # --- USART0 -----------------------------------------------------------------------------------
    usart_stopped: int  # cycle at which its clock stopped (PRR, deep sleep), or RUNNING
    txd: int  # level the transmitter drives
    tx_busy: int
    tx_complete: int  # TXC0
    tx_start: int  # cycle at which the frame being shifted out began
    tx_end: int
    tx_frame: int  # bits on the line, start bit in bit 0
    tx_bits: int
    tx_bit: int  # the bit that TXD shows
    tx_bit_cycles: int
    tx_buffered: int  # 1 if a byte waits in the buffer
    tx_buffer: int  # byte | TXB8 << 8
    rx_level: int  # RXD since its last edge
    rx_active: int
    rx_lost: int  # 1 if the frame being received found FIFO and shift register full
    rx_start: int
    rx_sample: int  # number of the next sample, counted in receiver clocks
    rx_clock: int  # cycles per receiver clock of the frame being received
    rx_clocks_per_bit: int  # 16, or 8 with U2X
    rx_data_bits: int
    rx_parity: int  # UPM of the frame being received: 0, 2 = even, 3 = odd
    rx_votes: int
    rx_shift: int
    rx_bit: int
    rx_count: int
    rx_fifo: Annotated[Numbers, (3,)]  # byte | RXB8 << 8 | FE << 9 | DOR << 10 | UPE << 11

    # --- SPI and TWI ------------------------------------------------------------------------------
    spi_stopped: int  # cycle at which its clock stopped, or RUNNING
    spi_flag: int  # SPIF
    spi_collision: int  # WCOL
    spi_end: int  # cycle at which the running transfer ends; NEVER = idle
    spi_out: int
    spi_status_read: int  # SPIF and WCOL as SPSR last showed them
    spi_input: int  # what the outside shifts in; -1 = MOSI looped back to MISO
    twi_stopped: int  # cycle at which its clock stopped, or RUNNING
    twi_flag: int  # TWINT
    twi_collision: int  # TWWC
    twi_end: int  # cycle at which the running operation ends; NEVER = idle
    twi_action: int  # a twi.Operation
    twi_state: int  # status code, a twi.Status
    twi_slave: int  # 7-bit address of the bench's slave; -1 = nobody answers
    twi_index_due: int  # the next byte written to the slave is its memory index
    twi_memory: Annotated[NDArray[np.uint8], (16,)]
    twi_memory_index: int

    # --- memory -----------------------------------------------------------------------------------
    memory: Annotated[NDArray[np.uint8], (DATA_SIZE,)]  # registers, I/O space and SRAM
    words: Annotated[Numbers, Overlay("memory"), (DATA_WORDS,)]  # the same, eight bytes each

    # --- settings: they stay while a chip runs ----------------------------------------------------
    image: int  # which flash image this chip runs
    private_image: int  # 1 if that image belongs to this chip alone, so that SPM may change it
    reset_vector: int
    boot_start: int  # first word of the boot section (BOOTSZ fuses)
    stop_when_halted: int  # 1: stop as soon as nothing but a reset can change what the program does
    strict: int  # 1: every report stops the chip
    skip_idle: int  # 1: jump over idle loops in closed form (never changes a result)
    tape_in_time: int  # 1: tape rows carry world time, 0: chip cycles
    analog_pin: int  # pins of port D that must be high for PULSE rows to reach the chip; 0 = always
    rc_period_factory: int  # the same with the factory OSCCAL
    logged_pins: Annotated[Numbers, (3,)]  # pins whose changes go to the log
    aref_microvolts: int
    avcc_microvolts: int
    noise_key: int
    fuses: Annotated[Numbers, (4,)]  # low, lock, extended, high: in the order LPM reads them
    oscillator_calibration: int
    watchdog_period: int  # time units per cycle of its own 128 kHz oscillator
    # deviation of a model noise, by channel
    adc_noise_microvolts: Annotated[NDArray[np.int32], (16,)]

    # --- what can be put back without a copy ------------------------------------------------------
    # `log` and `reports` are valid up to their counts, `cpu` only while it runs,
    # `eeprom` has its undo list, the page buffer changes only in chips with a private image, and
    # what is known about loops can be found out again.
    eeprom: Annotated[NDArray[np.uint8], (EEPROM_SIZE,)]
    report_cycle: Annotated[Numbers, (REPORT_SIZE,)]
    reports: Annotated[NDArray[np.int32], (REPORT_SIZE, 3)]  # kind, pc, address
    log: Annotated[Numbers, (LOG_SIZE,)]
    cpu: Annotated[Numbers, (CPU_SIZE,)]  # where it stands while it runs: see chip.cpu
    page_loaded: Annotated[NDArray[np.uint8], (PAGE_WORDS,)]  # 1: that word was filled
    page_buffer: Annotated[NDArray[np.uint16], (PAGE_WORDS,)]
    # Which bytes are touched: see ``word_of``. Written are noted all the time, but by the stack.
    bytes_read: Annotated[Numbers, (TOUCHED_WORDS,)]
    bytes_written: Annotated[Numbers, (TOUCHED_WORDS,)]
    loop_serial: int  # counts loops; the last one is described here
    loop_touched: Annotated[Numbers, (TOUCHED_WORDS,)]
    loop_stack: int  # stack pointer where it begins
    loop_pushes: int  # those of bytes that it pushes with different values
    loop_push: Annotated[Numbers, (LOOP_PUSHES,)]  # offset << 24 | address << 8 | value
    image_words: int  # words with bytes that it always pushes with the same value; -1 = too many
    image_word: Annotated[NDArray[np.int16], (IMAGE_WORDS,)]  # address / 8
    image_mask: Annotated[Numbers, (IMAGE_WORDS,)]
    image_value: Annotated[Numbers, (IMAGE_WORDS,)]
    suspended_at: int  # where it was interrupted
    suspended_pc: int
    suspended_sp: int
    suspended_sreg: int
    suspended_registers: Annotated[Numbers, (4,)]
    suspended_stack: Annotated[Numbers, (STACK_WORDS,)]  # from the stack pointer on


def record_dtype(row: type) -> np.dtype[Any]:
    """Build the numpy record layout from a row class's annotations."""
    fields: list[tuple[Any, ...]] = []
    overlays: list[tuple[str, str, Any]] = []
    for name, hint in get_type_hints(row, include_extras=True).items():
        if hint is int or hint is float:
            fields.append((name, np.int64 if hint is int else np.float64))
            continue
        array, *rest = get_args(hint)
        shape = rest[-1]
        if len(rest) == 1:
            fields.append((name, _element_type(array), shape))
        elif isinstance(rest[0], Overlay):
            overlays.append((name, rest[0].of, np.dtype((_element_type(array), shape))))
        else:
            fields.append((name, record_dtype(rest[0]), shape))
    layout = np.dtype(fields, align=True)
    # Padding is not copied reliably and would make equal chips look different in a digest.
    assert layout.itemsize == np.dtype(fields).itemsize, f"{row.__name__} has padding"
    return _with_overlays(layout, overlays) if overlays else layout


def _with_overlays(layout: np.dtype[Any], overlays: list[tuple[str, str, Any]]) -> np.dtype[Any]:
    known: Any = dict(layout.fields or {})
    for name, of, kind in overlays:
        assert known[of][0].itemsize == kind.itemsize, f"{name} does not fit {of}"
        known[name] = (kind, known[of][1])
    return np.dtype(
        {
            "names": list(known),
            "formats": [kind for kind, _ in known.values()],
            "offsets": [offset for _, offset in known.values()],
            "itemsize": layout.itemsize,
        }
    )


def _element_type(array: Any) -> Any:
    if array is Numbers:
        return np.int64
    scalar = get_args(array)[1]
    if get_origin(scalar) is np.dtype or isinstance(scalar, types.GenericAlias):
        return get_args(scalar)[0]
    raise TypeError(f"not an array annotation: {array!r}")


CHIP_DTYPE = record_dtype(ChipRow)


def _beginning_of(layout: np.dtype[Any], behind: str) -> np.dtype[Any]:
    """Return the part of a record layout in front of a field."""
    fields: Any = layout.fields
    names = [name for name in fields if fields[name][1] < fields[behind][1]]
    return np.dtype(
        {
            "names": names,
            "formats": [fields[name][0] for name in names],
            "offsets": [fields[name][1] for name in names],
            "itemsize": fields[behind][1],
        }
    )


SNAPSHOT_DTYPE = _beginning_of(CHIP_DTYPE, "image")
"""The part of a chip's record that a snapshot has to keep: its beginning."""

Chips = np.recarray[Any, Any]
"""An array of ``CHIP_DTYPE`` records, one per robot."""


def allocate(count: int) -> Chips:
    """Return ``count`` zeroed chips; ``chip.reset.power_on`` makes them live."""
    return np.zeros(count, dtype=CHIP_DTYPE).view(np.recarray)
