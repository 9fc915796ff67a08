"""Translated code does what the interpreter does, to the bit and the cycle."""

import random

import numpy as np
import pytest

from avrswarm import Chip
from avrswarm.chip.native import NO_BLOCKS
from avrswarm.engine import Translation, check_engine, flow, translate
from avrswarm.errors import UsageError
from avrswarm.isa.decode import decode_image
from avrswarm.program import Program
from avrswarm.robot import controller_packets as cp
from avrswarm.robot.messages import Message, MessageType
from tests.firmware.bench import FIRMWARE, MS, Robot, program
from tests.firmware.test_bootloader import Bootable, pages
from tests.oracle import compiled
from tests.oracle.random_program import random_program
from tests.reference import assemble as asm

PROGRAMS = sorted(path.stem for path in FIRMWARE.glob("*/*.elf"))


def both(program, **options):
    """Return the same chip twice: interpreted and translated."""
    native = Translation(program.flash, wait=True)
    assert native.blocks is not NO_BLOCKS
    return Chip(program, **options), Chip(program, native=native, **options)


def run_side_by_side(chips, cycles, seed, longest):
    """Run both from checkpoint to checkpoint and compare everything."""
    choose = random.Random(seed)
    while chips[0].cycle < cycles:
        step = choose.randint(1, choose.choice(longest))
        for chip in chips:
            chip.run(step)
        assert chips[0].cycle == chips[1].cycle
        assert chips[0].digest() == chips[1].digest(), f"differs before cycle {chips[0].cycle}"


@pytest.mark.parametrize("seed", range(4))
def test_random_instructions(seed):
    """Every instruction of the core, in streams that simavr agrees on (tests/chip)."""
    chips = both(Program.from_bytes(random_program(seed).flash), skip_idle=False)
    run_side_by_side(chips, 60_000, seed, (3, 30, 1000))


@pytest.mark.needs_avr_gcc
@pytest.mark.parametrize("name", compiled.NAMES)
def test_c_programs(name):
    """Floats, printf, qsort, recursion, pointers to functions."""
    code = compiled.compile_c(name, "-Os")
    chips = both(Program.from_bytes(code.flash))
    run_side_by_side(chips, 150_000, len(name), (50, 5000, 50_000))


@pytest.mark.parametrize("name", PROGRAMS)
def test_shipped_programs(name):
    """Each is told to run, hears messages, ticks, sends and measures."""
    image = program(name)
    robots = [Robot(image, native=native) for native in (None, Translation(image.flash, wait=True))]
    choose = random.Random(name)
    for _ in range(6):
        kind = choose.choice([MessageType.RUN, MessageType.RUN, 0x00, 0x05])
        content = bytes(choose.randrange(256) for _ in range(9))
        step = choose.randint(20 * MS, 80 * MS)
        for robot in robots:
            robot.hear(Message.make(kind, content))
            robot.run(step)
        assert robots[0].cycle == robots[1].cycle
        assert robots[0].chip.digest() == robots[1].chip.digest()
    assert robots[0].chip.uart == robots[1].chip.uart
    assert robots[0].chip.pin_log == robots[1].chip.pin_log


def test_a_program_that_replaces_itself():
    """An upload through the boot loader: from the first changed page on, nothing stale may run."""
    image = Bootable("blink").program
    robots = [
        Bootable("blink", native=native) for native in (None, Translation(image.flash, wait=True))
    ]
    content = np.asarray(program("move").flash, "<u2").tobytes()[: 2 * 3000].rstrip(b"\xff")
    for robot in robots:
        robot.boot()
        robot.say(MessageType.BOOTPGM_SIZE, bytes([cp.page_total(content)]))
    for number, page in enumerate(pages(content)):
        for robot in robots:
            robot.upload_page(number, page)
        assert robots[0].chip.digest() == robots[1].chip.digest()
    for robot in robots:
        robot.run(300 * MS)
    assert robots[0].chip.pc < 0x7000
    assert robots[0].chip.digest() == robots[1].chip.digest()


def test_most_of_a_program_is_translated():
    """Otherwise it would still be right, but slow."""
    image = program("bench_compute")
    code = np.zeros(len(image.flash), np.uint32)
    decode_image(image.flash, code)
    found = flow.analyse(image.flash, code)
    covered = sum(instruction.size for instruction in found.instructions.values())
    assert covered > 0.9 * (np.flatnonzero(image.programmed)[-1] + 1)


def test_functions_reached_through_a_table_are_found():
    """Two functions that nothing but a table in flash names, as a compiler makes it of a switch."""
    a = asm.Assembler()
    a.absolute(asm.jmp, "main")
    a.org(0x40).label("main")(asm.ldi(30, 0x60), asm.clr(31), asm.ijmp())
    a(asm.ldi(16, 1), asm.ret(), asm.ldi(16, 2), asm.ret())
    words = a.words()
    words += [0xFFFF] * (0x60 - len(words)) + [0x0043, 0x0045]
    flash = Program.from_words(words).flash
    code = np.zeros(len(flash), np.uint32)
    decode_image(flash, code)
    assert {0x43, 0x45} <= flow.analyse(flash, code).entries
    words[0x60:] = []
    flash = Program.from_words(words).flash
    assert not {0x43, 0x45} & flow.analyse(flash, code).entries


def test_object_code_is_kept_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(translate, "CACHE_FOLDER", tmp_path)
    monkeypatch.setattr(translate, "_loaded", {})
    flash = program("blink").flash
    first = translate.translate(flash)
    (kept,) = tmp_path.iterdir()
    monkeypatch.setattr(translate, "_loaded", {})
    monkeypatch.setattr(translate, "write_module", None)  # must not be needed again
    again = translate.translate(flash)
    assert np.array_equal(first != 0, again != 0)
    assert kept.stat().st_size > 10_000


def test_another_image_has_another_translation():
    other = program("blink").flash.copy()
    other[0x3000] ^= 1
    machine = translate._target_machine()
    assert translate._key(other, machine) != translate._key(program("blink").flash, machine)


def test_an_unknown_engine_is_refused():
    with pytest.raises(UsageError, match="engine must be one of interpreter, translated, auto"):
        check_engine("fast")
