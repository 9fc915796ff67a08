"""USART0 in asynchronous mode (DS 19; timing reference 10).

The transmitter works out a whole frame when it begins; bit boundaries are events only while
somebody watches PD1, the end of a frame only while somebody waits for it. The receiver remembers
the level of RXD since its last edge and draws its samples from edge to edge: nothing happens in
between but the end of a frame, and that is an event only with RXCIE set.

Choices where the datasheet leaves room:

* A byte written to an idle transmitter begins its start bit at the edge at which the write lands,
  and UDRE stays 1. The phase of the free-running baud rate divider is not modelled (timing
  reference 13.7).
* Receiver samples are counted from the start edge: sample m of bit b is taken
  ``(16 b + m) (UBRR + 1)`` cycles after it (8 with U2X). RXD's synchroniser is not modelled.
* A frame keeps the baud rate and format with which it began.
* Writing UDR0 while TXEN is 0 does nothing.
* DOR appears with the byte at the head of the FIFO as soon as a start bit finds FIFO and shift
  register full, and goes when UDR0 is read; the frame that began with that start bit is lost.
* Reserved UPM 1 means no parity, reserved UCSZ 4 to 6 mean 5 to 7 bits.

Synchronous and SPI-master modes (UMSEL not 0) are stored but not clocked: a byte written there
stays in the buffer with UDRE 0, and nothing is received.
"""

from __future__ import annotations

from avrswarm.chip.agenda import plan
from avrswarm.chip.interrupts import set_request
from avrswarm.chip.peripherals import gpio
from avrswarm.chip.registers import PCMSK2, UBRR0H, UBRR0L, UCSR0A, UCSR0B, UCSR0C, UDR0
from avrswarm.chip.state import NEVER, RUNNING, ChipRow, Log, Source
from avrswarm.chip.vectors import Vector
from avrswarm.jit import kernel

RXC, TXC, UDRE, FE, DOR, UPE, U2X, MPCM = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
RXCIE, TXCIE, UDRIE, RXEN, TXEN, UCSZ2, RXB8, TXB8 = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
UMSEL, UPM1, UPM0, USBS = 0xC0, 0x20, 0x10, 0x08

# What comes with a received byte, above its eight bits.
_NINTH, _FRAME_ERROR, _OVERRUN, _PARITY_ERROR = 1 << 8, 1 << 9, 1 << 10, 1 << 11

_RXD, _TXD = 0x01, 0x02  # PD0, PD1
_FULL = 3  # two levels of FIFO and the shift register


# --- settings -------------------------------------------------------------------------------------


@kernel
def reset(c: ChipRow) -> None:
    """Forget everything that is not a register in ``c.memory``, as any reset does."""
    c.txd = 1
    c.tx_busy = 0
    c.tx_complete = 0
    c.tx_buffered = 0
    c.rx_active = 0
    c.rx_count = 0
    c.rx_level = c.pin_level[gpio.D] & _RXD
    c.usart_stopped = RUNNING
    update_requests(c)
    schedule(c)


@kernel
def power_on(c: ChipRow) -> None:
    """Set what is not zero at power-on."""
    reset(c)


@kernel
def _is_asynchronous(c: ChipRow) -> bool:
    return int(c.memory[UCSR0C]) & UMSEL == 0


@kernel
def _data_bits(c: ChipRow) -> int:
    """Return the number of data bits, 5 to 9 (DS table 19-7)."""
    size = (int(c.memory[UCSR0C]) >> 1) & 3
    if int(c.memory[UCSR0B]) & UCSZ2 and size == 3:
        return 9
    return 5 + size


@kernel
def _clock(c: ChipRow) -> int:
    """Return the cycles per clock of the receiver: UBRR + 1."""
    return (int(c.memory[UBRR0H]) << 8 | int(c.memory[UBRR0L])) + 1


@kernel
def _clocks_per_bit(c: ChipRow) -> int:
    return 8 if int(c.memory[UCSR0A]) & U2X else 16


@kernel
def _parity(data: int, odd: int) -> int:
    """Return the parity bit of nine data bits."""
    data ^= data >> 8
    data ^= data >> 4
    data ^= data >> 2
    data ^= data >> 1
    return (data ^ odd) & 1


# --- transmitter ----------------------------------------------------------------------------------


@kernel
def _drive(c: ChipRow, level: int, edge: int) -> None:
    """Put a level on TXD at ``edge``, which may have passed if nobody watched the pin."""
    c.txd = level
    gpio.refresh(c, gpio.D, edge)


@kernel
def _load_shifter(c: ChipRow, edge: int) -> None:
    """Begin the frame of a waiting byte at ``edge`` if the shift register is free."""
    if c.tx_busy or not c.tx_buffered or not _is_asynchronous(c):
        return
    control = int(c.memory[UCSR0C])
    bits = _data_bits(c)
    data = c.tx_buffer & ((1 << bits) - 1)
    frame = data << 1
    length = 1 + bits
    if control & UPM1:
        frame |= _parity(data, 1 if control & UPM0 else 0) << length
        length += 1
    stop_bits = 2 if control & USBS else 1
    frame |= ((1 << stop_bits) - 1) << length
    length += stop_bits
    c.tx_buffered = 0
    c.tx_busy = 1
    c.tx_frame = frame
    c.tx_bits = length
    c.tx_bit = 0
    c.tx_bit_cycles = _clocks_per_bit(c) * _clock(c)
    c.tx_start = edge
    c.tx_end = edge + length * c.tx_bit_cycles
    gpio.log(c, edge, Log.UART, c.tx_buffer & 0xFF)
    _drive(c, 0, edge)


@kernel
def _shift_out(c: ChipRow, edge: int) -> None:
    """Move TXD through the bits of this frame that have begun by ``edge``."""
    begun = min((edge - c.tx_start) // c.tx_bit_cycles, c.tx_bits - 1)
    while c.tx_bit < begun:
        c.tx_bit += 1
        level = c.tx_frame >> c.tx_bit & 1
        if level != c.txd:
            _drive(c, level, c.tx_start + c.tx_bit * c.tx_bit_cycles)


@kernel
def _end_frame(c: ChipRow) -> None:
    end = c.tx_end
    c.tx_busy = 0
    if c.tx_buffered:
        _load_shifter(c, end)
    else:
        c.tx_complete = 1
    if not c.tx_busy and not int(c.memory[UCSR0B]) & TXEN:
        gpio.refresh(c, gpio.D, end)  # DS 19.6.5: only now does PD1 go back
    update_requests(c)


@kernel
def catch_up_tx(c: ChipRow, edge: int) -> None:
    """Let everything the transmitter does at edges up to and including ``edge`` happen."""
    if not c.tx_busy or c.usart_stopped != RUNNING:
        return
    while c.tx_busy:
        _shift_out(c, edge)
        if c.tx_end > edge:
            break
        _end_frame(c)
    schedule(c)


@kernel
def refresh_txd(c: ChipRow, edge: int) -> None:
    """Bring PD1 up to date for someone who looks at port D, or who begins to watch it.

    Call it before PIND is read, and before PCMSK2 or ``logged_pins`` change; then ``schedule``.
    """
    catch_up_tx(c, edge)


# --- receiver -------------------------------------------------------------------------------------


@kernel
def rxd_edge(c: ChipRow, edge: int) -> None:
    """Take note that PD0 changed at ``edge``; a fall while idle begins a frame."""
    if c.usart_stopped != RUNNING:
        return
    catch_up_rx(c, edge)  # samples at this very edge still see the old level
    level = c.pin_level[gpio.D] & _RXD
    if level == c.rx_level:
        return
    c.rx_level = level
    if level == 0 and not c.rx_active and int(c.memory[UCSR0B]) & RXEN and _is_asynchronous(c):
        _begin_reception(c, edge)


@kernel
def _begin_reception(c: ChipRow, edge: int) -> None:
    control = int(c.memory[UCSR0C])
    c.rx_active = 1
    c.rx_lost = 0
    c.rx_start = edge
    c.rx_clock = _clock(c)
    c.rx_clocks_per_bit = _clocks_per_bit(c)
    c.rx_data_bits = _data_bits(c)
    c.rx_parity = (control & (UPM1 | UPM0)) >> 4 if control & UPM1 else 0
    c.rx_sample = c.rx_clocks_per_bit // 2
    c.rx_votes = 0
    c.rx_shift = 0
    c.rx_bit = 0
    schedule(c)


@kernel
def _sample(c: ChipRow) -> None:
    """Take one of the three samples of a bit; the third decides (DS 19.8.2)."""
    c.rx_votes += c.rx_level
    if c.rx_sample % c.rx_clocks_per_bit < c.rx_clocks_per_bit // 2 + 2:
        c.rx_sample += 1
        return
    bit = 1 if c.rx_votes >= 2 else 0
    number = c.rx_bit
    c.rx_votes = 0
    c.rx_sample += c.rx_clocks_per_bit - 2
    c.rx_bit += 1
    if number == 0:
        if bit:
            c.rx_active = 0  # a noise spike, not a start bit
        elif c.rx_count == _FULL:
            c.rx_lost = 1
            c.rx_fifo[0] |= _OVERRUN
    elif number <= c.rx_data_bits:
        c.rx_shift |= bit << (number - 1)
    elif c.rx_parity and number == c.rx_data_bits + 1:
        if bit != _parity(c.rx_shift, c.rx_parity & 1):
            c.rx_shift |= _PARITY_ERROR
    else:
        _end_reception(c, bit)


@kernel
def _end_reception(c: ChipRow, stop_bit: int) -> None:
    c.rx_active = 0
    if c.rx_lost:
        return
    if int(c.memory[UCSR0A]) & MPCM:  # DS 19.9: only address frames pass
        address = c.rx_shift & _NINTH if c.rx_data_bits == 9 else stop_bit
        if not address:
            return
    if not stop_bit:
        c.rx_shift |= _FRAME_ERROR
    c.rx_fifo[c.rx_count] = c.rx_shift
    c.rx_count += 1
    update_requests(c)


@kernel
def catch_up_rx(c: ChipRow, edge: int) -> None:
    """Let everything the receiver does at edges up to and including ``edge`` happen."""
    if not c.rx_active or c.usart_stopped != RUNNING:
        return
    while c.rx_active and c.rx_start + c.rx_sample * c.rx_clock <= edge:
        _sample(c)
    schedule(c)


@kernel
def _pop(c: ChipRow) -> int:
    """Return the oldest byte and drop it; an empty FIFO gives its last byte again."""
    data = int(c.rx_fifo[0]) & 0xFF
    if c.rx_count:
        c.rx_count -= 1
        for place in range(c.rx_count):
            c.rx_fifo[place] = c.rx_fifo[place + 1]
        if not c.rx_count:
            c.rx_fifo[0] = data
        update_requests(c)
    return data


# --- both -----------------------------------------------------------------------------------------


@kernel
def update_requests(c: ChipRow) -> None:
    """Recompute the three interrupt requests."""
    control = int(c.memory[UCSR0B])
    set_request(c, Vector.USART_RX, c.rx_count != 0 and control & RXCIE != 0)
    set_request(c, Vector.USART_UDRE, c.tx_buffered == 0 and control & UDRIE != 0)
    set_request(c, Vector.USART_TX, c.tx_complete != 0 and control & TXCIE != 0)


@kernel
def _next_transmitter_event(c: ChipRow) -> int:
    control = int(c.memory[UCSR0B])
    if (c.logged_pins[gpio.D] | int(c.memory[PCMSK2])) & _TXD:
        bit = c.tx_bit + 1
        while bit < c.tx_bits:
            if c.tx_frame >> bit & 1 != c.txd:
                return c.tx_start + bit * c.tx_bit_cycles
            bit += 1
    if c.tx_buffered or control & TXCIE or not control & TXEN:
        return c.tx_end
    return NEVER


@kernel
def schedule(c: ChipRow) -> None:
    """Recompute when transmitter and receiver next matter to others."""
    transmit, receive = NEVER, NEVER
    if c.usart_stopped == RUNNING:
        if c.tx_busy:
            transmit = _next_transmitter_event(c)
        if c.rx_active and int(c.memory[UCSR0B]) & RXCIE:
            stop_bit = 1 + c.rx_data_bits + (1 if c.rx_parity else 0)
            clocks = c.rx_clocks_per_bit * stop_bit + c.rx_clocks_per_bit // 2 + 2
            receive = c.rx_start + clocks * c.rx_clock
    plan(c, Source.USART_TX, transmit)
    plan(c, Source.USART_RX, receive)


@kernel
def stop_clock(c: ChipRow, edge: int) -> None:
    """Freeze the USART: PRR.PRUSART0 was set, or clk_IO stands still in a deep sleep."""
    if c.usart_stopped != RUNNING:
        return
    catch_up_tx(c, edge)
    catch_up_rx(c, edge)
    c.usart_stopped = edge
    schedule(c)


@kernel
def start_clock(c: ChipRow, edge: int) -> None:
    """Go on where ``stop_clock`` left off; an RXD level that differs by now is seen as an edge."""
    if c.usart_stopped == RUNNING:
        return
    pause = edge - c.usart_stopped
    c.usart_stopped = RUNNING
    c.tx_start += pause
    c.tx_end += pause
    c.rx_start += pause
    rxd_edge(c, edge)
    schedule(c)


@kernel
def peek(c: ChipRow, address: int, cycle: int) -> int:
    """Return what a read in ``cycle`` would, without taking anything from the FIFO."""
    if address == UCSR0A:
        catch_up_tx(c, cycle)
        catch_up_rx(c, cycle)
        value = int(c.memory[UCSR0A]) & (U2X | MPCM)
        if not c.tx_buffered:
            value |= UDRE
        if c.tx_complete:
            value |= TXC
        if c.rx_count:
            head = c.rx_fifo[0]
            value |= RXC
            if head & _FRAME_ERROR:
                value |= FE
            if head & _OVERRUN:
                value |= DOR
            if head & _PARITY_ERROR:
                value |= UPE
        return value
    if address == UCSR0B:
        catch_up_rx(c, cycle)
        return int(c.memory[UCSR0B]) & ~RXB8 | (RXB8 if c.rx_fifo[0] & _NINTH else 0)
    if address == UDR0:
        catch_up_rx(c, cycle)
        return int(c.rx_fifo[0] & 0xFF)
    return int(c.memory[address])


@kernel
def steady_until(c: ChipRow, cycle: int) -> int:
    """Return when UCSR0A may next read otherwise than in ``cycle``."""
    if c.rx_active:
        return cycle
    return c.tx_end if c.tx_busy else NEVER


@kernel
def read(c: ChipRow, address: int, cycle: int) -> int:
    """Read a USART register in ``cycle``; UDR0 takes the byte from the FIFO."""
    value = peek(c, address, cycle)
    if address == UDR0:
        _pop(c)
    return value


@kernel
def write(c: ChipRow, address: int, value: int, edge: int) -> None:
    """Write a USART register."""
    if c.usart_stopped != RUNNING:
        return
    catch_up_tx(c, edge)
    catch_up_rx(c, edge)
    if address == UDR0:
        if int(c.memory[UCSR0B]) & TXEN and not c.tx_buffered:
            c.tx_buffer = value | (int(c.memory[UCSR0B]) & TXB8) << 8
            c.tx_buffered = 1
            _load_shifter(c, edge)
    elif address == UCSR0A:
        if value & TXC:
            c.tx_complete = 0
        c.memory[UCSR0A] = value & (U2X | MPCM)
    elif address == UCSR0B:
        _write_control(c, value, edge)
    elif address == UCSR0C:
        c.memory[UCSR0C] = value
        _load_shifter(c, edge)
    elif address == UBRR0H:
        c.memory[UBRR0H] = value & 0x0F
    else:
        c.memory[address] = value
    update_requests(c)
    schedule(c)


@kernel
def _write_control(c: ChipRow, value: int, edge: int) -> None:
    """Write UCSR0B: RXEN and TXEN take their pins."""
    old = int(c.memory[UCSR0B])
    c.memory[UCSR0B] = value & ~RXB8 & 0xFF
    if not value & RXEN:
        c.rx_active = 0
        c.rx_count = 0  # DS 19.7.5: switching the receiver off empties the FIFO
        c.rx_fifo[0] &= 0xFF
    if not value & TXEN and not c.tx_busy:
        c.tx_buffered = 0
    if (value ^ old) & (RXEN | TXEN):
        gpio.refresh(c, gpio.D, edge)
        if value & RXEN and not old & RXEN:
            c.rx_level = c.pin_level[gpio.D] & _RXD
