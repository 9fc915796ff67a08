"""How threads share the robots of a round without waiting for each other.

One thread leads: it decides what is to be done and is able to do all of it alone. Others help while
they are there. A round is a number of tasks, in a queue for each thread: the same robots go to the
same thread again and again, whose core has them in its caches. Whoever is done with its own queue
takes from those of others. The leader closes the round and goes on as soon as no helper is busy any
more, so a helper that the operating system has put aside costs nothing but its help.

The board on which this is written is an array of numbers, read and written with atomic
instructions. Which thread does what changes speed, never results: tasks of a round do not see each
other.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from avrswarm.jit import kernel

Board = NDArray[np.int64]

_cgutils: Any = cgutils  # without annotations

LINE = 16
"""Numbers after which different threads do not disturb each other: two cache lines, because the
processor fetches them in pairs."""

# Places on the board; what different threads write is in different cache lines.
OPEN, BUSY, DISMISSED, QUEUES = 0, LINE, 2 * LINE, 3 * LINE
"""From ``QUEUES`` on two lines for each thread: the next task of its queue, and the queue's end."""

MOST_AT_ONCE = 4
"""Tasks that a thread takes in one go."""

SPINS_BEFORE_YIELD = 200
PATIENCE = 3000
"""Looks, each after giving way to other threads, after which a helper without work goes away."""


def make_numbers(count: int) -> NDArray[np.int64]:
    """Return zeros that share no cache line with anything else."""
    return np.zeros(count + 2 * LINE, np.int64)[LINE : LINE + count]


def make_board(threads: int) -> Board:
    """Return a board without work."""
    return make_numbers(QUEUES + 2 * LINE * threads)


def _place(context: Any, builder: Any, signature: Signature, board: Any, place: Any) -> Any:
    array = _cgutils.create_struct_proxy(signature.args[0])(context, builder, board)
    return builder.gep(array.data, [place])


def _generate_add(typing: Any, board: Any, place: Any, value: Any) -> Any:
    """Add to a number on the board; return what it was."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        number = _place(context, builder, signature, arguments[0], arguments[1])
        return builder.atomic_rmw("add", number, arguments[2], "seq_cst")

    return types.int64(board, types.int64, types.int64), generate


def _generate_read(typing: Any, board: Any, place: Any) -> Any:
    """Return a number on the board."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        number = _place(context, builder, signature, arguments[0], arguments[1])
        return builder.load_atomic(number, "seq_cst", 8)

    return types.int64(board, types.int64), generate


def _generate_write(typing: Any, board: Any, place: Any, value: Any) -> Any:
    """Put a number on the board."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        number = _place(context, builder, signature, arguments[0], arguments[1])
        builder.store_atomic(arguments[2], number, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(board, types.int64, types.int64), generate


def _generate_yield(typing: Any) -> Any:
    """Let another thread run, if one waits for this processor."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        if sys.platform != "win32":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(_cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def _generate_clock(typing: Any) -> Any:
    """Return a number that grows with time, or 0 where a program may not read such a clock."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        number = ir.IntType(64)
        if platform.machine() not in ("x86_64", "AMD64"):
            return number(0)
        kind = ir.FunctionType(number, [])
        clock = _cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter")
        return builder.call(clock, [])

    return types.int64(), generate


atomic_add: Any = intrinsic(_generate_add)
atomic_read: Any = intrinsic(_generate_read)
atomic_write: Any = intrinsic(_generate_write)
give_way: Any = intrinsic(_generate_yield)
_clock: Any = intrinsic(_generate_clock)


@kernel
def put_in_queue(board: Board, thread: int, first: int, end: int) -> None:
    """Make tasks the queue of a thread, before a round is opened."""
    atomic_write(board, QUEUES + 2 * LINE * thread, first)
    atomic_write(board, QUEUES + 2 * LINE * thread + LINE, end)


@kernel
def open_round(board: Board) -> None:
    """Offer what is in the queues to helpers."""
    atomic_write(board, OPEN, 1)


@kernel
def take_tasks(board: Board, thread: int, threads: int) -> tuple[int, int]:
    """Return first and end of some tasks that nobody else does; the same number if there are none.

    They are of the thread's own queue or, if that is empty, of another's.
    """
    for number in range(threads):
        queue = QUEUES + 2 * LINE * ((thread + number) % threads)
        end: int = atomic_read(board, queue + LINE)
        many = max(1, min(MOST_AT_ONCE, (end - atomic_read(board, queue)) // 4))
        first: int = atomic_add(board, queue, many)
        if first < end:
            return first, min(first + many, end)
    return 0, 0


@kernel
def close_round(board: Board) -> None:
    """Wait until all tasks that were taken are done; helpers take no more."""
    atomic_write(board, OPEN, 0)
    looks = 0
    while atomic_read(board, BUSY) > 0:
        looks += 1
        if looks % SPINS_BEFORE_YIELD == 0:
            give_way()


@kernel
def join_round(board: Board) -> bool:
    """Wait, as a helper, for a round; False: go home. Whoever has joined must leave."""
    looks = 0
    while atomic_read(board, DISMISSED) == 0 and looks < PATIENCE * SPINS_BEFORE_YIELD:
        if atomic_read(board, OPEN):
            atomic_add(board, BUSY, 1)
            if atomic_read(board, OPEN):  # still: from here on the leader waits for us
                return True
            leave_round(board)
        looks += 1
        if looks % SPINS_BEFORE_YIELD == 0:
            give_way()
    return False


@kernel
def leave_round(board: Board) -> None:
    """Say that a helper has done what it has taken."""
    atomic_add(board, BUSY, -1)


@kernel
def ticks_now() -> int:
    """Return the time of now in ticks of the processor's clock; only differences mean something."""
    ticks: int = _clock()
    return ticks
