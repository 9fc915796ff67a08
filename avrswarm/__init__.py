"""avrswarm: a cycle-exact ATmega328P, and swarms of robots that run their real firmware on it.

A guided tour, in the order in which a firmware file comes to life:

1. `avrswarm.program`: a ``.hex`` or ``.elf`` file becomes a flash and EEPROM image with symbols.
2. `avrswarm.isa`: one table says what each instruction word means.
3. `avrswarm.chip`: core, interrupts and peripherals, to the cycle.
4. `avrswarm.robot`: what hangs on which pin of a Kilobot: motors, infrared, LED, sensors, battery.
5. `avrswarm.world`: bodies, walls, light and the paths of infrared between places; knows no chips.
6. `avrswarm.scene`: a TOML file becomes robots on a table.
7. `avrswarm.swarm`: many chips and one world advance together, exactly.
8. `avrswarm.record`: what is kept of a run: tables, pictures, films, waveforms.
9. `avrswarm.study`: what people ask of it.
10. `avrswarm.cli`: the same from the command line; `avrswarm.errors` is what it can complain of.

A layer imports only from those before it. Addresses are byte addresses, time is a whole number of
chip cycles, register and pin names are the datasheet's.

>>> from avrswarm.program import Program
>>> hex(Program.from_words([0x9508]).flash[0])  # ret
'0x9508'

Names below are imported when first used, so that ``import avrswarm`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrswarm.chip.chip import Chip
    from avrswarm.errors import AvrSwarmError
    from avrswarm.program import load_program
    from avrswarm.record.run_folder import read_run
    from avrswarm.scene import read_scene
    from avrswarm.swarm.simulation import Simulation

__version__ = "0.1.0.dev0"

__all__ = [
    "AvrSwarmError",
    "Chip",
    "Simulation",
    "__version__",
    "load_program",
    "read_run",
    "read_scene",
]

_HOMES = {
    "AvrSwarmError": "avrswarm.errors",
    "Chip": "avrswarm.chip.chip",
    "Simulation": "avrswarm.swarm.simulation",
    "load_program": "avrswarm.program",
    "read_run": "avrswarm.record.run_folder",
    "read_scene": "avrswarm.scene",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'avrswarm' has no attribute '{name}'")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
