"""The memories of an ATmega328P, and where avr-gcc's linker puts each in its one address range."""

from __future__ import annotations

from enum import StrEnum

FLASH_BYTES = 32 * 1024
FLASH_WORDS = FLASH_BYTES // 2
EEPROM_BYTES = 1024
FUSE_BYTES = 3
LOCK_BYTES = 1


class Space(StrEnum):
    """A memory of the chip; each counts its bytes from 0."""

    FLASH = "flash"
    DATA = "data"
    EEPROM = "EEPROM"
    FUSE = "fuse"
    LOCK = "lock"
    OTHER = "other"


# binutils' bfd gives each memory a 64 KiB stretch above 8 MiB; the device signature (0x840000) and
# user signatures (0x850000) follow and are of no use here.
_LINK_SPACES = (Space.DATA, Space.EEPROM, Space.FUSE, Space.LOCK)
_LINK_BASE = 0x80_0000
_LINK_STRETCH = 0x1_0000

# How many bytes a firmware file may fill; data memory is filled by the firmware itself.
PROGRAMMABLE_BYTES = {
    Space.FLASH: FLASH_BYTES,
    Space.EEPROM: EEPROM_BYTES,
    Space.FUSE: FUSE_BYTES,
    Space.LOCK: LOCK_BYTES,
}


def locate(link_address: int) -> tuple[Space, int]:
    """Return the memory and the byte address in it that a linker address means.

    >>> locate(0x800100)
    (<Space.DATA: 'data'>, 256)
    """
    if link_address < _LINK_BASE:
        return Space.FLASH, link_address
    stretch, address = divmod(link_address - _LINK_BASE, _LINK_STRETCH)
    if stretch < len(_LINK_SPACES):
        return _LINK_SPACES[stretch], address
    return Space.OTHER, link_address
