"""The C programs next to this file, compiled with avr-gcc when a test asks for them."""

import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.simavr import scratch

SOURCES = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in SOURCES.glob("*.c"))
OPTIMISATIONS = ["-O0", "-Os", "-O2"]


@dataclass(frozen=True)
class Compiled:
    elf: Path
    flash: bytes
    symbols: dict[str, int]  # name -> byte address

    @property
    def words(self) -> list[int]:
        padded = self.flash + b"\xff" * (len(self.flash) % 2)
        return [int.from_bytes(padded[i : i + 2], "little") for i in range(0, len(padded), 2)]


@functools.cache
def compile_c(name: str, optimisation: str) -> Compiled:
    elf = scratch() / f"{name}{optimisation}.elf"
    image = elf.with_suffix(".bin")
    compiler = ["avr-gcc", "-mmcu=atmega328p", optimisation, "-g", "-std=gnu11"]
    warnings = ["-Wall", "-Wno-unused-function", "-Werror"]
    printf = ["-Wl,-u,vfprintf", "-lprintf_flt"] if name == "print" else []
    files = ["-o", str(elf), str(SOURCES / f"{name}.c")]
    subprocess.run([*compiler, *warnings, *files, *printf, "-lm"], check=True)
    subprocess.run(["avr-objcopy", "-O", "binary", str(elf), str(image)], check=True)
    listing = subprocess.run(["avr-nm", str(elf)], check=True, capture_output=True, text=True)
    symbols = {}
    for line in listing.stdout.splitlines():
        address, _, symbol = line.split()
        symbols[symbol] = int(address, 16)
    return Compiled(elf, image.read_bytes(), symbols)
