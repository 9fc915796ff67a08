"""Random programs of pure CPU instructions that run for ever without leaving their ground.

`random_program(seed)` gives a `RandomProgram`: a full 32 KiB flash image and the list of what was
placed where. The program is one long body that jumps back to its start, plus subroutines. Rules
that keep it safe:

- stores go to SRAM 0x0100-0x06FF, the register file, GPIOR0-2 and SREG; the stack has
  0x0700-0x08FF to itself;
- pointers are loaded right before they are used, and whoever needs a register over a stretch
  locks it;
- pushes and pops are balanced, calls only go to subroutines of the next layer, loops count down a
  locked register;
- the rest of the flash is random data, read by LPM and never executed.

Never generated, because the result is undefined (timing reference 1.4): LD/ST with a changing
pointer and a data register of that pointer, and LPM r30/r31,Z+. Never generated, because simavr
1.6 has it wrong: see simavr.py.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import tests.reference.assemble as asm
from tests.reference.assemble import Assembler

FLASH_WORDS = 16384
STORE_FIRST, STORE_LAST = 0x0100, 0x06FF  # where random stores may go
POINTERS = {"X": 26, "Y": 28, "Z": 30}
MAIN_WORDS = 3000
SUBROUTINE_WORDS = 60
LAYERS, PER_LAYER = 3, 4

TWO_REGISTERS = ["add", "adc", "sub", "sbc", "cp", "cpc", "and_", "or_", "eor", "mov"]
COMPARES = ["cp", "cpc", "cpi"]
IMMEDIATES = ["subi", "sbci", "cpi", "andi", "ori", "ldi"]
ONE_REGISTER = ["com", "neg", "swap", "inc", "asr", "lsr", "ror", "dec"]
PRODUCTS = ["mul", "muls", "mulsu", "fmul", "fmuls", "fmulsu"]
GPIORS = [asm.GPIOR0, asm.GPIOR1, asm.GPIOR2]

# Everything a random program can contain; the tests check that all of it was executed.
INSTRUCTIONS = {
    *(name.rstrip("_") for name in TWO_REGISTERS + IMMEDIATES + ONE_REGISTER + PRODUCTS),
    *"movw adiw sbiw bset bclr bst bld nop wdr lds sts push pop in out sbi cbi lpm".split(),  # noqa: SIM905
    *"rjmp jmp ijmp rcall call icall ret reti brbs brbc cpse sbrc sbrs sbic sbis".split(),  # noqa: SIM905
    *(f"{ld} {mode}" for ld in ("ld", "st") for mode in ("X", "X+", "-X", "Y+", "-Y", "Z+", "-Z")),
    *(f"{ld} {mode}" for ld in ("ldd", "std") for mode in ("Y", "Z")),
    "lpm r0",
    "lpm Z+",
}


@dataclass(frozen=True)
class RandomProgram:
    seed: int
    words: list[int]  # all of flash
    placed: dict[int, str]  # word address -> name of the instruction there

    @property
    def flash(self) -> bytes:
        return b"".join(word.to_bytes(2, "little") for word in self.words)


def random_program(seed: int) -> RandomProgram:
    return _Writer(seed).write()


class _Writer:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.code = Assembler()
        self.placed: dict[int, str] = {}
        # places of LDI r30, LDI r31 that take a label's address
        self.pointer_fixups: list[tuple[int, str]] = []
        self.labels = 0
        self.layer = 0  # 0: main body, 1..LAYERS: in a subroutine
        self.calls_left = 0
        self.alternate_stack = False

    def write(self) -> RandomProgram:
        self.code.label("start")
        while self.code.here < MAIN_WORDS:
            # calls are counted per stretch, so that one pass through the main body stays short
            self.calls_left = 2
            self.body(40, locked=frozenset(), depth=0)
        self.place("jmp", self.code.absolute, asm.jmp, "start")
        for layer in range(1, LAYERS + 1):
            for number in range(PER_LAYER):
                self.layer, self.calls_left = layer, 2
                self.code.label(f"sub{layer}_{number}")
                self.body(SUBROUTINE_WORDS, locked=frozenset(), depth=1)
                self.emit(self.rng.choice(["ret", "ret", "ret", "reti"]))
        words = self.code.words()
        for at, label in self.pointer_fixups:
            target = self.code.word_address(label)
            words[at] = asm.ldi(30, target & 0xFF)[0]
            words[at + 1] = asm.ldi(31, target >> 8)[0]
        words += [self.rng.randrange(0x10000) for _ in range(FLASH_WORDS - len(words))]
        return RandomProgram(self.seed, words, self.placed)

    # ---- placing ---------------------------------------------------------------------------------

    def place(self, name: str, how: Callable, *arguments: object) -> None:
        self.placed[self.code.here] = name
        how(*arguments)

    def emit(self, name: str, *operands: object, called: str = "") -> None:
        """One instruction by its assembler name; `called`: its name in INSTRUCTIONS."""
        self.place(called or name.rstrip("_"), self.code, getattr(asm, name)(*operands))

    def new_label(self) -> str:
        self.labels += 1
        return f"label{self.labels}"

    def body(self, words: int, locked: frozenset[int], depth: int) -> None:
        """Random pieces until `words` are used up; no register in `locked` is written."""
        weights = {
            self.simple: 60, self.memory_run: 8, self.skip: 10, self.lpm_run: 3, self.branch: 6,
            self.jump_over: 2, self.loop: 2, self.stack_group: 2, self.call: 4, self.move_stack: 1,
        }  # fmt: skip
        end = self.code.here + words
        while self.code.here < end:
            piece = self.rng.choices(list(weights), list(weights.values()))[0]
            piece(locked, depth)

    def register(self, locked: frozenset[int], first: int = 0, last: int = 31) -> int:
        return self.rng.choice([r for r in range(first, last + 1) if r not in locked])

    def free_pair(self, first: int, locked: frozenset[int]) -> bool:
        return first not in locked and first + 1 not in locked

    # ---- single instructions ---------------------------------------------------------------------

    def simple(self, locked: frozenset[int], depth: int = 0, *, skipped: bool = False) -> None:
        """One instruction without a prelude, or none if the draw does not fit `locked`.

        `skipped`: it follows a skip, so leave out what simavr 1.6 skips wrongly (C09).
        """
        rng = self.rng
        any_register = rng.randrange(32)
        upper = rng.randrange(16, 32)
        kind = rng.choice(
            ["two"] * 8
            + ["immediate"] * 7
            + ["one"] * 6
            + ["product"] * 2
            + ["movw", "word", "word"]
            + ["sreg bit", "bst", "bld", "in", "out", "io bit", "lds", "sts", "lds", "sts", "nop"]
        )
        if kind == "two":
            name = rng.choice(TWO_REGISTERS)
            d = any_register if name in COMPARES else self.register(locked)
            self.emit(name, d, rng.randrange(32))
        elif kind == "immediate":
            name = rng.choice(IMMEDIATES)
            d = upper if name in COMPARES else self.register(locked, 16)
            self.emit(name, d, rng.randrange(256))
        elif kind == "one":
            self.emit(rng.choice(ONE_REGISTER), self.register(locked))
        elif kind == "product" and self.free_pair(0, locked):
            name = rng.choice(PRODUCTS)
            low, high = {"mul": (0, 31), "muls": (16, 31)}.get(name, (16, 23))
            self.emit(name, rng.randint(low, high), rng.randint(low, high))
        elif kind == "movw":
            d = rng.choice([d for d in range(0, 32, 2) if self.free_pair(d, locked)])
            self.emit("movw", d, rng.randrange(0, 32, 2))
        elif kind == "word":
            pairs = [p for p in (24, 26, 28, 30) if self.free_pair(p, locked)]
            constants = [k for k in range(64) if not (skipped and k & 0x0F >= 0x0C)]
            if pairs:
                self.emit(rng.choice(["adiw", "sbiw"]), rng.choice(pairs), rng.choice(constants))
        elif kind == "sreg bit":
            self.emit(rng.choice(["bset", "bclr"]), rng.randrange(8))
        elif kind == "bst":
            self.emit("bst", any_register, rng.randrange(8))
        elif kind == "bld":
            self.emit("bld", self.register(locked), rng.randrange(8))
        elif kind == "in":
            self.emit(
                "in_", self.register(locked), rng.choice([*GPIORS, asm.SREG, asm.SPL, asm.SPH])
            )
        elif kind == "out":
            self.emit("out", rng.choice([*GPIORS, asm.SREG]), any_register)
        elif kind == "io bit":
            self.emit(rng.choice(["sbi", "cbi"]), asm.GPIOR0, rng.randrange(8))
        elif kind == "lds":
            self.emit("lds", self.register(locked), self.address_to_load())
        elif kind == "sts":
            self.emit("sts", self.address_to_store(locked), any_register)
        elif kind == "nop":
            self.emit(rng.choice(["nop", "wdr"]))

    def address_to_load(self) -> int:
        special = [*range(32), *GPIORS, asm.SREG, asm.SPL, asm.SPH]
        return (
            int(self.rng.choice(special))
            if self.rng.random() < 0.2
            else self.rng.randint(0x100, 0x8FF)
        )

    def address_to_store(self, locked: frozenset[int]) -> int:
        special = [r for r in range(32) if r not in locked] + [*GPIORS, asm.SREG]
        if self.rng.random() < 0.2:
            return int(self.rng.choice(special))
        return self.rng.randint(STORE_FIRST, STORE_LAST)

    # ---- pieces of several instructions ----------------------------------------------------------

    def load_pointer(self, pair: int, value: int) -> None:
        self.emit("ldi", pair, value & 0xFF)
        self.emit("ldi", pair + 1, value >> 8)

    def memory_run(self, locked: frozenset[int], depth: int) -> None:
        """Load a pointer, then one to five accesses through it."""
        rng = self.rng
        names = [name for name, pair in POINTERS.items() if self.free_pair(pair, locked)]
        if not names:
            return
        name = rng.choice(names)
        pair = POINTERS[name]
        self.load_pointer(pair, rng.randint(STORE_FIRST + 8, STORE_LAST - 8 - 63))
        inner = locked | {pair, pair + 1}
        for _ in range(rng.randint(1, 5)):
            mode = rng.choice([name, name + "+", "-" + name])
            store = rng.random() < 0.5
            moving = mode != name
            q = rng.randrange(64)
            if store:
                # the pointer's own bytes may be stored, unless the store changes
                # the pointer (undefined)
                r = self.register(frozenset({pair, pair + 1}) if moving else frozenset())
                if mode in ("Y", "Z"):
                    self.emit("std", mode, q, r, called=f"std {mode}")
                else:
                    self.emit("st", mode, r, called=f"st {mode}")
            else:
                d = self.register(inner)
                if mode in ("Y", "Z"):
                    self.emit("ldd", d, mode, q, called=f"ldd {mode}")
                else:
                    self.emit("ld", d, mode, called=f"ld {mode}")
            if rng.random() < 0.3:
                self.skip(inner, depth)
        if (
            rng.random() < 0.3
        ):  # last: a load that overwrites its own pointer, defined for the plain forms
            d = pair + rng.randrange(2)
            if name == "X":
                self.emit("ld", d, "X", called="ld X")
            else:
                self.emit("ldd", d, name, rng.randrange(64), called=f"ldd {name}")

    def lpm_run(self, locked: frozenset[int], depth: int) -> None:
        if not self.free_pair(30, locked):
            return
        rng = self.rng
        self.load_pointer(30, rng.randint(0, 0x7FFF - 8))
        inner = locked | {30, 31}
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(["lpm", "lpm Z+", "lpm r0"])
            if kind == "lpm r0":
                if 0 not in locked:
                    self.emit("lpm", called="lpm r0")
            elif kind == "lpm":
                self.emit("lpm", self.register(inner), "Z")
            else:
                self.emit("lpm", self.register(inner), "Z+", called="lpm Z+")
        if rng.random() < 0.2:
            self.emit("lpm", rng.choice([30, 31]), "Z")

    def skip(self, locked: frozenset[int], depth: int) -> None:
        """A skip (sometimes a chain of them) and one instruction, of one or two words, that it may
        skip.
        """
        rng = self.rng
        for _ in range(rng.choice([1, 1, 1, 2])):
            name = rng.choice(["cpse", "sbrc", "sbrs", "sbic", "sbis"])
            if name == "cpse":
                d = rng.randrange(32)
                self.emit("cpse", d, d if rng.random() < 0.3 else rng.randrange(32))
            elif name in ("sbrc", "sbrs"):
                self.emit(name, rng.randrange(32), rng.randrange(8))
            else:
                self.emit(name, asm.GPIOR0, rng.randrange(8))
        what = rng.random()
        if what < 0.15:
            self.emit("lds", self.register(locked), self.address_to_load())
        elif what < 0.3:
            self.emit("sts", self.address_to_store(locked), rng.randrange(32))
        elif what < 0.45:
            label = self.new_label()
            self.place("jmp", self.code.absolute, asm.jmp, label)
            for _ in range(rng.randint(0, 3)):
                self.simple(locked)
            self.code.label(label)
        elif what < 0.5 and self.may_call(locked):
            self.calls_left -= 1
            self.place("call", self.code.absolute, asm.call, self.subroutine())
        else:
            at = self.code.here
            while self.code.here == at:
                self.simple(locked, skipped=True)

    def branch(self, locked: frozenset[int], depth: int) -> None:
        """A conditional branch forward over a few pieces."""
        label = self.new_label()
        make, name = self.rng.choice([(asm.brbs, "brbs"), (asm.brbc, "brbc")])
        self.place(name, self.code.branch, make, label, self.rng.randrange(8))
        for _ in range(self.rng.randint(0, 6)):
            self.simple(locked)
        if self.rng.random() < 0.3:
            self.memory_run(locked, depth)
        self.code.label(label)

    def jump_over(self, locked: frozenset[int], depth: int) -> None:
        """An unconditional jump over words that are never executed."""
        label = self.new_label()
        kind = self.rng.choice(["rjmp", "jmp", "ijmp"])
        if kind == "rjmp":
            self.place("rjmp", self.code.branch, asm.rjmp, label)
        elif kind == "jmp":
            self.place("jmp", self.code.absolute, asm.jmp, label)
        elif self.free_pair(30, locked):
            self.point_at(label)
            self.emit("ijmp")
        else:
            return
        self.code([self.rng.randrange(0x10000) for _ in range(self.rng.randint(0, 4))])
        self.code.label(label)

    def point_at(self, label: str) -> None:
        """Z = word address of a label (filled in at the end)."""
        self.pointer_fixups.append((self.code.here, label))
        self.emit("ldi", 30, 0)
        self.emit("ldi", 31, 0)

    def loop(self, locked: frozenset[int], depth: int) -> None:
        """Count a locked register down; back by BRNE, or by BREQ over RJMP if that is too far."""
        rng = self.rng
        candidates = [r for r in range(16, 32) if r not in locked]
        if depth >= 3 or len(candidates) < 8:
            return
        counter = rng.choice(candidates)
        self.emit("ldi", counter, rng.randint(1, 4))
        head, out = self.new_label(), self.new_label()
        self.code.label(head)
        self.body(rng.randint(3, 25), locked | {counter}, depth + 1)
        self.emit("dec", counter)
        if self.code.here - self.code.word_address(head) < 60:
            self.place("brbc", self.code.branch, asm.brbc, head, asm.SREG_Z)
        else:
            self.place("brbs", self.code.branch, asm.brbs, out, asm.SREG_Z)
            self.place("rjmp", self.code.branch, asm.rjmp, head)
            self.code.label(out)

    def stack_group(self, locked: frozenset[int], depth: int) -> None:
        """Push some registers, do something, pop into other registers."""
        if depth >= 3:
            return
        count = self.rng.randint(1, 4)
        for _ in range(count):
            self.emit("push", self.rng.randrange(32))
        self.body(self.rng.randint(1, 15), locked, depth + 1)
        for _ in range(count):
            self.emit("pop", self.register(locked))

    def may_call(self, locked: frozenset[int]) -> bool:
        return self.layer < LAYERS and self.calls_left > 0 and not locked

    def subroutine(self) -> str:
        return f"sub{self.layer + 1}_{self.rng.randrange(PER_LAYER)}"

    def call(self, locked: frozenset[int], depth: int) -> None:
        if not self.may_call(locked):
            return
        self.calls_left -= 1
        label = self.subroutine()
        kind = self.rng.choice(["rcall", "call", "icall"])
        if kind == "rcall" and self.layer == 0 and self.code.here < MAIN_WORDS - 1200:
            kind = "call"  # the subroutines may be out of RCALL's reach
        if kind == "rcall":
            self.place("rcall", self.code.branch, asm.rcall, label)
        elif kind == "call":
            self.place("call", self.code.absolute, asm.call, label)
        else:
            self.point_at(label)
            self.emit("icall")

    def move_stack(self, locked: frozenset[int], depth: int) -> None:
        """Move SP to the second stack at 0x0700-0x07FF, do something, move it back."""
        if self.layer or self.alternate_stack or locked or depth:
            return
        self.alternate_stack = True
        low, high, value = self.rng.sample(range(16, 32), 3)
        self.emit("in_", low, asm.SPL)
        self.emit("in_", high, asm.SPH)
        self.emit("ldi", value, 0x07)
        self.emit("out", asm.SPH, value)
        self.emit("ldi", value, self.rng.randint(0xE8, 0xFF))
        self.emit("out", asm.SPL, value)
        self.body(10, frozenset({low, high}), depth + 1)
        self.emit("out", asm.SPH, high)
        self.emit("out", asm.SPL, low)
        self.alternate_stack = False
