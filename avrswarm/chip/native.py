"""The door between the core and translated code (``avrswarm.engine``).

Translated code works on a chip's registers and SRAM in place. What else it needs, and where it
stands when it returns, is in ``ChipRow.cpu`` (``avrswarm.chip.cpu``). It comes back to the core in
front of an instruction that it leaves to it, behind RETI, or when the next instruction would start
after ``Slot.LIMIT``. For the I/O space, and to let interrupts in, it calls the functions below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, from_dtype, types
from numba.np import arrayobj
from numpy.typing import NDArray

from avrswarm.chip.cpu import Slot
from avrswarm.chip.data_space import after_store, change_bit, horizon, read_data, write_data
from avrswarm.chip.state import CHIP_DTYPE, ChipRow, Touch
from avrswarm.isa.decode import FLASH_WORDS
from avrswarm.jit import kernel

STEPS = FLASH_WORDS
"""Where a table of blocks goes on with functions of single instructions: see ``engine.emit``."""

ENTER = 2 * FLASH_WORDS
"""Where it has the function that enters one of them; 0 there: nothing is translated."""

NO_BLOCKS: NDArray[np.int64] = np.zeros(ENTER + 1, np.int64)
"""A table for programs that are not translated."""


_intrinsic: Any = extending.intrinsic  # annotated for callers that pass the typing context too
_make_array: Any = arrayobj.make_array
_populate_array: Any = arrayobj.populate_array

_RECORD = from_dtype(CHIP_DTYPE)
_TAPE = types.Array(types.int64, 2, "C")


@_intrinsic
def _chip_at(_typing: Any, address: Any) -> Any:
    """Return the chip record at an address."""

    def generate(_context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _context.get_value_type(signature.return_type)
        return builder.inttoptr(arguments[0], pointer)

    return _RECORD(types.int64), generate


@_intrinsic
def _tape_at(_typing: Any, address: Any, rows: Any) -> Any:
    """Return the tape of so many rows at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, rows = arguments
        number = context.get_constant(types.intp, 1).type
        tape = _make_array(_TAPE)(context, builder)
        _populate_array(
            tape,
            data=builder.inttoptr(address, tape.data.type),
            shape=(rows, number(4)),
            strides=(number(32), number(8)),
            itemsize=number(8),
            meminfo=None,
        )
        return tape._getvalue()

    return _TAPE(types.int64, types.int64), generate


@_intrinsic
def address_of_row(_typing: Any, row: Any) -> Any:
    """Return where a chip record is."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(arguments[0], ir.IntType(64))

    return types.int64(row), generate


@_intrinsic
def address_of_array(_typing: Any, array: Any) -> Any:
    """Return where an array's content is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        content = _make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(content.data, ir.IntType(64))

    return types.int64(array), generate


@_intrinsic
def address_of_kernel(_typing: Any, function: Any) -> Any:
    """Return where a function in C's convention is that calls a kernel of five integers."""
    integers = (types.int64,) * 5
    function.dispatcher.get_call_template(integers, {})
    compiled = function.dispatcher.overloads[integers]

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        context.active_code_library.add_linking_library(compiled.library)
        code = context.declare_function(builder.module, compiled.fndesc)
        number = ir.IntType(64)
        plain = ir.Function(
            builder.module, ir.FunctionType(number, [number] * 5), f"plain.{code.name}"
        )
        plain.linkage = "internal"
        inside = ir.IRBuilder(plain.append_basic_block())
        _, result = context.call_conv.call_function(inside, code, types.int64, integers, plain.args)
        inside.ret(result)
        return builder.ptrtoint(plain, number)

    return types.int64(function), generate


@_intrinsic
def call_block(_typing: Any, enter: Any, chip: Any, block: Any) -> Any:
    """Let translated code run from ``block`` on; ``enter`` is what its table has at ``ENTER``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        convention = ir.FunctionType(ir.VoidType(), [number, number])
        function = builder.inttoptr(arguments[0], convention.as_pointer())
        builder.call(function, arguments[1:])
        return _context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


@kernel
def load(chip: int, address: int, cycle: int, here: int, _unused: int) -> int:
    """Read an I/O register for the instruction at ``here`` that ends at ``cycle``."""
    c = _chip_at(chip)
    n = c.cpu
    event = c.next_event
    value = read_data(c, _tape_at(n[Slot.TAPE], n[Slot.TAPE_ROWS]), address, cycle - 1, here)
    if event < cycle or c.next_event < event or c.fault:  # otherwise the limit is what it was
        n[Slot.LIMIT] = min(horizon(c, n[Slot.I], cycle - 1, n[Slot.STOP]), n[Slot.CEILING])
    _end_probe_if_hopeless(c)
    return value


@kernel
def store(chip: int, address: int, cycle: int, here: int, value: int) -> int:
    """Write an I/O register at ``cycle``; return the cycle at which the next instruction starts."""
    c = _chip_at(chip)
    tape = _tape_at(c.cpu[Slot.TAPE], c.cpu[Slot.TAPE_ROWS])
    write_data(c, tape, address, value, cycle, here)
    return _finish_store(c, cycle)


@kernel
def set_or_clear(chip: int, address: int, cycle: int, here: int, mask: int) -> int:
    """Do SBI, or CBI if ``mask`` has bit 8 set; return when the next instruction starts."""
    c = _chip_at(chip)
    tape = _tape_at(c.cpu[Slot.TAPE], c.cpu[Slot.TAPE_ROWS])
    change_bit(c, tape, address, mask & 0xFF, mask < 0x100, cycle, here)
    return _finish_store(c, cycle)


@kernel
def let_interrupt(chip: int, _address: int, cycle: int, _here: int, _unused: int) -> int:
    """Set I, for SEI or OUT SREG that ends at ``cycle``: one more instruction runs first."""
    c = _chip_at(chip)
    n = c.cpu
    n[Slot.I] = 1
    c.held_until = max(c.held_until, cycle + 1)
    n[Slot.LIMIT] = min(horizon(c, 1, cycle, n[Slot.STOP]), n[Slot.CEILING])
    return 0


@kernel
def _end_probe_if_hopeless(c: ChipRow) -> None:
    """Go back to the core if a loop under probe has touched what is not only a byte."""
    if c.cpu[Slot.NOTING] and c.io_touched & Touch.VOLATILE:
        c.cpu[Slot.LIMIT] = -1


@kernel
def _finish_store(c: ChipRow, cycle: int) -> int:
    n = c.cpu
    n[Slot.LIMIT] = after_store(c, n[Slot.I], cycle, n[Slot.LIMIT], n[Slot.STOP], n[Slot.CEILING])
    _end_probe_if_hopeless(c)
    cycle += c.stall
    c.stall = 0
    return cycle


@kernel
def prepare(
    c: ChipRow,
    flash: NDArray[np.uint16],
    tape: NDArray[np.int64],
    pushes: NDArray[np.int64],
) -> None:
    """Fill in what stays the same while the core runs."""
    n = c.cpu
    n[Slot.PUSHES] = address_of_array(pushes)
    n[Slot.FLASH] = address_of_array(flash)
    n[Slot.TAPE] = address_of_array(tape)
    n[Slot.TAPE_ROWS] = tape.shape[0]
    n[Slot.LOAD] = address_of_kernel(load)
    n[Slot.STORE] = address_of_kernel(store)
    n[Slot.CHANGE_BIT] = address_of_kernel(set_or_clear)
    n[Slot.LET_INTERRUPT] = address_of_kernel(let_interrupt)
