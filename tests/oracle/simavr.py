"""Debian's simavr 1.6 as an oracle for long pure-CPU runs.

`run(flash, every=..., count=...)` gives checkpoints of a flash image executed by libsimavr: an
array with one record per checkpoint (see CHECKPOINT). The helper program next to this file is
compiled with gcc once per Python process, into a temporary folder.

What simavr 1.6 gets wrong is never compared away: programs that would show it are not generated.
The list (timing reference, section 11, column "simavr 1.6", and what was met here):

  C09 CPSE/SBRx/SBIx that skips an ADIW or SBIW whose K has a low nibble C..F skips two words
  C13 a PC that runs past 0x3FFF aborts
  C15 SLEEP with SE=0 sleeps
  C16, C17 SBI on PINx or a flag register acts on all bits
  1.4 data addresses above 0x08FF abort; LPM with Z bit 15 set reads outside the flash; undefined
       opcodes
  everything with interrupts, timers, EEPROM, SPM, watchdog, USART (I01 to U05)
"""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SRAM_START, SRAM_BYTES = 0x100, 0x800

# Little endian without padding, as struct checkpoint in simavr_trace.c.
CHECKPOINT = np.dtype(
    [
        ("instruction", "<u8"),
        ("cycle", "<u8"),
        ("pc", "<u2"),
        ("sp", "<u2"),
        ("sreg", "u1"),
        ("registers", "u1", 32),
        ("sram", "u1", SRAM_BYTES),
    ]
)


@functools.cache
def scratch() -> Path:
    """A temporary folder that lives as long as this Python process."""
    folder = Path(tempfile.mkdtemp(prefix="avrswarm-oracle-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def missing() -> str:
    """Why simavr cannot be used here, or an empty string (also if the tools are vouched for)."""
    if os.environ.get("AVRSWARM_REQUIRE_TOOLS"):
        return ""
    if shutil.which("gcc") is None:
        return "gcc is not installed"
    probe = subprocess.run(
        ["gcc", "-x", "c", "-fsyntax-only", "-"],
        input="#include <simavr/sim_avr.h>\n",
        text=True,
        capture_output=True,
        check=False,
    )
    return "libsimavr-dev is not installed" if probe.returncode else ""


@functools.cache
def helper() -> Path:
    """The compiled simavr_trace program."""
    program = scratch() / "simavr_trace"
    source = HERE / "simavr_trace.c"
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-o", str(program), str(source), "-lsimavr"],
        check=True,
        capture_output=True,
    )
    return program


def run(flash: bytes, *, every: int, count: int, until: int | None = None) -> np.ndarray:
    """Run `count` instructions, or up to byte address `until`; a checkpoint each `every` of them.

    The first checkpoint is the state after reset, the last one the state at the end.
    """
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        image, output = Path(folder) / "flash.bin", Path(folder) / "checkpoints.bin"
        image.write_bytes(flash)
        command = [str(helper()), str(image), str(output), str(every), str(count)]
        if until is not None:
            command.append(str(until))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"simavr stopped early: {done.stdout}{done.stderr}")
        checkpoints = np.fromfile(output, dtype=CHECKPOINT)
    if until is not None and checkpoints[-1]["pc"] != until:
        raise RuntimeError(f"simavr did not reach 0x{until:04X} in {count} instructions")
    return checkpoints
