import pytest

from avrswarm.errors import UsageError
from avrswarm.program import Kind, Symbol, Symbols
from avrswarm.program.space import Space, locate

FLASH, DATA = Space.FLASH, Space.DATA


def names(*extra):
    return Symbols(
        [
            Symbol("__ctors_end", 0x68, 0, Kind.LABEL, FLASH),
            Symbol("__init", 0x68, 0, Kind.LABEL, FLASH, is_global=False),
            Symbol("helper", 0x80, 0x10, Kind.FUNCTION, FLASH),
            Symbol(".loop", 0x84, 0, Kind.LABEL, FLASH, is_global=False),
            Symbol("main", 0xA0, 0x20, Kind.FUNCTION, FLASH),
            Symbol("table", 0xB0, 4, Kind.OBJECT, FLASH),
            Symbol("counter", 0x100, 2, Kind.OBJECT, DATA),
            *extra,
        ]
    )


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (0x00, "0x0000"),
        (0x68, "__init"),
        (0x6A, "__init+0x2"),
        (0x80, "helper"),
        (0x86, "helper+0x6"),  # a label inside a function does not hide it
        (0x90, ".loop+0xc"),  # after the end of helper: the closest name
        (0xA0, "main"),
        (0xB2, "main+0x12"),
    ],
)
def test_describe(address, words):
    assert names().describe(address) == words


def test_starting_at():
    assert names().starting_at(0x80) == "helper"
    assert names().starting_at(0x82) is None
    assert names().starting_at(0x100) is None  # counter is data


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("main", 0xA0),
        ("main+0x10", 0xB0),
        ("main + 16", 0xB0),
        ("0x1c4", 0x1C4),
        ("452", 452),
        ("table", 0xB0),
    ],
)
def test_resolve(text, address):
    assert names().resolve(text) == address


@pytest.mark.parametrize(
    "text", ["mian", "main+x", "counter", "", "none+0x10", "0x8000", "-2", "main+1"]
)
def test_resolve_refuses(text):
    with pytest.raises(UsageError) as caught:
        names().resolve(text)
    assert caught.value.exit_code == 2


def test_suggestions():
    with pytest.raises(UsageError, match="did you mean main"):
        names().resolve("mian")
    with pytest.raises(UsageError, match=r"load the \.elf file"):
        Symbols().resolve("main")


def test_a_global_name_hides_local_ones_and_local_ones_clash():
    local = Symbol("twice", 0x200, 2, Kind.FUNCTION, FLASH, is_global=False)
    other = Symbol("twice", 0x300, 2, Kind.FUNCTION, FLASH, is_global=False)
    strong = Symbol("twice", 0x400, 2, Kind.FUNCTION, FLASH)
    assert names(local, strong).resolve("twice") == 0x400
    with pytest.raises(UsageError, match=r"ambiguous: 0x0200 \(flash\), 0x0300 \(flash\)"):
        names(local, other).resolve("twice")


def test_find_in_a_space():
    assert names().find("counter").address == 0x100
    assert names().find("counter", FLASH) is None


@pytest.mark.parametrize(
    ("link_address", "place"),
    [
        (0x0000, (Space.FLASH, 0)),
        (0x7FFF, (Space.FLASH, 0x7FFF)),
        (0x800100, (Space.DATA, 0x100)),
        (0x810003, (Space.EEPROM, 3)),
        (0x820002, (Space.FUSE, 2)),
        (0x830000, (Space.LOCK, 0)),
        (0x840000, (Space.OTHER, 0x840000)),
    ],
)
def test_linker_addresses(link_address, place):
    assert locate(link_address) == place
