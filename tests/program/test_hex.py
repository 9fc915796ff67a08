import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.errors import ProgramError
from avrswarm.program import load_eeprom, load_program
from avrswarm.program.hexfile import read_hex
from avrswarm.program.image import ByteRange
from tests.program.records import END, data, record, write_hex


def error_of(path, load=load_program):
    with pytest.raises(ProgramError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_words_are_little_endian_and_the_rest_is_erased(tmp_path):
    program = load_program(write_hex(tmp_path, data(0x10, [0x0C, 0x94, 0x34]), END))
    assert program.flash[8] == 0x940C
    assert program.flash[9] == 0xFF34
    assert program.flash.shape == (16384,)
    assert program.flash.dtype == np.uint16
    assert (np.delete(program.flash, [8, 9]) == 0xFFFF).all()
    assert program.flash_used == [ByteRange(0x10, 0x14)]
    assert program.is_programmed(0x13)
    assert not program.is_programmed(0x14)


def test_all_record_types(tmp_path):
    path = write_hex(
        tmp_path,
        record(2, 0, b"\x01\x00"),  # segment 0x0100: base 0x1000
        data(0x10, [1, 2]),
        record(4, 0, b"\x00\x00"),  # linear base 0
        data(0x20, [3, 4]),
        record(3, 0, b"\x00\x00\x00\x00"),  # start CS:IP, of no use to an AVR
        record(4, 0, b"\x00\x81"),  # EEPROM as avr-objcopy places it
        data(0x05, [5]),
        record(4, 0, b"\x00\x82"),
        data(0, [0xE2, 0xD9, 0xFF]),
        record(4, 0, b"\x00\x83"),
        data(0, [0xEF]),
        END,
    )
    program = load_program(path)
    assert program.flash[0x1010 // 2] == 0x0201
    assert program.flash[0x20 // 2] == 0x0403
    assert program.eeprom[5] == 5
    assert program.eeprom_used == [ByteRange(5, 6)]
    assert program.fuses == (0xE2, 0xD9, 0xFF)
    assert program.lock == 0xEF


def test_start_linear_address_is_accepted(tmp_path):
    path = write_hex(tmp_path, data(0, [1, 2]), record(5, 0, b"\x00\x00\x00\x00"), END)
    assert load_program(path).flash[0] == 0x0201


def test_blanks_empty_lines_and_carriage_returns_are_harmless(tmp_path):
    path = tmp_path / "a.hex"
    path.write_bytes(b"\xef\xbb\xbf\r\n " + data(0, [1, 2]).encode() + b" \r\n\r\n" + END.encode())
    assert load_program(path).flash[0] == 0x0201


def test_content_decides_not_the_name(tmp_path):
    assert load_program(write_hex(tmp_path, data(0, [1, 2]), END, name="x.elf")).flash[0] == 0x0201


@given(st.dictionaries(st.integers(0, 0x7FFF), st.integers(0, 255), min_size=1, max_size=200))
def test_every_byte_comes_back(content):
    lines = [data(address, [byte]) for address, byte in content.items()]
    assert read_hex("\n".join([*lines, END]).encode(), "x.hex").content == content


def test_the_full_flash_fits(tmp_path):
    lines = [data(address, range(32)) for address in range(0, 0x8000, 32)]
    program = load_program(write_hex(tmp_path, *lines, END))
    assert program.flash_used == [ByteRange(0, 0x8000)]


def test_bad_checksum_names_the_line_and_both_sums(tmp_path):
    good = data(0x10, [1, 2])
    message = error_of(write_hex(tmp_path, data(0, [1, 2]), good[:-2] + "00", END))
    assert "line 2: bad checksum" in message
    assert "0x00" in message
    assert f"0x{good[-2:].lower()}" in message


@pytest.mark.parametrize("cut", range(2, 20))
def test_file_that_ends_inside_a_record_is_truncated(tmp_path, cut):
    path = tmp_path / "a.hex"
    path.write_text(data(0, [1, 2]) + "\n" + data(2, range(8))[:cut])
    assert "line 2: the file ends in the middle of a record; it is truncated" in error_of(path)


def test_truncated_record_inside_the_file(tmp_path):
    message = error_of(write_hex(tmp_path, data(0, range(8))[:-4], data(8, [1]), END))
    assert "line 1: truncated record or wrong length: it announces 8 data bytes" in message
    message = error_of(write_hex(tmp_path, data(0, range(8))[:-3], data(8, [1]), END))
    assert "line 1: truncated record" in message


def test_missing_end_of_file_record(tmp_path):
    message = error_of(write_hex(tmp_path, data(0, [1, 2]), data(2, [1, 2])))
    assert "no end-of-file record" in message
    assert "truncated" in message


def test_records_after_the_end_are_not_dropped_silently(tmp_path):
    message = error_of(write_hex(tmp_path, data(0, [1, 2]), END, data(2, [1, 2]), END))
    assert "line 3: a record after the end-of-file record of line 2" in message


def test_overlap_names_address_and_both_lines(tmp_path):
    path = write_hex(tmp_path, data(0, range(8)), data(8, range(8)), "", data(6, [1]), END)
    message = error_of(path)
    assert "line 4: overlapping records: address 0x0006 was already given on line 1" in message


def test_overlap_through_a_segment_base(tmp_path):
    path = write_hex(tmp_path, data(0x1004, [1]), record(2, 0, b"\x01\x00"), data(4, [1]), END)
    message = error_of(path)
    assert "line 3: overlapping records: address 0x1004 was already given on line 1" in message


def test_data_beyond_flash(tmp_path):
    message = error_of(write_hex(tmp_path, data(0x7FF8, range(8)), data(0x8000, [1]), END))
    assert "line 2: address 0x8000 is beyond the 32 KiB of flash" in message


def test_record_that_crosses_the_end_of_flash(tmp_path):
    message = error_of(write_hex(tmp_path, data(0x7FFC, range(8)), END))
    assert "line 1: address 0x8000 is beyond the 32 KiB of flash" in message


def test_data_beyond_eeprom(tmp_path):
    path = write_hex(tmp_path, data(0, [1]), record(4, 0, b"\x00\x81"), data(0x400, [1]), END)
    assert "line 3: address 0x0400 is beyond the 1 KiB of EEPROM" in error_of(path)


def test_data_memory_cannot_be_programmed(tmp_path):
    path = write_hex(tmp_path, record(4, 0, b"\x00\x80"), data(0x100, [1]), END)
    assert "line 2: address 0x0100 of data memory cannot be programmed" in error_of(path)


def test_unknown_record_type(tmp_path):
    assert "line 1: record type 06 is unknown" in error_of(
        write_hex(tmp_path, record(6, 0), data(0, [1]), END)
    )


def test_record_that_cannot_be_meant(tmp_path):
    message = error_of(write_hex(tmp_path, record(4, 0, b"\x00"), data(0, [1]), END))
    assert "line 1: record type 04 with a length or address that it cannot have" in message


def test_second_start_address(tmp_path):
    start = record(3, 0, b"\x00\x00\x00\x01")
    assert "line 2: a second start address" in error_of(write_hex(tmp_path, start, start, END))


def test_line_that_is_no_record(tmp_path):
    path = write_hex(tmp_path, data(0, [1]), "hello", END)
    assert "line 2: 'hello' is not a record" in error_of(path)
    path = write_hex(tmp_path, data(0, [1]), ":0000zz01FF", END)
    assert "line 2" in error_of(path)
    assert "not hexadecimal digits" in error_of(path)


def test_binary_inside_the_text(tmp_path):
    path = tmp_path / "a.hex"
    path.write_bytes(data(0, [1]).encode() + b"\n:\xc3\x28\n")
    assert "line 2: byte 0xc3 is not text" in error_of(path)


@pytest.mark.parametrize("content", ["", "\n\n", "  \n"])
def test_empty_file(tmp_path, content):
    path = tmp_path / "a.hex"
    path.write_text(content)
    assert "the file is empty" in error_of(path)


def test_no_data_records(tmp_path):
    assert "no data records" in error_of(write_hex(tmp_path, END))
    assert "no data records" in error_of(write_hex(tmp_path, record(4, 0, b"\x00\x00"), END))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"#include <avr/io.h>\n", "not a firmware: text"),
        (b"S00600004844521B\n", "S-records"),
        (b"\x0c\x94\x34\x00\x0c\x94", "avr-objcopy -I binary"),
    ],
)
def test_not_a_firmware(tmp_path, content, words):
    path = tmp_path / "a.hex"
    path.write_bytes(content)
    assert words in error_of(path)


def test_missing_file_and_folder(tmp_path):
    assert "no such file" in error_of(tmp_path / "none.hex")
    assert "is a folder" in error_of(tmp_path)


def test_eeprom_alone_is_no_program(tmp_path):
    path = write_hex(tmp_path, record(4, 0, b"\x00\x81"), data(0, [1]), END)
    assert "no code or data for flash" in error_of(path)


def test_eeprom_file(tmp_path):
    path = write_hex(tmp_path, data(0x3FE, [1, 2]), END, name="e.eep")
    assert load_eeprom(path) == {0x3FE: 1, 0x3FF: 2}
    path = write_hex(tmp_path, record(4, 0, b"\x00\x81"), data(3, [7]), END, name="e.eep")
    assert load_eeprom(path) == {3: 7}


def test_eeprom_file_errors(tmp_path):
    path = write_hex(tmp_path, data(0, [1]), data(0x400, [1]), END, name="e.eep")
    assert "line 2: address 0x0400 is beyond the 1 KiB of EEPROM" in error_of(path, load_eeprom)
    path.write_bytes(b"\x7fELF....")
    assert "has to be Intel HEX" in error_of(path, load_eeprom)
    assert "no such file" in error_of(tmp_path / "none.eep", load_eeprom)


@pytest.mark.needs_avr_gcc
def test_agrees_with_objcopy(tmp_path):
    content = bytes(range(256)) * 3
    (tmp_path / "a.bin").write_bytes(content)
    command = ["avr-objcopy", "-I", "binary", "-O", "ihex", "a.bin", "a.hex"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert load_program(tmp_path / "a.hex").flash.tobytes()[: len(content)] == content
