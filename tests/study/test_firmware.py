import subprocess

import pytest

from avrswarm.program import Program, load_program
from avrswarm.study.firmware import VectorInUse, describe_firmware, vectors_in_use
from tests.program.firmware import compile_firmware


def rjmp(place, target):
    return 0xC000 | ((target - place) // 2 - 1) & 0xFFF


@pytest.mark.needs_avr_gcc
def test_compiled_firmware(tmp_path):
    elf = compile_firmware(tmp_path)
    program = load_program(elf)
    handler = program.symbols.resolve("__vector_16")
    assert vectors_in_use(program) == [VectorInUse(16, "TIMER0_OVF", handler)]
    found = describe_firmware(program)
    sizes = subprocess.run(["avr-size", elf], capture_output=True, text=True, check=True).stdout
    text, data, bss = (int(number) for number in sizes.splitlines()[1].split()[:3])
    other_memories = 2 + 3 + 1  # avr-size counts EEPROM, fuses and lock as data
    assert found["flash"]["used_bytes"] == text + data - other_memories
    assert found["sram"]["used_bytes"] == data + bss - other_memories
    assert found["eeprom"] == {"used_bytes": 2, "size_bytes": 1024, "ranges": [[0, 2]]}


@pytest.mark.needs_avr_gcc
def test_without_symbols_the_common_target_is_the_unused_one(tmp_path):
    elf = compile_firmware(tmp_path)
    subprocess.run(["avr-objcopy", "-O", "ihex", elf, elf.with_suffix(".hex")], check=True)
    program = load_program(elf.with_suffix(".hex"))
    assert vectors_in_use(program) == vectors_in_use(load_program(elf))
    assert describe_firmware(program)["sram"]["used_bytes"] is None


@pytest.mark.parametrize("base", [0, 0x7000])
def test_rjmp_vectors_of_a_program_or_boot_loader(base):
    words = []
    for vector in range(26):
        words += [rjmp(4 * vector, 0x200 + 2 * (vector == 3)), 0]
    program = Program.from_words(words, start=base)
    assert vectors_in_use(program) == [VectorInUse(3, "PCINT0", base + 0x202)]


def test_program_without_a_vector_table():
    assert vectors_in_use(Program.from_words([0xCFFF])) == []
    assert vectors_in_use(Program.from_words([])) == []
