"""Calibration of one robot: the named fields of its EEPROM.

Addresses and defaults are those of the current public library. A robot that was never calibrated
has 0xFF everywhere: id 65535, full motor power, no distance tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from avrswarm.errors import UsageError

EEPROM_BYTES = 1024
ERASED = 0xFF

OSCCAL = 0x01
TURN_LEFT = 0x05
TURN_RIGHT = 0x09
STRAIGHT_LEFT = 0x0C
STRAIGHT_RIGHT = 0x14
LOW_GAIN_TABLE = 0x20
HIGH_GAIN_TABLE = 0x50
TX_MASK = 0x90
UID = 0xB0

TABLE_POINTS = 14
"""Table entry i is the ADC count at a gap of 5*i mm, that is 33 + 5*i mm between centres."""

TX_PINS = 0xC7
"""Port B pins that drive the infrared LED; any other bit makes the whole mask invalid."""

LOW_GAIN_EXAMPLE = (277, 273, 266, 250, 231, 213, 196, 181, 171, 159, 148, 141, 131, 122)
HIGH_GAIN_EXAMPLE = (1098, 1088, 1080, 1047, 1014, 960, 881, 823, 777, 727, 681, 645, 619, 568)
"""Tables of a real calibration; high gain counts above 1023 are extrapolated, no ADC shows them."""


@dataclass(frozen=True)
class EepromMap:
    """What one robot keeps in EEPROM. Defaults are a well calibrated robot.

    Attributes
    ----------
    uid
        Robot id, 0..65535.
    osccal
        Oscillator calibration, or None to keep the factory value.
    turn_left, turn_right, straight_left, straight_right
        Motor duty, 0..255.
    low_gain, high_gain
        Distance tables, 14 ADC counts each, falling.
    tx_mask
        Port B pins that light the infrared LED.
    """

    uid: int = 0
    osccal: int | None = None
    turn_left: int = 73
    turn_right: int = 68
    straight_left: int = 65
    straight_right: int = 62
    low_gain: tuple[int, ...] = LOW_GAIN_EXAMPLE
    high_gain: tuple[int, ...] = HIGH_GAIN_EXAMPLE
    tx_mask: int = 0x01

    def __post_init__(self) -> None:
        _check("uid", self.uid, 0xFFFF)
        for name in ("turn_left", "turn_right", "straight_left", "straight_right", "tx_mask"):
            _check(name, getattr(self, name), 0xFF)
        if self.osccal is not None:
            _check("osccal", self.osccal, 0xFE)
        for name in ("low_gain", "high_gain"):
            table = getattr(self, name)
            if len(table) != TABLE_POINTS:
                raise UsageError(f"EEPROM {name} has {len(table)} points, not {TABLE_POINTS}")
            for i, count in enumerate(table):
                _check(f"{name}[{i}]", count, 0xFFFF)

    @property
    def used_tx_mask(self) -> int:
        """Mask the firmware works with: 0x01 in place of one with other pins in it."""
        return 0x01 if self.tx_mask & ~TX_PINS else self.tx_mask

    def pack(self, base: bytes | None = None) -> bytes:
        """All 1024 bytes: these fields over ``base`` (default: erased)."""
        content = bytearray(base if base is not None else bytes([ERASED]) * EEPROM_BYTES)
        if len(content) != EEPROM_BYTES:
            raise UsageError(f"an EEPROM has {EEPROM_BYTES} bytes, not {len(content)}")
        content[OSCCAL] = ERASED if self.osccal is None else self.osccal
        content[TURN_LEFT] = self.turn_left
        content[TURN_RIGHT] = self.turn_right
        content[STRAIGHT_LEFT] = self.straight_left
        content[STRAIGHT_RIGHT] = self.straight_right
        _write_table(content, LOW_GAIN_TABLE, self.low_gain)
        _write_table(content, HIGH_GAIN_TABLE, self.high_gain)
        content[TX_MASK] = self.tx_mask
        content[UID : UID + 2] = self.uid.to_bytes(2, "little")
        return bytes(content)

    @classmethod
    def unpack(cls, content: bytes) -> EepromMap:
        """Fields of an EEPROM of 1024 bytes, erased or not."""
        if len(content) != EEPROM_BYTES:
            raise UsageError(f"an EEPROM has {EEPROM_BYTES} bytes, not {len(content)}")
        return cls(
            uid=int.from_bytes(content[UID : UID + 2], "little"),
            osccal=None if content[OSCCAL] == ERASED else content[OSCCAL],
            turn_left=content[TURN_LEFT],
            turn_right=content[TURN_RIGHT],
            straight_left=content[STRAIGHT_LEFT],
            straight_right=content[STRAIGHT_RIGHT],
            low_gain=_read_table(content, LOW_GAIN_TABLE),
            high_gain=_read_table(content, HIGH_GAIN_TABLE),
            tx_mask=content[TX_MASK],
        )


def _check(name: str, value: int, most: int) -> None:
    if not 0 <= value <= most:
        raise UsageError(f"EEPROM {name} is {value}, it must be in 0..{most}")


def _write_table(content: bytearray, address: int, table: tuple[int, ...]) -> None:
    """Write counts high byte first."""
    for i, count in enumerate(table):
        content[address + 2 * i : address + 2 * i + 2] = count.to_bytes(2, "big")


def _read_table(content: bytes, address: int) -> tuple[int, ...]:
    return tuple(
        int.from_bytes(content[address + 2 * i : address + 2 * i + 2], "big")
        for i in range(TABLE_POINTS)
    )
