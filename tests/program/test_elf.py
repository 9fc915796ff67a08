import re
import struct
import subprocess

import pytest

from avrswarm.errors import ProgramError
from avrswarm.program import Kind, load_program
from avrswarm.program.space import Space
from tests.program.firmware import compile_firmware

EM_AVR, EM_X86_64 = 83, 62


def elf_header(machine, *, kind=2, flags=5, bits=32, section_table=0, sections=0):
    """An ELF header without anything after it, from the ELF specification."""
    magic = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    word = "I" if bits == 32 else "Q"
    sizes = (52, 32, 0, 40, sections, 0) if bits == 32 else (64, 56, 0, 64, sections, 0)
    fields = (kind, machine, 1, 0, 0, section_table, flags, *sizes)
    return magic + struct.pack(f"<HHI{word * 3}I6H", *fields)


def error_of(path):
    with pytest.raises(ProgramError) as caught:
        load_program(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def saved(folder, content):
    path = folder / "firmware.elf"
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def elf(tmp_path_factory):
    return compile_firmware(tmp_path_factory.mktemp("elf"), "-gdwarf-4")


@pytest.mark.needs_avr_gcc
def test_flash_is_what_objcopy_makes(elf):
    """.text and .data lie in flash one after the other, .data at its load address."""
    binary = elf.with_suffix(".bin")
    command = ["avr-objcopy", "-O", "binary", "-j", ".text", "-j", ".data", elf, binary]
    subprocess.run(command, check=True)
    expected = binary.read_bytes()
    program = load_program(elf)
    assert program.flash.tobytes()[: len(expected)] == expected
    assert program.flash_used[-1].end == len(expected)
    assert b"\x34\x12\x02" in expected  # the initial value of neighbours


@pytest.mark.needs_avr_gcc
def test_eeprom_fuses_and_lock(elf):
    program = load_program(elf)
    assert bytes(program.eeprom[:3]) == b"\xef\xbe\xff"
    assert list(program.eeprom_given[:3]) == [True, True, False]
    assert program.fuses._asdict() == {"low": 0xE2, "high": 0xD9, "extended": 0xFE}
    assert program.lock == 0xEF


@pytest.mark.needs_avr_gcc
def test_hex_of_the_same_build_has_the_same_flash(elf):
    made = elf.with_suffix(".hex")
    subprocess.run(["avr-objcopy", "-O", "ihex", "-R", ".eeprom", elf, made], check=True)
    from_hex, from_elf = load_program(made), load_program(elf)
    assert (from_hex.flash == from_elf.flash).all()
    assert (from_hex.programmed == from_elf.programmed).all()
    assert from_hex.fuses == from_elf.fuses
    assert from_hex.digest != from_elf.digest  # the .elf has EEPROM content too
    subprocess.run(["avr-objcopy", "-O", "ihex", elf, made], check=True)
    assert load_program(made).digest == from_elf.digest


@pytest.mark.needs_avr_gcc
def test_symbols_agree_with_nm(elf):
    program = load_program(elf)
    listing = subprocess.run(["avr-nm", elf], check=True, capture_output=True, text=True).stdout
    functions = "main|helper|__vector_16|__bad_interrupt"
    places = dict(re.findall(rf"^(\w+) T ({functions})$", listing, re.M))
    assert len(places) == 4
    for address, name in places.items():
        assert program.symbols.resolve(name) == int(address, 16)
        assert program.symbols.describe(int(address, 16)) == name
    ticks = program.symbols.find("ticks")
    assert (ticks.space, ticks.size, ticks.kind) == (Space.DATA, 1, Kind.OBJECT)
    assert f"{0x800000 + ticks.address:08x} b ticks" in listing
    assert program.symbols.find("saved").space == Space.EEPROM
    assert program.symbols.find("main").size > 0
    assert program.symbols.find("__SREG__") is None  # a constant, not a place


@pytest.mark.needs_avr_gcc
def test_every_truncation_is_an_error(elf, tmp_path):
    content = elf.read_bytes()
    for size in [*range(4, 200), *range(200, len(content), 97), len(content) - 1]:
        assert "truncated" in error_of(saved(tmp_path, content[:size]))


@pytest.mark.needs_avr_gcc
def test_object_file_is_not_a_program(tmp_path):
    assert "not a linked program" in error_of(compile_firmware(tmp_path, "-c"))


@pytest.mark.needs_avr_gcc
def test_other_avr_families(tmp_path):
    path = compile_firmware(tmp_path, source="int main(void) { return 0; }", mcu="atmega2560")
    assert "ELF for another machine (AVR architecture 6, not 5)" in error_of(path)


@pytest.mark.needs_avr_gcc
def test_program_too_large(tmp_path):
    linked_for_more = [
        "-Wl,--defsym=__TEXT_REGION_LENGTH__=128K",
        "-Wl,--section-start=.far=0x9000",
    ]
    source = """
    __attribute__((section(".far"), used)) const char far[] = {1, 2, 3};
    int main(void) { return 0; }
    """
    message = error_of(compile_firmware(tmp_path, *linked_for_more, source=source))
    assert "section .far: address 0x9002 is beyond the 32 KiB of flash" in message


@pytest.mark.needs_avr_gcc
def test_eeprom_too_large(tmp_path):
    source = """
    __attribute__((section(".eeprom"), used)) char kept[1025] = {1};
    int main(void) { return 0; }
    """
    roomy = "-Wl,--defsym=__EEPROM_REGION_LENGTH__=2K"
    message = error_of(compile_firmware(tmp_path, roomy, source=source))
    assert "section .eeprom: address 0x0400 is beyond the 1 KiB of EEPROM" in message


@pytest.mark.needs_avr_gcc
def test_overlapping_sections(tmp_path):
    content = bytearray(compile_firmware(tmp_path).read_bytes())
    (table,) = struct.unpack_from("<I", content, 28)
    size, count = struct.unpack_from("<HH", content, 42)
    for place in range(table, table + count * size, size):
        if struct.unpack_from("<I", content, place + 8)[0] == 0x800100:  # .data
            struct.pack_into("<I", content, place + 12, 0x10)  # its load address
    assert "overlaps another section at flash 0x0010" in error_of(saved(tmp_path, content))


def test_elf_for_a_pc(tmp_path):
    message = error_of(saved(tmp_path, elf_header(EM_X86_64, bits=64)))
    assert "ELF for another machine" in message
    assert "X86-64" in message
    assert "-mmcu=atmega328p" in message


def test_unknown_machine(tmp_path):
    assert "ELF for another machine" in error_of(saved(tmp_path, elf_header(0xFEED)))


def test_elf_without_content(tmp_path):
    assert "no code or data for flash" in error_of(saved(tmp_path, elf_header(EM_AVR)))


def test_elf_whose_section_table_is_missing(tmp_path):
    content = elf_header(EM_AVR, section_table=1000, sections=4)
    assert "truncated ELF file: the section table ends at byte 1160, the file at 52" in error_of(
        saved(tmp_path, content)
    )


@pytest.mark.parametrize("content", [b"\x7fELF", b"\x7fELF\x09\x09" + bytes(60)])
def test_elf_that_is_damaged_at_once(tmp_path, content):
    assert "truncated or damaged ELF" in error_of(saved(tmp_path, content))
