"""What can go wrong, and the exit code each kind has on the command line.

Every message names the file or object, the place in it, the value found and what to do about it.
Scripts tell kinds apart by exit code: 2 the call was wrong, 3 the input is bad, 4 the firmware did
something that has no meaning, 70 a defect of avrswarm itself (any exception that is not from here).
"""

from __future__ import annotations


class AvrSwarmError(Exception):
    """Base of every error that is the user's to fix; ``str(error)`` is a complete message."""

    exit_code = 3


class UsageError(AvrSwarmError):
    """A call or an option that cannot be meant: an unknown symbol, pin or register name."""

    exit_code = 2


class ProgramError(AvrSwarmError):
    """A firmware or EEPROM file that cannot be loaded."""


class SceneError(AvrSwarmError):
    """A scene file with a key, value or path that does not hold."""


class RecordError(AvrSwarmError):
    """A run folder or output file that cannot be written or read back."""


class ChipFault(AvrSwarmError):
    """The firmware did something that has no defined meaning on the chip."""

    exit_code = 4
