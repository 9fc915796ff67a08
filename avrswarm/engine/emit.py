"""LLVM IR for translated code: one function per entry, and one per instruction.

The function of an *entry* begins where control may come from several places and goes on until it
comes to another such place, which it jumps to (``musttail``). Between the two, AVR registers and
flags are values, not memory: a flag that is computed and not used costs nothing. Wherever a
function may leave, they are put back first. In front of each stretch without branches the cycle
count is compared with the limit: it runs only if its last instruction may start.

Otherwise *steps* run, functions of single instructions, up to exactly the limit. The core begins
with a step where it cannot begin with an entry: in the middle of a stretch, to which an interrupt
has come and gone. Steps also do what it takes to prove a loop (``avrswarm.chip.idle``): they note
which bytes are read, written and pushed. Entries note only what is written, for interrupts that
come to a proven loop.

I/O registers are read and written through the core's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from avrswarm.chip.bus import DYNAMIC, EXISTS
from avrswarm.chip.cpu import Slot
from avrswarm.chip.idle import DEEPEST_STACK, MOST_PUSHES
from avrswarm.chip.native import STEPS
from avrswarm.chip.registers import (
    DDRB,
    DDRC,
    DDRD,
    GPIOR0,
    GPIOR1,
    GPIOR2,
    PINB,
    PINC,
    PIND,
    PORTB,
    PORTC,
    PORTD,
    SPH,
    SPL,
    SREG,
)
from avrswarm.chip.state import (
    CHIP_DTYPE,
    DATA_SIZE,
    NEVER,
    SRAM_START,
    Touch,
    bit_of,
    word_of,
)
from avrswarm.engine.flow import CLOSES_A_DELAY, Flow, Instruction
from avrswarm.isa.decode import PC_MASK
from avrswarm.isa.table import TABLE, Op

ARGUMENTS = "ptr noalias %chip, ptr noalias %regs, ptr noalias %sram, i64 %cycle, i64 %sp, i64 %pc"
"""Of entries, steps and ``@next``, which alone looks at the last one."""
LONGEST_TREE = 400  # instructions in one function
LARGE = 4000
"""Instructions from which on steps are not optimised, which halves the time to translate: they are
a twentieth of what a swarm's chips take."""

Value = str  # the name of an SSA value, or a number
Flag = Value | Callable[["Writer"], Value]
"""A flag as a value, or as what to write to compute it."""

FLAG_SLOTS = {
    "carry": Slot.CARRY,
    "zero": Slot.ZERO,
    "negative": Slot.NEGATIVE,
    "overflow": Slot.OVERFLOW,
    "sign": Slot.SIGN,
    "half": Slot.HALF,
}


def _offset(field_name: str) -> int:
    return int(CHIP_DTYPE.fields[field_name][1])  # type: ignore[index]


CPU = _offset("cpu")
MEMORY = _offset("memory")
SPM_WINDOW = _offset("spm_window")
RWW_BUSY = _offset("rww_busy")
HELD_UNTIL = _offset("held_until")
SKIP_IDLE = _offset("skip_idle")
READ = _offset("bytes_read")
WRITTEN = _offset("bytes_written")
IO_TOUCHED = _offset("io_touched")


class Writer:
    """Collects the lines of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def name(self, prefix: str = "v") -> str:
        """Return a name that is not used yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def put(self, text: str) -> None:
        """Write a line."""
        self.lines.append(text)

    def value(self, text: str) -> Value:
        """Write an instruction that gives a value."""
        name = "%" + self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{name}:")

    # ---- arithmetic on 32 bits -------------------------------------------------------------------

    def op(self, operation: str, a: Value, b: Value | int) -> Value:
        """Write a binary operation."""
        return self.value(f"{operation} i32 {a}, {b}")

    def add(self, a: Value, b: Value | int) -> Value:
        """Write a sum."""
        return self.op("add", a, b)

    def sub(self, a: Value, b: Value | int) -> Value:
        """Write a difference."""
        return self.op("sub", a, b)

    def conj(self, a: Value, b: Value | int) -> Value:
        """Write a bitwise and."""
        return self.op("and", a, b)

    def disj(self, a: Value, b: Value | int) -> Value:
        """Write a bitwise or."""
        return self.op("or", a, b)

    def xor(self, a: Value, b: Value | int) -> Value:
        """Write a bitwise exclusive or."""
        return self.op("xor", a, b)

    def left(self, a: Value, b: int) -> Value:
        """Write a shift to the left."""
        return self.op("shl", a, b)

    def right(self, a: Value, b: int) -> Value:
        """Write a shift to the right that fills with zeros."""
        return self.op("lshr", a, b)

    def test(self, relation: str, a: Value, b: Value | int, width: int = 32) -> Value:
        """Write a comparison."""
        return self.value(f"icmp {relation} i{width} {a}, {b}")

    # ---- memory ----------------------------------------------------------------------------------

    def at(self, base: str, offset: Value | int) -> Value:
        """Write the address of a byte."""
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def slot(self, slot: Slot) -> Value:
        """Write the address of a slot of ``ChipRow.cpu``."""
        return self.at("%chip", CPU + 8 * slot)

    def load_slot(self, slot: Slot) -> Value:
        """Write a load from a slot: 64 bits."""
        return self.value(f"load i64, ptr {self.slot(slot)}")

    def store_slot(self, slot: Slot, value: Value | int) -> None:
        """Write a store to a slot: 64 bits."""
        self.put(f"store i64 {value}, ptr {self.slot(slot)}")

    def load_byte(self, pointer: Value) -> Value:
        """Write a load of a byte as 32 bits."""
        byte = self.value(f"load i8, ptr {pointer}")
        return self.value(f"zext i8 {byte} to i32")

    def store_byte(self, pointer: Value, value: Value) -> None:
        """Write a store of the low eight bits."""
        byte = self.value(f"trunc i32 {value} to i8")
        self.put(f"store i8 {byte}, ptr {pointer}")

    def widen(self, value: Value) -> Value:
        """Write a conversion from 32 to 64 bits."""
        return self.value(f"zext i32 {value} to i64")

    def narrow(self, value: Value) -> Value:
        """Write a conversion from 64 to 32 bits."""
        return self.value(f"trunc i64 {value} to i32")


@dataclass
class State:
    """What is known at a point of a function: values of registers and flags, cycles gone by."""

    registers: dict[int, Value] = field(default_factory=dict)  # 32 bits, 0 to 255
    dirty: frozenset[int] = frozenset()  # registers whose memory is out of date
    flags: dict[str, Flag] = field(default_factory=dict)  # those whose memory is out of date
    cycle: Value = "%cycle"  # plus `elapsed`
    elapsed: int = 0
    sp: Value = "%sp"  # plus `moved`
    moved: int = 0

    def copy(self) -> State:
        """Return a copy to go on with elsewhere."""
        return replace(self, registers=dict(self.registers), flags=dict(self.flags))


class Function:
    """Writes the function of one entry."""

    def __init__(self, flow: Flow, entry: int) -> None:
        self.flow = flow
        self.entry = entry
        self.w = Writer()
        self.budget = LONGEST_TREE

    def write(self) -> list[str]:
        """Return the function's lines."""
        self._stretch(self.entry, State())
        head = f"define internal preserve_nonecc void {_entry(self.entry)}({ARGUMENTS}) noinline {{"
        return [head, *self.w.lines, "}"]

    # ---- control flow ----------------------------------------------------------------------------

    def _go(self, target: int, state: State) -> None:
        """Write a jump: on in this function, or to that of another entry."""
        if target in self.flow.entries or self.budget <= 0:
            self._jump(target, state)
        else:
            self._stretch(target, state)

    def _jump(self, target: int, state: State) -> None:
        if self.flow.instructions[target].is_left_to_the_core:
            self._leave(target, state)
        elif target in self.flow.entries:
            self._call(_entry(target), state)
        else:
            self._step_to(target, state)

    def _call(self, function: Value, state: State, pc: Value | int = "poison") -> None:
        """Write a jump to a function."""
        self._put_back(state)
        cycle, sp = self._cycle(state), self._sp(state)
        self.w.put(
            f"musttail call preserve_nonecc void {function}(ptr %chip, ptr %regs, ptr %sram,"
            f" i64 {cycle}, i64 {sp}, i64 {pc})"
        )
        self.w.put("ret void")

    def _step_to(self, target: Value | int, state: State) -> None:
        """Write a jump to the step at a word address, if it may run, or to where it leads."""
        self._call("@next", state, target)

    def _leave(self, address: Value | int, state: State) -> None:
        """Write a return to the core, in front of the instruction at ``address``."""
        self._put_back(state)
        self.w.store_slot(Slot.PC, address)
        self.w.store_slot(Slot.CYCLE, self._cycle(state))
        self.w.store_slot(Slot.SP, self._sp(state))
        self.w.put("ret void")

    def _leave_unless(self, condition: Value, address: Value | int, state: State) -> None:
        """Write a return to the core that is taken if ``condition`` does not hold."""
        on, off = self.w.name("on"), self.w.name("off")
        self.w.put(f"br i1 {condition}, label %{on}, label %{off}, !prof !0")
        self.w.label(off)
        self._leave(address, state.copy())
        self.w.label(on)

    def _jump_to_pointer(self, target: Value, state: State) -> None:
        """Write a jump to a word address that is only known when it runs (64 bits)."""
        w = self.w
        self._put_back(state)
        block = self._block_at(target)
        known = w.value(f"icmp ne ptr {block}, null")
        self._leave_unless(known, target, state)
        self._call(block, state)

    def _block_at(self, place: Value) -> Value:
        """Write a load from the table of functions."""
        pointer = self.w.value(f"getelementptr ptr, ptr @blocks, i64 {place}")
        return self.w.value(f"load ptr, ptr {pointer}")

    def _stretch(self, address: int, state: State) -> None:
        """Write instructions from ``address`` on, up to the next that may go two ways."""
        stretch = self._straight(address)
        if stretch:
            self._check_limit(stretch, state)
        for word, mask in _bits(_bytes_touched(found)[1] for found in stretch).items():
            self._mark(WRITTEN + 8 * word, mask)
        for found in stretch:
            self.budget -= 1
            if self._write(found, state):
                return
        following = stretch[-1].after if stretch else address
        found = self.flow.instructions[following]
        if found.is_left_to_the_core:
            self._leave(following, state)
        else:
            self._go(following, state)

    def _straight(self, address: int) -> list[Instruction]:
        """Return the instructions from ``address`` on that run whenever the first does."""
        found = self.flow.instructions[address]
        stretch: list[Instruction] = []
        while not found.is_left_to_the_core:
            stretch.append(found)
            if found.op in ENDS_A_STRETCH or _calls_core(found) or found.after in self.flow.entries:
                break
            found = self.flow.instructions[found.after]
        return stretch

    def _check_limit(self, stretch: list[Instruction], state: State) -> None:
        """Write a test whether a stretch may run to its end; if not, single steps do."""
        w = self.w
        limit = w.load_slot(Slot.LIMIT)
        first = w.value(f"add i64 {state.cycle}, {state.elapsed}")
        before_last = sum(CYCLES[found.op] for found in stretch[:-1])
        fits = w.test("sle", w.value(f"add i64 {first}, {before_last}"), limit, 64)
        address = stretch[0].address
        if len(stretch) == 1:
            self._leave_unless(fits, address, state)
            return
        on, off = w.name("on"), w.name("off")
        w.put(f"br i1 {fits}, label %{on}, label %{off}, !prof !0")
        w.label(off)
        late = state.copy()
        self._leave_unless(w.test("sle", first, limit, 64), address, late)
        self._call(_step(address), late)
        w.label(on)

    def _mark(self, field_offset: Value | int, mask: Value | int) -> None:
        """Write a note that bytes have been touched."""
        w = self.w
        place = w.at("%chip", field_offset)
        known = w.value(f"load i64, ptr {place}")
        w.put(f"store i64 {w.value(f'or i64 {known}, {mask}')}, ptr {place}")

    def _mark_byte(self, field_offset: int, address: Value | int) -> None:
        """Write a note that a byte of SRAM is touched."""
        w = self.w
        word = w.value(f"and i64 {w.value(f'lshr i64 {address}, 6')}, 3")
        place = w.value(f"add i64 {w.value(f'shl i64 {word}, 3')}, {field_offset}")
        self._mark(place, w.value(f"shl i64 1, {w.value(f'and i64 {address}, 63')}"))

    # ---- state -----------------------------------------------------------------------------------

    def _cycle(self, state: State) -> Value:
        if state.elapsed:
            state.cycle = self.w.value(f"add i64 {state.cycle}, {state.elapsed}")
            state.elapsed = 0
        return state.cycle

    def _sp(self, state: State) -> Value:
        if state.moved:
            moved = self.w.value(f"add i64 {state.sp}, {state.moved}")
            state.sp = self.w.value(f"and i64 {moved}, 65535")
            state.moved = 0
        return state.sp

    def _put_back(self, state: State) -> None:
        """Write registers and flags to where the core expects them."""
        w = self.w
        for number in sorted(state.dirty):
            w.store_byte(w.at("%regs", number), state.registers[number])
        state.dirty = frozenset()
        for name, flag in state.flags.items():
            w.store_slot(FLAG_SLOTS[name], w.widen(self._flag_value(flag)))
        state.flags = {}

    def _flag_value(self, flag: Flag) -> Value:
        return flag if isinstance(flag, str) else flag(self.w)

    def _get(self, state: State, number: int) -> Value:
        """Return a register's value."""
        if number not in state.registers:
            state.registers[number] = self.w.load_byte(self.w.at("%regs", number))
        return state.registers[number]

    def _set(self, state: State, number: int, value: Value) -> None:
        state.registers[number] = value
        state.dirty |= {number}

    def _get_pair(self, state: State, number: int) -> Value:
        low, high = self._get(state, number), self._get(state, number + 1)
        return self.w.disj(low, self.w.left(high, 8))

    def _set_pair(self, state: State, number: int, value: Value) -> None:
        self._set(state, number, self.w.conj(value, 0xFF))
        self._set(state, number + 1, self.w.conj(self.w.right(value, 8), 0xFF))

    def _flag(self, state: State, name: str) -> Value:
        """Return a flag's value, computed here if it was not yet."""
        if name not in state.flags:
            return self.w.narrow(self.w.load_slot(FLAG_SLOTS[name]))
        state.flags[name] = value = self._flag_value(state.flags[name])
        return value

    # ---- flags of arithmetic ---------------------------------------------------------------------

    def _flags_of_sum(self, state: State, d: Value, r: Value, total: Value, out: Value) -> None:
        flags = state.flags

        def overflow(w: Writer) -> Value:
            return w.conj(w.xor(d, total), w.xor(r, total))

        flags["carry"] = lambda w: w.right(total, 8)
        flags["zero"] = out
        flags["negative"] = out
        flags["overflow"] = overflow
        flags["sign"] = lambda w: w.xor(total, overflow(w))
        flags["half"] = lambda w: w.xor(w.xor(d, r), total)

    def _flags_of_difference(
        self, state: State, d: Value, r: Value, rest: Value, zero: Flag, out: Value
    ) -> None:
        flags = state.flags

        def overflow(w: Writer) -> Value:
            return w.conj(w.xor(d, r), w.xor(d, rest))

        flags["carry"] = lambda w: w.right(rest, 31)
        flags["zero"] = zero
        flags["negative"] = out
        flags["overflow"] = overflow
        flags["sign"] = lambda w: w.xor(out, overflow(w))
        flags["half"] = lambda w: w.xor(w.xor(d, r), rest)

    def _flags_of_logic(self, state: State, out: Value) -> None:
        state.flags["zero"] = out
        state.flags["negative"] = out
        state.flags["overflow"] = "0"
        state.flags["sign"] = out

    # ---- instructions ----------------------------------------------------------------------------

    def _write(self, found: Instruction, state: State) -> bool:
        """Write one instruction; tell whether it ended the stretch."""
        op = found.op
        before = state.copy()
        if op in BRANCH_FLAGS:
            self._write_branch(found, state)
            return True
        if op in CLOSES_A_DELAY:
            self._write_end_of_delay(found, state)
            return True
        if found.is_skip:
            self._write_skip(found, state)
            return True
        if op in WRITE_JUMP:
            WRITE_JUMP[op](self, found, state, before)
            return True
        if op in WRITE_POINTER:
            pointer, step = WRITE_POINTER[op]
            self._write_pointer(found, state, before, pointer, step)
        elif op in WRITE_IO or _reaches_io(found):
            self._write_io(found, state)
        else:
            WRITE[op](self, found, state, before)
            state.elapsed += CYCLES[op]
        return False

    def _write_branch(self, found: Instruction, state: State) -> None:
        flag, mask, wanted = BRANCH_FLAGS[found.op]
        w = self.w
        if flag == "t":
            value = w.narrow(w.load_slot(Slot.T))
        elif flag == "i":
            value = w.narrow(w.load_slot(Slot.I))
        else:
            value = self._flag(state, flag)
        if mask:
            value = w.conj(value, mask)
        is_set = w.test("eq" if flag == "zero" else "ne", value, 0)
        taken, not_taken = (found.b & PC_MASK, 2), (found.after, 1)
        self._fork(is_set, *((taken, not_taken) if wanted else (not_taken, taken)), state)

    def _fork(
        self, condition: Value, yes: tuple[int, int], no: tuple[int, int], state: State
    ) -> None:
        """Write both ways on: each a word address and the cycles to get there."""
        then, otherwise = self.w.name("then"), self.w.name("else")
        self.w.put(f"br i1 {condition}, label %{then}, label %{otherwise}")
        for label, (target, cycles) in ((then, yes), (otherwise, no)):
            self.w.label(label)
            there = state.copy()
            there.elapsed += cycles
            self._go(target, there)

    def _write_end_of_delay(self, found: Instruction, state: State) -> None:
        """Write the branch that closes a counted delay loop: see ``chip.idle``."""
        w = self.w
        again, over = w.name("again"), w.name("over")
        counts_on = w.test("ne", self._flag(state, "zero"), 0)
        w.put(f"br i1 {counts_on}, label %{again}, label %{over}")
        w.label(over)
        there = state.copy()
        there.elapsed += 1
        self._go(found.after, there)
        w.label(again)
        state.elapsed += 2
        self._skip_rounds(found, state)
        self._go(found.b & PC_MASK, state)

    def _skip_rounds(self, found: Instruction, state: State) -> None:
        """Write the closed form of all rounds of a delay loop but the last, up to the limit."""
        w = self.w
        first = self.flow.instructions[found.b & PC_MASK]
        if found.op == Op.BRNE_DELAY_SUBI:
            counter = [self.flow.instructions[first.address + n].a for n in range(found.a)]
        else:
            counter = [first.a, first.a + 1][: 2 if first.op == Op.SBIW else 1]
        cycles = 2 + (2 if first.op == Op.SBIW else len(counter))
        count = w.widen(self._get(state, counter[0]))
        for place, number in enumerate(counter[1:], 1):
            byte = w.value(f"shl i64 {w.widen(self._get(state, number))}, {8 * place}")
            count = w.value(f"or i64 {count}, {byte}")
        most = w.value(f"and i64 {w.value(f'sub i64 {count}, 1')}, {(1 << 8 * len(counter)) - 1}")
        cycle = self._cycle(state)
        left = w.value(f"sub i64 {w.load_slot(Slot.LIMIT)}, {cycle}")
        room = w.value(
            f"udiv i64 {w.value(f'call i64 @llvm.smax.i64(i64 {left}, i64 0)')}, {cycles}"
        )
        fits = w.value(f"call i64 @llvm.smin.i64(i64 {room}, i64 {most})")
        wanted = w.test("ne", w.value(f"load i64, ptr {w.at('%chip', SKIP_IDLE)}"), 0, 64)
        skipped = w.value(f"select i1 {wanted}, i64 {fits}, i64 0")
        count = w.value(f"sub i64 {count}, {skipped}")
        for place, number in enumerate(counter):
            byte = w.narrow(w.value(f"lshr i64 {count}, {8 * place}"))
            self._set(state, number, w.conj(byte, 0xFF))
        state.cycle = w.value(f"add i64 {cycle}, {w.value(f'mul i64 {skipped}, {cycles}')}")

    def _write_skip(self, found: Instruction, state: State) -> None:
        w = self.w
        number = found.b & 0x1F
        if found.op == Op.CPSE:
            skips = w.test("eq", self._get(state, found.a), self._get(state, number))
        elif found.op in (Op.SBRC, Op.SBRS):
            bit = w.conj(self._get(state, found.a), 1 << (found.b & 7))
            skips = w.test("eq" if found.op == Op.SBRC else "ne", bit, 0)
        else:
            state.elapsed += 1
            value = self._read_io(found, found.b & 0x7FFF, state)
            bit = w.conj(value, found.a)
            skips = w.test("eq" if found.op == Op.SBIC else "ne", bit, 0)
            state.elapsed -= 1
        words = 1 + (found.b >> 15)
        self._fork(skips, (found.beyond, 1 + words), (found.after, 1), state)

    # ---- pointers and the stack ------------------------------------------------------------------

    def _in_sram(self, address: Value) -> Value:
        """Write a test whether an address (32 bits) is in SRAM."""
        from_start = self.w.sub(address, SRAM_START)
        return self.w.test("ult", from_start, DATA_SIZE - SRAM_START)

    def _write_pointer(
        self, found: Instruction, state: State, before: State, pointer: int, step: int
    ) -> None:
        """Write LD and ST: outside SRAM the core does it."""
        w = self.w
        base = self._get_pair(state, pointer)
        address = base
        if step < 0:
            address = w.conj(w.sub(base, 1), 0xFFFF)
        elif found.op in (Op.LDD_Y, Op.LDD_Z, Op.STD_Y, Op.STD_Z) and found.b:
            address = w.conj(w.add(base, found.b), 0xFFFF)
        before.registers = dict(state.registers)  # the same, and perhaps loaded by now
        self._leave_unless(self._in_sram(address), found.address, before)
        address = w.widen(address)
        place = w.at("%sram", address)
        if found.op.name.startswith("L"):
            self._note_read(address)
            self._move_pointer(state, pointer, base, step)
            self._set(state, found.a, w.load_byte(place))
        else:
            value = self._get(state, found.a)
            self._mark_byte(WRITTEN, address)
            self._note_write(address, value)
            w.store_byte(place, value)
            self._move_pointer(state, pointer, base, step)
        state.elapsed += 2

    def _note_read(self, address: Value | int) -> None:
        """Write a note that a byte of SRAM is read, but by a pop or a return."""

    def _note_write(self, address: Value | int, value: Value) -> None:
        """Write a note that a byte of SRAM is written, but by a push or a call."""

    def _note_push(self, address: Value, value: Value) -> None:
        """Write a note that a byte is pushed."""

    def _move_pointer(self, state: State, pointer: int, base: Value, step: int) -> None:
        if step:
            self._set_pair(state, pointer, self.w.conj(self.w.add(base, step), 0xFFFF))

    def _check_stack(self, found: Instruction, state: State, before: State, room: int) -> Value:
        """Leave to the core a stack access outside SRAM; return SP.

        ``room`` is how many bytes are pushed, or minus how many are popped.
        """
        w = self.w
        sp = self._sp(state)
        before.sp, before.moved = state.sp, 0
        before.registers = dict(state.registers)
        lowest = SRAM_START + room - 1 if room > 0 else SRAM_START - 1
        highest = DATA_SIZE - 1 if room > 0 else DATA_SIZE - 1 + room
        from_lowest = w.value(f"sub i64 {sp}, {lowest}")
        fits = w.test("ult", from_lowest, highest - lowest + 1, 64)
        self._leave_unless(fits, found.address, before)
        return sp

    def _push_word(self, found: Instruction, state: State, before: State, word: int) -> None:
        w = self.w
        sp = self._check_stack(found, state, before, 2)
        below = w.value(f"add i64 {sp}, -1")
        self._note_push(sp, str(word & 0xFF))
        self._note_push(below, str(word >> 8))
        w.store_byte(w.at("%sram", sp), str(word & 0xFF))
        w.store_byte(w.at("%sram", below), str(word >> 8))
        state.moved -= 2

    def _write_push(self, found: Instruction, state: State, before: State) -> None:
        sp = self._check_stack(found, state, before, 1)
        value = self._get(state, found.a)
        self._note_push(sp, value)
        self.w.store_byte(self.w.at("%sram", sp), value)
        state.moved -= 1

    def _write_pop(self, found: Instruction, state: State, before: State) -> None:
        sp = self._check_stack(found, state, before, -1)
        above = self.w.value(f"add i64 {sp}, 1")
        self._set(state, found.a, self.w.load_byte(self.w.at("%sram", above)))
        state.moved += 1

    # ---- jumps -----------------------------------------------------------------------------------

    def _write_jump(self, found: Instruction, state: State, _before: State) -> None:
        state.elapsed += CYCLES[found.op]
        self._go(found.b & PC_MASK, state)

    def _write_call(self, found: Instruction, state: State, before: State) -> None:
        self._push_word(found, state, before, found.after)
        state.elapsed += CYCLES[found.op]
        self._go(found.b & PC_MASK, state)

    def _write_icall(self, found: Instruction, state: State, before: State) -> None:
        self._push_word(found, state, before, found.after)
        state.elapsed += CYCLES[found.op]
        self._write_to_z(state)

    def _write_ijmp(self, found: Instruction, state: State, _before: State) -> None:
        state.elapsed += CYCLES[found.op]
        self._write_to_z(state)

    def _write_to_z(self, state: State) -> None:
        target = self.w.conj(self._get_pair(state, 30), PC_MASK)
        self._jump_to_pointer(self.w.widen(target), state)

    def _pop_word(self, found: Instruction, state: State, before: State) -> Value:
        """Write what RET and RETI have in common; return the word address (64 bits)."""
        w = self.w
        sp = self._check_stack(found, state, before, -2)
        high = w.load_byte(w.at("%sram", w.value(f"add i64 {sp}, 1")))
        low = w.load_byte(w.at("%sram", w.value(f"add i64 {sp}, 2")))
        state.moved += 2
        state.elapsed += CYCLES[found.op]
        return w.widen(w.conj(w.disj(w.left(high, 8), low), PC_MASK))

    def _write_ret(self, found: Instruction, state: State, before: State) -> None:
        self._jump_to_pointer(self._pop_word(found, state, before), state)

    def _write_reti(self, found: Instruction, state: State, before: State) -> None:
        """Write RETI, behind which the core looks whether a loop goes on."""
        w = self.w
        target = self._pop_word(found, state, before)
        self._put_back(state)
        cycle = self._cycle(state)
        place = w.at("%chip", HELD_UNTIL)  # one instruction runs before the next interrupt
        held, after = w.value(f"load i64, ptr {place}"), w.value(f"add i64 {cycle}, 1")
        later = w.value(f"call i64 @llvm.smax.i64(i64 {held}, i64 {after})")
        w.put(f"store i64 {later}, ptr {place}")
        w.store_slot(Slot.I, 1)
        w.store_slot(Slot.LIMIT, -1)
        self._leave(target, state)

    # ---- the I/O space ---------------------------------------------------------------------------

    def _call_core(
        self, slot: Slot, found: Instruction, address: int, state: State, value: Value | int
    ) -> Value:
        """Write a call of one of the core's functions."""
        w = self.w
        function = w.value(f"inttoptr i64 {w.load_slot(slot)} to ptr")
        chip = w.value("ptrtoint ptr %chip to i64")
        return w.value(
            f"call i64 {function}(i64 {chip}, i64 {address}, i64 {self._cycle(state)},"
            f" i64 {found.address}, i64 {value})"
        )

    def _read_io(self, found: Instruction, address: int, state: State) -> Value:
        """Write a read of an I/O register that ends at the state's cycle; 32 bits."""
        w = self.w
        if EXISTS[address] and not DYNAMIC[address]:
            return w.load_byte(w.at("%chip", MEMORY + address))
        return w.narrow(self._call_core(Slot.LOAD, found, address, state, 0))

    def _write_io(self, found: Instruction, state: State) -> None:
        w = self.w
        state.elapsed += CYCLES[found.op]
        if found.op in (Op.IN, Op.LDS):
            self._set(state, found.a, self._read_io(found, found.b, state))
            return
        if found.b in KEEPS_ONLY:
            self._write_kept(found, state)
            return
        unchanged = self._writes_the_same(found, state) if found.b in PORTS else None
        cycle = self._cycle(state)
        if unchanged is not None:
            same, other, on = w.name("same"), w.name("other"), w.name("on")
            w.put(f"br i1 {unchanged}, label %{same}, label %{other}")
            w.label(same)
            w.put(f"br label %{on}")
            w.label(other)
        if found.op in (Op.OUT, Op.STS):
            value = w.widen(self._get(state, found.a))
            ended = self._call_core(Slot.STORE, found, found.b, state, value)
        else:
            mask = found.a | (0x100 if found.op == Op.CBI else 0)
            ended = self._call_core(Slot.CHANGE_BIT, found, found.b, state, mask)
        if unchanged is not None:
            w.put(f"br label %{on}")
            w.label(on)
            ended = w.value(f"phi i64 [ {cycle}, %{same} ], [ {ended}, %{other} ]")
        state.cycle, state.elapsed = ended, 0

    def _writes_the_same(self, found: Instruction, state: State) -> Value:
        """Write a test whether a write leaves a register as it is: programs do that all the time.

        The core ignores such writes to DDRx and PORTx too (``chip.bus``).
        """
        w = self.w
        kept = w.load_byte(w.at("%chip", MEMORY + found.b))
        if found.op in (Op.OUT, Op.STS):
            return w.test("eq", kept, self._get(state, found.a))
        return w.test("eq", w.conj(kept, found.a), found.a if found.op == Op.SBI else 0)

    def _write_kept(self, found: Instruction, state: State) -> None:
        """Write a store, SBI or CBI on a register that does nothing but keep a byte."""
        w = self.w
        place = w.at("%chip", MEMORY + found.b)
        if found.op in (Op.OUT, Op.STS):
            value = self._get(state, found.a)
        elif found.op == Op.SBI:
            value = w.disj(w.load_byte(place), found.a)
        else:
            value = w.conj(w.load_byte(place), 0xFF & ~found.a)
        w.store_byte(place, value)

    def _write_lpm(self, found: Instruction, state: State, before: State) -> None:
        """Write LPM of program memory; while flash is being programmed the core does it."""
        w = self.w
        window = w.value(f"load i64, ptr {w.at('%chip', SPM_WINDOW)}")
        busy = w.value(f"load i64, ptr {w.at('%chip', RWW_BUSY)}")
        closed = w.test("eq", window, NEVER, 64)
        idle = w.test("eq", busy, 0, 64)
        self._leave_unless(w.value(f"and i1 {closed}, {idle}"), found.address, before)
        z = self._get_pair(state, 30)
        flash = w.value(f"inttoptr i64 {w.load_slot(Slot.FLASH)} to ptr")
        byte = w.load_byte(w.at(flash, w.widen(w.conj(z, 0x7FFF))))
        if found.op == Op.LPM_Z_INC:
            self._set_pair(state, 30, w.conj(w.add(z, 1), 0xFFFF))
        self._set(state, 0 if found.op == Op.LPM_R0 else found.a, byte)

    # ---- SREG and SP -----------------------------------------------------------------------------

    def _write_in_sreg(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        zero = w.value(f"zext i1 {w.test('eq', self._flag(state, 'zero'), 0)} to i32")
        sreg = w.disj(self._flag(state, "carry"), w.left(zero, 1))
        for name, bit, shift in (("negative", 0x80, 5), ("overflow", 0x80, 4), ("sign", 0x80, 3)):
            sreg = w.disj(sreg, w.right(w.conj(self._flag(state, name), bit), shift))
        sreg = w.disj(sreg, w.left(w.conj(self._flag(state, "half"), 0x10), 1))
        sreg = w.disj(sreg, w.left(w.narrow(w.load_slot(Slot.T)), 6))
        sreg = w.disj(sreg, w.left(w.narrow(w.load_slot(Slot.I)), 7))
        self._set(state, found.a, sreg)

    def _write_out_sreg(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        value = self._get(state, found.a)
        risen = w.conj(w.right(value, 7), w.xor(w.narrow(w.load_slot(Slot.I)), 1))
        rises, on = w.name("rises"), w.name("on")
        cycle = self._cycle(state)
        w.store_slot(Slot.I, w.widen(w.right(value, 7)))
        w.put(f"br i1 {w.test('ne', risen, 0)}, label %{rises}, label %{on}")
        w.label(rises)
        self._write_let_interrupt(found, replace(state, cycle=cycle, elapsed=1))
        w.put(f"br label %{on}")
        w.label(on)
        w.store_slot(Slot.T, w.widen(w.conj(w.right(value, 6), 1)))
        state.flags["carry"] = w.conj(value, 1)
        state.flags["zero"] = w.xor(w.conj(value, 2), 2)
        state.flags["negative"] = w.left(w.conj(value, 4), 5)
        state.flags["overflow"] = w.left(w.conj(value, 8), 4)
        state.flags["sign"] = w.left(w.conj(value, 16), 3)
        state.flags["half"] = w.right(w.conj(value, 32), 1)

    def _write_sei(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        rises, on = w.name("rises"), w.name("on")
        cycle = self._cycle(state)
        w.put(f"br i1 {w.test('eq', w.load_slot(Slot.I), 0, 64)}, label %{rises}, label %{on}")
        w.label(rises)
        self._write_let_interrupt(found, replace(state, cycle=cycle, elapsed=1))
        w.put(f"br label %{on}")
        w.label(on)

    def _write_let_interrupt(self, found: Instruction, state: State) -> None:
        """Write what happens when I rises at the end of an instruction, the state's cycle."""
        self._call_core(Slot.LET_INTERRUPT, found, 0, state, 0)

    def _write_in_sp(self, found: Instruction, state: State, _before: State) -> None:
        sp = self.w.narrow(self._sp(state))
        low = found.op == Op.IN_SPL
        self._set(state, found.a, self.w.conj(sp if low else self.w.right(sp, 8), 0xFF))

    def _write_out_sp(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        self._mark(IO_TOUCHED, int(Touch.FRAME))
        sp = w.narrow(self._sp(state))
        value = self._get(state, found.a)
        if found.op == Op.OUT_SPL:
            changed = w.disj(w.conj(sp, 0xFF00), value)
        else:
            changed = w.disj(w.conj(sp, 0xFF), w.left(value, 8))
        state.sp = w.widen(changed)

    # ---- arithmetic and logic --------------------------------------------------------------------

    def _write_sum(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        d, r = self._get(state, found.a), self._get(state, found.b)
        total = w.add(d, r)
        if found.op == Op.ADC:
            total = w.add(total, self._flag(state, "carry"))
        out = w.conj(total, 0xFF)
        self._set(state, found.a, out)
        self._flags_of_sum(state, d, r, total, out)

    def _write_difference(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        d = self._get(state, found.a)
        constant = found.op in (Op.SUBI, Op.SBCI, Op.CPI)
        r = str(found.b) if constant else self._get(state, found.b)
        rest = w.sub(d, r)
        chained = found.op in (Op.SBC, Op.SBCI, Op.CPC)
        if chained:
            rest = w.sub(rest, self._flag(state, "carry"))
        out = w.conj(rest, 0xFF)
        zero: Flag = out
        if chained:  # Z is never set, only kept (manual: SBC)
            earlier = self._flag(state, "zero")
            zero = w.disj(earlier, out)
        if found.op not in (Op.CP, Op.CPI, Op.CPC):
            self._set(state, found.a, out)
        self._flags_of_difference(state, d, r, rest, zero, out)

    def _write_logic(self, found: Instruction, state: State, _before: State) -> None:
        operation = {Op.AND: "and", Op.ANDI: "and", Op.OR: "or", Op.ORI: "or", Op.EOR: "xor"}
        constant = found.op in (Op.ANDI, Op.ORI)
        r = str(found.b) if constant else self._get(state, found.b)
        if found.op == Op.EOR and found.a == found.b:
            out = "0"
        else:
            out = self.w.op(operation[found.op], self._get(state, found.a), r)
        self._set(state, found.a, out)
        self._flags_of_logic(state, out)

    def _write_com(self, found: Instruction, state: State, _before: State) -> None:
        out = self.w.xor(self._get(state, found.a), 0xFF)
        self._set(state, found.a, out)
        self._flags_of_logic(state, out)
        state.flags["carry"] = "1"

    def _write_neg(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        d = self._get(state, found.a)
        out = w.conj(w.sub("0", d), 0xFF)
        self._set(state, found.a, out)
        flags = state.flags
        flags["carry"] = lambda w: w.value(f"zext i1 {w.test('ne', out, 0)} to i32")
        flags["zero"] = flags["negative"] = out
        flags["overflow"] = lambda w: w.conj(d, out)
        flags["sign"] = lambda w: w.xor(out, w.conj(d, out))
        flags["half"] = lambda w: w.xor(d, out)

    def _write_inc_dec(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        up = found.op == Op.INC
        d = self._get(state, found.a)
        out = w.conj(w.add(d, 1 if up else -1), 0xFF)
        self._set(state, found.a, out)

        def overflow(w: Writer) -> Value:  # only 0x7F -> 0x80 or 0x80 -> 0x7F
            return w.conj(w.conj(w.xor(d, 0xFF), out) if up else w.conj(d, w.xor(out, 0xFF)), 0x80)

        state.flags["zero"] = state.flags["negative"] = out
        state.flags["overflow"] = overflow
        state.flags["sign"] = lambda w: w.xor(out, overflow(w))

    def _write_shift(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        d = self._get(state, found.a)
        out = w.right(d, 1)
        if found.op == Op.ROR:
            out = w.disj(out, w.left(self._flag(state, "carry"), 7))
        elif found.op == Op.ASR:
            out = w.disj(out, w.conj(d, 0x80))
        self._set(state, found.a, out)
        flags = state.flags
        flags["carry"] = w.conj(d, 1)
        flags["zero"] = flags["negative"] = out
        flags["overflow"] = lambda w: w.xor(out, w.left(d, 7))  # V = N xor C
        flags["sign"] = lambda w: w.left(d, 7)

    def _write_swap(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        d = self._get(state, found.a)
        self._set(state, found.a, w.conj(w.disj(w.left(d, 4), w.right(d, 4)), 0xFF))

    def _write_word(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        d = self._get_pair(state, found.a)
        if found.op == Op.ADIW:
            total = w.add(d, found.b)
            state.flags["carry"] = lambda w: w.right(total, 16)

            def overflow(w: Writer) -> Value:
                return w.right(w.conj(w.xor(d, 0xFFFF), total), 8)
        else:
            total = w.sub(d, found.b)
            state.flags["carry"] = lambda w: w.right(total, 31)

            def overflow(w: Writer) -> Value:
                return w.right(w.conj(d, w.xor(total, 0xFFFF)), 8)

        out = w.conj(total, 0xFFFF)
        self._set_pair(state, found.a, out)
        state.flags["zero"] = out
        state.flags["negative"] = lambda w: w.right(out, 8)
        state.flags["overflow"] = overflow
        state.flags["sign"] = lambda w: w.xor(w.right(out, 8), overflow(w))

    def _write_product(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        d, r = self._get(state, found.a), self._get(state, found.b)
        if found.op in (Op.MULS, Op.MULSU, Op.FMULS, Op.FMULSU):
            d = w.sub(w.xor(d, 0x80), 0x80)
        if found.op in (Op.MULS, Op.FMULS):
            r = w.sub(w.xor(r, 0x80), 0x80)
        product = w.conj(w.op("mul", d, r), 0xFFFF)
        state.flags["carry"] = lambda w: w.right(product, 15)
        out = product
        if found.op in (Op.FMUL, Op.FMULS, Op.FMULSU):
            out = w.conj(w.left(product, 1), 0xFFFF)
        self._set_pair(state, 0, out)
        state.flags["zero"] = out

    # ---- moves and bits --------------------------------------------------------------------------

    def _write_nothing(self, _found: Instruction, _state: State, _before: State) -> None:
        """NOP, and BREAK without a debugger."""

    def _write_move(self, found: Instruction, state: State, _before: State) -> None:
        self._set(state, found.a, self._get(state, found.b))

    def _write_movw(self, found: Instruction, state: State, _before: State) -> None:
        low, high = self._get(state, found.b), self._get(state, found.b + 1)
        self._set(state, found.a, low)
        self._set(state, found.a + 1, high)

    def _write_ldi(self, found: Instruction, state: State, _before: State) -> None:
        self._set(state, found.a, str(found.b))

    def _write_lds(self, found: Instruction, state: State, before: State) -> None:
        if SRAM_START <= found.b < DATA_SIZE:
            self._note_read(found.b)
            self._set(state, found.a, self.w.load_byte(self.w.at("%sram", found.b)))
        else:
            self._leave_unless("false", found.address, before)

    def _write_sts(self, found: Instruction, state: State, before: State) -> None:
        if SRAM_START <= found.b < DATA_SIZE:
            value = self._get(state, found.a)
            self._note_write(found.b, value)
            self.w.store_byte(self.w.at("%sram", found.b), value)
        else:
            self._leave_unless("false", found.address, before)

    def _write_bst(self, found: Instruction, state: State, _before: State) -> None:
        bit = self.w.conj(self.w.right(self._get(state, found.a), found.b), 1)
        self.w.store_slot(Slot.T, self.w.widen(bit))

    def _write_bld(self, found: Instruction, state: State, _before: State) -> None:
        w = self.w
        others = w.conj(self._get(state, found.a), 0xFF & ~(1 << found.b))
        bit = w.left(w.narrow(w.load_slot(Slot.T)), found.b)
        self._set(state, found.a, w.disj(others, bit))

    def _write_flag(self, found: Instruction, state: State, _before: State) -> None:
        if found.op in (Op.SET, Op.CLT):
            self.w.store_slot(Slot.T, int(found.op == Op.SET))
        elif found.op == Op.CLI:
            self.w.store_slot(Slot.I, 0)
        else:
            name, value = FLAG_VALUES[found.op]
            state.flags[name] = value


FLAG_VALUES = {
    Op.SEC: ("carry", "1"),
    Op.CLC: ("carry", "0"),
    Op.SEZ: ("zero", "0"),
    Op.CLZ: ("zero", "1"),
    Op.SEN: ("negative", "128"),
    Op.CLN: ("negative", "0"),
    Op.SEV: ("overflow", "128"),
    Op.CLV: ("overflow", "0"),
    Op.SES: ("sign", "128"),
    Op.CLS: ("sign", "0"),
    Op.SEH: ("half", "16"),
    Op.CLH: ("half", "0"),
}

BRANCH_FLAGS = {
    Op.BRCS: ("carry", 0, True),
    Op.BRCC: ("carry", 0, False),
    Op.BREQ: ("zero", 0, True),
    Op.BRNE: ("zero", 0, False),
    Op.BRMI: ("negative", 0x80, True),
    Op.BRPL: ("negative", 0x80, False),
    Op.BRVS: ("overflow", 0x80, True),
    Op.BRVC: ("overflow", 0x80, False),
    Op.BRLT: ("sign", 0x80, True),
    Op.BRGE: ("sign", 0x80, False),
    Op.BRHS: ("half", 0x10, True),
    Op.BRHC: ("half", 0x10, False),
    Op.BRTS: ("t", 0, True),
    Op.BRTC: ("t", 0, False),
    Op.BRIE: ("i", 0, True),
    Op.BRID: ("i", 0, False),
}
"""Flag, the bit of its value that counts (0 = all), and whether the branch wants it set."""

WRITE_POINTER = {
    Op.LD_X: (26, 0),
    Op.LD_X_INC: (26, 1),
    Op.LD_DEC_X: (26, -1),
    Op.LD_Y_INC: (28, 1),
    Op.LD_DEC_Y: (28, -1),
    Op.LD_Z_INC: (30, 1),
    Op.LD_DEC_Z: (30, -1),
    Op.LDD_Y: (28, 0),
    Op.LDD_Z: (30, 0),
    Op.ST_X: (26, 0),
    Op.ST_X_INC: (26, 1),
    Op.ST_DEC_X: (26, -1),
    Op.ST_Y_INC: (28, 1),
    Op.ST_DEC_Y: (28, -1),
    Op.ST_Z_INC: (30, 1),
    Op.ST_DEC_Z: (30, -1),
    Op.STD_Y: (28, 0),
    Op.STD_Z: (30, 0),
}
"""Pointer register, and what is added to it: after the access, or before if negative."""

WRITE_IO = {Op.IN, Op.OUT, Op.SBI, Op.CBI}

KEEPS_ONLY = {GPIOR0, GPIOR1, GPIOR2}
"""Registers that keep what is written and do nothing else."""

PORTS = {DDRB, PORTB, DDRC, PORTC, DDRD, PORTD}
"""Registers in which a write of what is there already does nothing."""

_Rule = Callable[[Function, Instruction, State, State], None]

WRITE_JUMP: dict[Op, _Rule] = {
    Op.RJMP: Function._write_jump,
    Op.JMP: Function._write_jump,
    Op.RCALL: Function._write_call,
    Op.CALL: Function._write_call,
    Op.ICALL: Function._write_icall,
    Op.IJMP: Function._write_ijmp,
    Op.RET: Function._write_ret,
    Op.RETI: Function._write_reti,
}

WRITE: dict[Op, _Rule] = {
    Op.NOP: Function._write_nothing,
    Op.BREAK: Function._write_nothing,
    Op.ADD: Function._write_sum,
    Op.ADC: Function._write_sum,
    **dict.fromkeys(
        (Op.SUB, Op.SUBI, Op.SBC, Op.SBCI, Op.CP, Op.CPI, Op.CPC), Function._write_difference
    ),
    **dict.fromkeys((Op.AND, Op.ANDI, Op.OR, Op.ORI, Op.EOR), Function._write_logic),
    Op.COM: Function._write_com,
    Op.NEG: Function._write_neg,
    Op.INC: Function._write_inc_dec,
    Op.DEC: Function._write_inc_dec,
    Op.LSR: Function._write_shift,
    Op.ROR: Function._write_shift,
    Op.ASR: Function._write_shift,
    Op.SWAP: Function._write_swap,
    Op.ADIW: Function._write_word,
    Op.SBIW: Function._write_word,
    **dict.fromkeys(
        (Op.MUL, Op.MULS, Op.MULSU, Op.FMUL, Op.FMULS, Op.FMULSU), Function._write_product
    ),
    Op.MOV: Function._write_move,
    Op.MOVW: Function._write_movw,
    Op.LDI: Function._write_ldi,
    Op.LDS: Function._write_lds,
    Op.STS: Function._write_sts,
    Op.PUSH: Function._write_push,
    Op.POP: Function._write_pop,
    **dict.fromkeys((Op.LPM_Z, Op.LPM_Z_INC, Op.LPM_R0), Function._write_lpm),
    Op.IN_SREG: Function._write_in_sreg,
    Op.OUT_SREG: Function._write_out_sreg,
    Op.SEI: Function._write_sei,
    Op.IN_SPL: Function._write_in_sp,
    Op.IN_SPH: Function._write_in_sp,
    Op.OUT_SPL: Function._write_out_sp,
    Op.OUT_SPH: Function._write_out_sp,
    Op.BST: Function._write_bst,
    Op.BLD: Function._write_bld,
    **dict.fromkeys((*FLAG_VALUES, Op.SET, Op.CLT, Op.CLI), Function._write_flag),
}

ENDS_A_STRETCH = (
    set(BRANCH_FLAGS)
    | CLOSES_A_DELAY
    | set(WRITE_JUMP)
    | {
        Op.CPSE,
        Op.SBRC,
        Op.SBRS,
        Op.SBIC,
        Op.SBIS,
    }
)


def _cycles_of(op: Op) -> int:
    for row in TABLE:
        if row.op == op:
            return row.cycles
    return 1  # variants that the decoder makes: of IN, OUT and BRNE, one cycle


CYCLES = {op: _cycles_of(op) for op in Op}
"""Cycles of each instruction, for branches and skips those of going straight on."""


def _entry(address: int) -> str:
    """Return the name of the function of an entry."""
    return f"@b{address:04x}"


def _step(address: int) -> str:
    """Return the name of the function of a single instruction."""
    return f"@i{address:04x}"


def _bits(addresses: Iterable[int | None]) -> dict[int, int]:
    """Return the words of ``bytes_read`` or ``bytes_written`` that stand for these addresses."""
    words: dict[int, int] = {}
    for address in addresses:
        if address is not None:
            words[word_of(address)] = words.get(word_of(address), 0) | bit_of(address)
    return words


def _bytes_touched(found: Instruction) -> tuple[int | None, int | None]:
    """Return the address that an instruction is known to read, and the one that it writes.

    I/O registers that do more than keep a byte do not count.
    """
    if found.op in (Op.LDS, Op.STS) and SRAM_START <= found.b < DATA_SIZE:
        return (found.b, None) if found.op == Op.LDS else (None, found.b)
    if not _reaches_io(found):
        return None, None
    address = found.b & 0x7FFF if found.is_skip else found.b
    writes = not found.is_skip and found.op not in (Op.IN, Op.LDS)
    if writes and address in (PINB, PINC, PIND):
        address += PORTB - PINB  # writing ones there toggles the port
    if not EXISTS[address] or DYNAMIC[address]:
        return None, None
    reads = not writes or found.op in (Op.SBI, Op.CBI) or address in PORTS
    return address if reads else None, address if writes else None


def _reaches_io(found: Instruction) -> bool:
    """Tell whether an instruction reads or writes a known I/O register."""
    if found.op in (Op.LDS, Op.STS):
        return 0x20 <= found.b < SRAM_START and found.b not in (SPL, SPH, SREG)
    return found.op in WRITE_IO or found.op in (Op.SBIC, Op.SBIS)


def _calls_core(found: Instruction) -> bool:
    """Tell whether it calls the core, which may move the limit.

    To let interrupts in, and for the I/O space: all but reads of bytes that only stay.
    """
    if found.op in (Op.SEI, Op.OUT_SREG):
        return True
    if not _reaches_io(found) or found.b in KEEPS_ONLY:
        return False
    return found.op not in (Op.IN, Op.LDS) or not EXISTS[found.b] or bool(DYNAMIC[found.b])


class Step(Function):
    """Writes the function of a single instruction, which keeps the book that a probe needs.

    Whoever jumps there has made sure that it may run: the core, or ``@next``.
    """

    def write(self) -> list[str]:
        """Return the function's lines."""
        w = self.w
        found = self.flow.instructions[self.entry]
        state = State()
        for field_offset, address in zip((READ, WRITTEN), _bytes_touched(found), strict=True):
            if address is not None and (field_offset == WRITTEN or address < SRAM_START):
                self._mark(field_offset + 8 * word_of(address), bit_of(address))
        if not self._write(found, state):
            self._go(found.after, state)
        how = "noinline" if len(self.flow.instructions) < LARGE else "noinline optnone"
        head = f"define internal preserve_nonecc void {_step(self.entry)}({ARGUMENTS}) {how} {{"
        return [head, *w.lines, "}"]

    def _go(self, target: int, state: State) -> None:
        if self.flow.instructions[target].is_left_to_the_core:
            self._leave(target, state)
        else:
            self._step_to(target, state)

    def _jump_to_pointer(self, target: Value, state: State) -> None:
        self._step_to(target, state)

    def _flags_of_sum(self, state: State, d: Value, r: Value, total: Value, out: Value) -> None:
        self._put_back(state)
        self.w.put(f"call void @flags_of_sum(ptr %chip, i32 {d}, i32 {r}, i32 {total}, i32 {out})")

    def _flags_of_difference(
        self, state: State, d: Value, r: Value, rest: Value, zero: Flag, out: Value
    ) -> None:
        self._put_back(state)
        zero = self._flag_value(zero)
        self.w.put(
            f"call void @flags_of_difference(ptr %chip, i32 {d}, i32 {r}, i32 {rest}, i32 {zero},"
            f" i32 {out})"
        )

    def _flags_of_logic(self, state: State, out: Value) -> None:
        self._put_back(state)
        self.w.put(f"call void @flags_of_logic(ptr %chip, i32 {out})")

    def _note_read(self, address: Value | int) -> None:
        self.w.put(f"call void @note_read(ptr %chip, i64 {address})")

    def _note_write(self, address: Value | int, value: Value) -> None:
        self._note("note_write", address, value)

    def _note_push(self, address: Value, value: Value) -> None:
        self._note("note_push", address, value)

    def _note(self, function: str, address: Value | int, value: Value) -> None:
        wide = self.w.widen(value)
        self.w.put(f"call void @{function}(ptr %chip, i64 %cycle, i64 {address}, i64 {wide})")


class Shared(Function):
    """Writes functions that all steps share."""

    def write(self) -> list[str]:
        """Return the functions' lines."""
        self._define("void @flags_of_sum", "i32 %d, i32 %r, i32 %total, i32 %out")
        self._return_flags(self._flags_of_sum, "%d", "%r", "%total", "%out")
        self._define("void @flags_of_difference", "i32 %d, i32 %r, i32 %rest, i32 %zero, i32 %out")
        self._return_flags(self._flags_of_difference, "%d", "%r", "%rest", "%zero", "%out")
        self._define("void @flags_of_logic", "i32 %out")
        self._return_flags(self._flags_of_logic, "%out")
        self._write_note_read()
        self._write_notes()
        self._write_next()
        return self.w.lines

    def _define(self, what: str, arguments: str) -> None:
        self.w.put(f"define internal {what}(ptr %chip, {arguments}) noinline {{")

    def _return_flags(self, flags_of: Callable[..., None], *values: Value) -> None:
        """Write all flags of an operation to where the core expects them."""
        state = State()
        flags_of(state, *values)
        self._put_back(state)
        self._return("void")

    def _return(self, what: str) -> None:
        self.w.put(f"ret {what}")
        self.w.put("}")

    def _write_next(self) -> None:
        """Write what comes between steps: the next one, or the function of an entry.

        Late, or where a probe ends, it is the way back to the core.
        """
        w = self.w
        w.put(f"define internal preserve_nonecc void @next({ARGUMENTS}) noinline {{")
        in_time = w.test("sle", "%cycle", w.load_slot(Slot.LIMIT), 64)
        elsewhere = w.test("ne", "%pc", w.load_slot(Slot.TARGET), 64)
        first = w.test("eq", "%cycle", w.load_slot(Slot.START), 64)
        wanted = w.value(f"or i1 {elsewhere}, {first}")
        self._leave_unless(w.value(f"and i1 {in_time}, {wanted}"), "%pc", State())
        entry = self._block_at("%pc")
        step = self._block_at(w.value(f"add i64 %pc, {STEPS}"))
        probed = w.test("ne", w.load_slot(Slot.NOTING), 0, 64)
        stays = w.value(f"or i1 {probed}, {w.value(f'icmp eq ptr {entry}, null')}")
        block = w.value(f"select i1 {stays}, ptr {step}, ptr {entry}")
        self._leave_unless(w.value(f"icmp ne ptr {block}, null"), "%pc", State())
        self._call(block, State())
        w.put("}")

    def _is_on_stack(self) -> Value:
        """Write a test whether there is a probe, and a byte is below where its stack began."""
        depth = self.w.value(f"sub i64 {self.w.load_slot(Slot.STACK)}, %address")
        return self.w.test("ult", depth, DEEPEST_STACK, 64)

    def _write_note_read(self) -> None:
        self._define("void @note_read", "i64 %address")
        self._mark_byte(READ, "%address")
        frame = self.w.value(f"select i1 {self._is_on_stack()}, i64 {int(Touch.FRAME)}, i64 0")
        self._mark(IO_TOUCHED, frame)
        self._return("void")

    def _write_notes(self) -> None:
        """Write what notes a byte that is written: when, where, what."""
        arguments = "i64 %cycle, i64 %address, i64 %value"
        w = self.w
        for name in ("note_write", "note_push"):
            self._define(f"void @{name}", arguments)
            if name == "note_write":
                wanted = self._is_on_stack()
            else:
                wanted = w.test("ne", w.load_slot(Slot.NOTING), 0, 64)
            w.put(f"br i1 {wanted}, label %note, label %done")
            w.label("note")
            number = w.load_slot(Slot.PUSHED)
            first = w.value(f"inttoptr i64 {w.load_slot(Slot.PUSHES)} to ptr")
            place = w.value(f"getelementptr i64, ptr {first}, i64 {number}")
            offset = w.value(f"sub i64 %cycle, {w.load_slot(Slot.ORIGIN)}")
            entry = w.value(f"or i64 {w.value(f'shl i64 {offset}, 24')}, %value")
            entry = w.value(f"or i64 {entry}, {w.value('shl i64 %address, 8')}")
            w.put(f"store i64 {entry}, ptr {place}")
            more = w.value(f"add i64 {number}, 1")
            most = w.value(f"call i64 @llvm.smin.i64(i64 {more}, i64 {MOST_PUSHES})")
            w.store_slot(Slot.PUSHED, most)
            w.put("br label %done")
            w.label("done")
            self._return("void")


def write_module(flow: Flow) -> str:
    """Return the IR of a whole program."""
    steps = sorted(
        address for address, found in flow.instructions.items() if not found.is_left_to_the_core
    )
    known = Flow(flow.instructions, flow.entries & set(steps))
    lines: list[str] = []
    pointers = ["ptr null"] * (2 * STEPS)
    for address in sorted(known.entries):
        lines.extend(Function(known, address).write())
        pointers[address] = f"ptr {_entry(address)}"
    for address in steps:
        lines.extend(Step(known, address).write())
        pointers[STEPS + address] = f"ptr {_step(address)}"
    lines.extend(Shared(known, 0).write())
    pointers.append("ptr @enter")
    lines.append(f"@blocks = constant [{len(pointers)} x ptr] [{', '.join(pointers)}]")
    w = Writer()
    regs = w.at("%chip", MEMORY)
    cycle, sp = w.load_slot(Slot.CYCLE), w.load_slot(Slot.SP)
    w.put(
        f"call preserve_nonecc void %block(ptr %chip, ptr {regs}, ptr {regs}, i64 {cycle},"
        f" i64 {sp}, i64 poison)"
    )
    w.put("ret void")
    lines += ["define internal void @enter(ptr %chip, ptr %block) {", *w.lines, "}"]
    lines.append("declare i64 @llvm.smax.i64(i64, i64)")
    lines.append("declare i64 @llvm.smin.i64(i64, i64)")
    lines.append('!0 = !{!"branch_weights", i32 1000, i32 1}')
    return "\n".join(lines)
