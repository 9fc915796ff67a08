import hashlib
import pickle

import numpy as np
import pytest

from avrswarm.errors import ProgramError
from avrswarm.program import Program, load_program
from avrswarm.program.image import ByteRange
from tests.program.records import END, data, write_hex


def test_from_words():
    program = Program.from_words([0x940C, 0x0034], start=0x100)
    assert list(program.flash[0x80:0x83]) == [0x940C, 0x0034, 0xFFFF]
    assert program.flash_used == [ByteRange(0x100, 0x104)]
    assert program.programmed.sum() == 2
    assert program.eeprom.shape == (1024,)
    assert (program.eeprom == 0xFF).all()
    assert not program.eeprom_given.any()
    assert program.source is None
    assert len(program.symbols) == len(program.lines) == len(program.variables) == 0


def test_from_bytes_marks_a_half_given_word():
    program = Program.from_bytes(b"\x01\x02\x03")
    assert list(program.flash[:2]) == [0x0201, 0xFF03]
    assert program.flash_used == [ByteRange(0, 4)]


def test_gaps_are_told_apart():
    program = Program.from_bytes(b"\x01\x02", start=0x7FFE)
    assert program.flash_used == [ByteRange(0x7FFE, 0x8000)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Program.from_words([0x10000]),
        lambda: Program.from_words([-1]),
        lambda: Program.from_words([0], start=1),
        lambda: Program.from_words([0], start=-2),
        lambda: Program.from_words([0, 0], start=0x7FFE),
        lambda: Program.from_bytes(bytes(0x8001)),
    ],
)
def test_what_does_not_fit_is_refused(make):
    with pytest.raises(ProgramError):
        make()


def test_arrays_are_shared_and_therefore_read_only():
    program = Program.from_words([0])
    with pytest.raises(ValueError, match="read-only"):
        program.flash[0] = 1


def test_digest_is_over_content_alone(tmp_path):
    words = [0x0201, 0xFFFF]
    loaded = load_program(write_hex(tmp_path, data(0, [1, 2]), END))
    assert loaded.digest == Program.from_words(words).digest
    assert loaded.digest != Program.from_words([0x0200]).digest
    content = bytes([1, 2]) + b"\xff" * (32768 - 2 + 1024)
    assert loaded.digest == hashlib.sha256(content).hexdigest()


def test_program_travels_between_processes():
    program = Program.from_words([1, 2, 3])
    copy = pickle.loads(pickle.dumps(program))
    assert copy.digest == program.digest
    assert np.array_equal(copy.programmed, program.programmed)
