import struct

import pytest

from avrswarm.errors import ProgramError, UsageError
from avrswarm.program import load_program
from avrswarm.program.image import build_program
from avrswarm.program.lines import LineRange, LineTable
from avrswarm.program.space import Space
from avrswarm.program.variables import Array, Encoding, Member, Record, Scalar, Variable, Variables
from tests.program.firmware import compile_firmware, line_of

pytestmark = pytest.mark.needs_avr_gcc

GARBAGE_COLLECTED = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]


@pytest.fixture(scope="module", params=["-gdwarf-2", "-gdwarf-3", "-gdwarf-4"])
def program(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dwarf")
    return load_program(compile_firmware(folder, request.param, *GARBAGE_COLLECTED))


def test_each_function_starts_on_its_line(program):
    for name, text in (("main", "int main"), ("helper", "int helper"), ("__vector_16", "ISR(")):
        address = program.symbols.resolve(name)
        assert program.lines.addresses("firmware.c", line_of(text))[0] == address
        first = program.lines.at(address)
        assert first.file.endswith("firmware.c")
        assert line_of(text) <= first.line <= line_of(text) + 2
        assert first.end > first.start


def test_lines_without_code(program):
    assert program.lines.at(0) is None  # vectors; also where dropped_function would claim to be
    assert program.lines.at(program.symbols.resolve("__bad_interrupt")) is None
    assert program.lines.addresses("firmware.c", line_of("dropped_function")) == []
    assert program.lines.addresses("firmware.c", 1) == []


@pytest.mark.parametrize(
    ("path", "base", "offset", "layout"),
    [
        ("neighbours[3].dist", "neighbours", 36, "<H"),
        ("neighbours[1].id", "neighbours", 14, "<B"),
        ("neighbours[0].next", "neighbours", 3, "<H"),
        ("neighbours[0].colour", "neighbours", 5, "<H"),
        ("neighbours[1].whole", "neighbours", 20, "<i"),
        ("neighbours[1].real", "neighbours", 20, "<f"),
        ("mydata.gradient", "mydata", 0, "<h"),
        ("mydata.grid[2][1]", "mydata", 22, "<f"),
        ("mydata.name[7]", "mydata", 33, "<c"),
        ("ticks", "ticks", 0, "<B"),
        ("callback", "callback", 0, "<H"),
        ("flag", "flag", 0, "<?"),
        ("big", "big", 0, "<q"),
        ("odd", "odd", 0, ""),
        ("neighbours", "neighbours", 0, ""),
    ],
)
def test_paths_lead_to_addresses_and_formats(program, path, base, offset, layout):
    place = program.variables.place(path)
    assert place.space == Space.DATA
    assert place.address == program.symbols.find(base).address + offset
    assert place.format == layout
    assert not layout or struct.calcsize(layout) == place.type.size


def test_bit_fields(program):
    low, high = (program.variables.place(f"neighbours[0].{name}") for name in ("low", "high"))
    assert (low.shift, low.bits) == (0, 3)
    assert (high.shift, high.bits) == (3, 5)
    assert low.address == high.address == program.symbols.find("neighbours").address + 7


def test_variables_of_other_memories(program):
    saved, table = program.variables.find("saved"), program.variables.find("table")
    assert (saved.space, saved.address) == (Space.EEPROM, 0)
    assert (table.space, table.address) == (Space.FLASH, program.symbols.find("table").address)
    assert table.type.name == "uint8_t[3]"


def test_static_local_variable(program):
    calls = program.variables.find("helper::calls")
    assert calls == program.variables.find("calls")
    assert calls.function == "helper"
    assert calls.line == line_of("static int calls")
    with pytest.raises(UsageError, match="no variable 'main::calls'"):
        program.variables.find("main::calls")


def test_types_have_their_c_names(program):
    neighbours = program.variables.find("neighbours").type
    assert (neighbours.name, neighbours.size, neighbours.count) == ("node_t[4]", 48, 4)
    members = {member.name: member.type for member in neighbours.element.members}
    assert members["next"].name == "struct node*"
    assert members["colour"].values == (("RED", 0), ("GREEN", 5))
    assert program.variables.find("mydata").type.members[1].type.name == "float[3][2]"
    assert program.variables.find("callback").type.name == "function*"


def test_only_variables_of_the_firmware(program):
    names = {variable.name for variable in program.variables}
    assert "dropped_variable" not in names
    assert "PORTB" not in names
    assert "UDR0" not in names  # avr-libc's start-up file lists the registers


def test_without_debug_information(tmp_path):
    program = load_program(compile_firmware(tmp_path))
    assert len(program.lines) == len(program.variables) == 0
    with pytest.raises(UsageError, match="compiled with -gdwarf-4"):
        program.variables.place("ticks")


def test_program_without_a_vector_table_has_lines_at_zero(tmp_path):
    source = "int start(void) { for (;;) ; }"
    options = ["-gdwarf-4", "-nostartfiles", "-nodefaultlibs"]
    program = load_program(compile_firmware(tmp_path, *options, source=source))
    assert program.lines.at(0).line == 1


def test_damaged_debug_information_is_an_error_of_the_file(tmp_path):
    content = bytearray(compile_firmware(tmp_path, "-gdwarf-4").read_bytes())
    program = load_program(tmp_path / "firmware.elf")
    start = content.index(b"firmware.c\0")
    content[start - 400 : start] = b"\xee" * 400
    broken = build_program({0: 0}, {}, source=program.source, elf=bytes(content))
    with pytest.raises(ProgramError, match=r"firmware\.elf: debug information cannot be read"):
        _ = broken.lines, broken.variables


BYTE = Scalar("uint8_t", 1, Encoding.UNSIGNED)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a b", "not a variable path"),
        ("a[-1]", "not a variable path"),
        ("aray", "did you mean array"),
        ("array[4]", "index 4 is beyond the 4 elements"),
        ("array.x", "has no members"),
        ("array[0][0]", "is not an array"),
        ("record.y", "has no member 'y'; it has x"),
        ("twice", "ambiguous: f::twice, g::twice"),
    ],
)
def test_paths_that_lead_nowhere(path, words):
    variables = Variables(
        [
            Variable("array", 0x100, Space.DATA, Array("uint8_t[4]", 4, BYTE, 4)),
            Variable("record", 0x104, Space.DATA, Record("struct", 1, (Member("x", 0, BYTE),))),
            Variable("twice", 0x110, Space.DATA, BYTE, function="f"),
            Variable("twice", 0x111, Space.DATA, BYTE, function="g"),
        ]
    )
    with pytest.raises(UsageError, match=words):
        variables.place(path)


def test_line_table_gaps():
    lines = LineTable([LineRange(0x10, 0x14, "src/a.c", 3), LineRange(0x20, 0x22, "src/b.c", 4)])
    assert lines.at(0x13).line == 3
    assert lines.at(0x14) is None
    assert lines.addresses("b.c", 4) == [0x20]
    assert lines.addresses("src/b.c", 4) == [0x20]
    assert lines.addresses("other/b.c", 4) == []
