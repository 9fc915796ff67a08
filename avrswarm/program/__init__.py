"""Chapter 1: a firmware file becomes a memory image.

In: an Intel HEX or ELF file, or words made by hand. Out: a `Program`, with flash, EEPROM, fuses,
symbols and a digest that tells firmwares apart. Nothing here knows what an instruction does.

- `load.py` reads a file and says clearly what is wrong with it; `hexfile.py` and `elffile.py` know
  the two formats.
- `image.py` is the `Program`; `space.py` the memories of the chip and their sizes.
- `symbols.py`, `lines.py` and `variables.py` give addresses their names, source lines and C types;
  `dwarf.py` reads the latter two when they are first asked for.

Addresses are byte addresses, everywhere. Read next: `avrswarm.isa`.
"""

from avrswarm.program.image import Fuses, Program
from avrswarm.program.load import load_eeprom, load_program, with_debug_information
from avrswarm.program.symbols import Kind, Symbol, Symbols

__all__ = [
    "Fuses",
    "Kind",
    "Program",
    "Symbol",
    "Symbols",
    "load_eeprom",
    "load_program",
    "with_debug_information",
]
