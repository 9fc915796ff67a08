"""EEPROM fields against sections 5.1, 5.3 and 10 of the hardware reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrswarm.errors import UsageError
from avrswarm.robot.eeprom_map import EepromMap

BYTE = st.integers(0, 255)
TABLE = st.tuples(*[st.integers(0, 65535)] * 14)


def test_addresses():
    content = EepromMap(uid=0x1234, osccal=0x9A, tx_mask=0x81).pack()
    assert len(content) == 1024
    assert content[0x01] == 0x9A
    assert (content[0x05], content[0x09], content[0x0C], content[0x14]) == (73, 68, 65, 62)
    assert content[0x20:0x24] == bytes([277 >> 8, 277 & 255, 273 >> 8, 273 & 255])
    assert content[0x3A:0x3C] == bytes([0, 122])
    assert content[0x50:0x52] == bytes([1098 >> 8, 1098 & 255])
    assert content[0x6A:0x6C] == bytes([568 >> 8, 568 & 255])
    assert content[0x90] == 0x81
    assert content[0xB0:0xB2] == bytes([0x34, 0x12])
    named = {1, 5, 9, 0x0C, 0x14, 0x90, 0xB0, 0xB1, *range(0x20, 0x3C), *range(0x50, 0x6C)}
    assert all(content[i] == 0xFF for i in range(1024) if i not in named)


def test_an_erased_robot():
    erased = EepromMap.unpack(b"\xff" * 1024)
    assert erased.uid == 65535
    assert erased.osccal is None
    assert erased.turn_left == erased.straight_right == 255
    assert erased.low_gain == (65535,) * 14
    assert erased.used_tx_mask == 0x01


@pytest.mark.parametrize(
    ("stored", "used"), [(0x00, 0x00), (0xC7, 0xC7), (0x08, 0x01), (0xFF, 0x01)]
)
def test_a_mask_with_foreign_pins_is_not_used(stored, used):
    assert EepromMap(tx_mask=stored).used_tx_mask == used


def test_other_bytes_are_kept():
    base = bytes(range(256)) * 4
    content = EepromMap().pack(base)
    assert content[0x00] == 0
    assert content[0x91] == 0x91
    assert content[0x3C] == 0x3C


FIELDS = st.builds(
    EepromMap,
    uid=st.integers(0, 65535),
    osccal=st.none() | st.integers(0, 254),
    turn_left=BYTE,
    turn_right=BYTE,
    straight_left=BYTE,
    straight_right=BYTE,
    low_gain=TABLE,
    high_gain=TABLE,
    tx_mask=BYTE,
)


@given(FIELDS)
def test_round_trip(fields):
    assert EepromMap.unpack(fields.pack()) == fields


@pytest.mark.parametrize(
    "wrong", [{"uid": 65536}, {"turn_left": 256}, {"osccal": 255}, {"low_gain": (1,)}]
)
def test_values_that_do_not_fit_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        EepromMap(**wrong)
