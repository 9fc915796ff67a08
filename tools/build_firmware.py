#!/usr/bin/env python3
"""Build everything under firmware/ with avr-gcc and avr-libc.

    tools/build_firmware.py                 build all: .elf and .hex next to the sources,
                                            and firmware/manifest.json
    tools/build_firmware.py gradient sync   only these (the manifest keeps the others)
    tools/build_firmware.py --check         build elsewhere and compare with what is committed

The binaries are committed, so nobody needs a compiler to run them. Builds do not depend on the
place or the time: paths are mapped to names relative to firmware/, objects are named after their
sources.

Exit codes: 0 done or equal, 1 --check found a difference, 2 usage, 3 no usable compiler or a source
does not compile.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parent.parent / "firmware"
MANIFEST = "manifest.json"

COMPILE_FLAGS = [
    "-mmcu=atmega328p",
    "-DF_CPU=8000000",
    "-std=gnu99",
    "-Os",
    "-gdwarf-4",
    "-gno-record-gcc-switches",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fpack-struct",
    "-fshort-enums",
    "-funsigned-char",
    "-funsigned-bitfields",
    "-ffunction-sections",
    "-fdata-sections",
    "-Ikilolib",
]
LINK_FLAGS = ["-mmcu=atmega328p", "-Wl,--gc-sections"]
HEX_FLAGS = ["-O", "ihex", "-R", ".eeprom", "-R", ".fuse", "-R", ".lock", "-R", ".signature"]

LIBRARY = [
    "kilolib/kilolib.c",
    "kilolib/distance.c",
    "kilolib/message_crc.S",
    "kilolib/random.c",
    "kilolib/sensors.c",
    "kilolib/receive.S",
    "kilolib/transmit.S",
]


class BuildError(Exception):
    """Something a user can put right: no compiler, or a source that does not compile."""


@dataclass(frozen=True)
class Target:
    """One firmware image: firmware/<name>/<name>.elf and .hex."""

    name: str
    sources: list[str]
    link_flags: list[str] = field(default_factory=list)


# These are not programs on top of the library.
SPECIAL = {
    **{
        name: Target(name, [f"{name}/{name}.c"])
        for name in ("bench_adc", "bench_compute", "bench_idle", "bench_polling")
    },
    "bootloader": Target(
        "bootloader",
        ["bootloader/bootloader.c", "kilolib/message_crc.S", "kilolib/receive.S"],
        ["-Wl,--section-start=.text=0x7000"],
    ),
    "ohc": Target("ohc", ["ohc/ohc.c", "kilolib/message_crc.S", "ohc/send.S"]),
}


def targets() -> dict[str, Target]:
    """Find the images: every folder that holds <name>/<name>.c."""
    names = sorted(
        path.parent.name for path in FIRMWARE.glob("*/*.c") if path.stem == path.parent.name
    )
    return {
        name: SPECIAL.get(name, Target(name, [f"{name}/{name}.c", *LIBRARY]))
        for name in names
        if name != "kilolib"
    }


def run(command: list[str], cwd: Path = FIRMWARE) -> str:
    """Run a tool and return what it printed."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(
            f"{command[0]} is not installed. On Debian or Ubuntu: "
            "apt install gcc-avr avr-libc binutils-avr. "
            "The committed .hex and .elf files work without it."
        ) from None
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout


def toolchain() -> dict[str, str]:
    """Tell the versions that decide what the binaries look like."""
    if shutil.which("avr-gcc") is None:
        run(["avr-gcc", "--version"])  # raises with the explanation
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.c"
        probe.write_text("#include <avr/version.h>\n__AVR_LIBC_VERSION_STRING__\n")
        try:
            libc = run(["avr-gcc", "-E", "-P", str(probe)]).split()[-1].strip('"')
        except BuildError as error:
            raise BuildError(f"avr-libc is missing (apt install avr-libc):\n{error}") from None
    return {
        "compiler": run(["avr-gcc", "--version"]).splitlines()[0],
        "binutils": run(["avr-ld", "--version"]).splitlines()[0],
        "avr-libc": libc,
    }


def path_maps() -> list[str]:
    """Map what debug information says about places: relative to firmware/ and to the toolchain."""
    done = subprocess.run(
        ["avr-gcc", "-mmcu=atmega328p", "-xc", "-E", "-Wp,-v", "-"],
        input="",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stderr.splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith("search starts here:"))
    folders = [line.strip() for line in lines[start + 1 :] if line.startswith(" ")]
    maps = [f"{FIRMWARE}=."]
    for i, folder in enumerate(folders):
        spellings = {folder, os.path.normpath(folder), os.path.realpath(folder)}
        maps += [f"{spelling}=toolchain/{i}" for spelling in sorted(spellings)]
    return maps


def build(target: Target, objects: Path, out: Path, maps: list[str]) -> None:
    """Compile and link one image into out/<name>/."""
    files = []
    for source in target.sources:
        object_file = objects / (source.replace("/", "_") + ".o")
        if not object_file.exists():
            flag = "-Wa,--debug-prefix-map," if source.endswith(".S") else "-fdebug-prefix-map="
            run(
                [
                    "avr-gcc",
                    *COMPILE_FLAGS,
                    *(flag + m for m in maps),
                    "-c",
                    source,
                    "-o",
                    str(object_file),
                ]
            )
        files.append(object_file.name)
    folder = out / target.name
    folder.mkdir(parents=True, exist_ok=True)
    elf = (folder / f"{target.name}.elf").resolve()
    run(["avr-gcc", *LINK_FLAGS, *target.link_flags, *files, "-o", str(elf)], cwd=objects)
    run(["avr-objcopy", *HEX_FLAGS, str(elf), str(elf.with_suffix(".hex"))])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def describe(target: Target, out: Path) -> dict[str, object]:
    """Make the manifest's entry of one image."""
    elf = out / target.name / f"{target.name}.elf"
    text, data, bss = (
        int(word) for word in run(["avr-size", str(elf)]).splitlines()[1].split()[:3]
    )
    return {
        "elf_sha256": digest(elf),
        "hex_sha256": digest(elf.with_suffix(".hex")),
        "flash_bytes": text + data,
        "ram_bytes": data + bss,
        "sources": target.sources,
        "link_flags": target.link_flags,
    }


def manifest_text(tools: dict[str, str], images: dict[str, object]) -> str:
    content = {
        "toolchain": tools,
        "compile_flags": COMPILE_FLAGS,
        "link_flags": LINK_FLAGS,
        "images": {name: images[name] for name in sorted(images)},
    }
    return json.dumps(content, indent=2) + "\n"


def read_manifest() -> dict[str, object]:
    path = FIRMWARE / MANIFEST
    if not path.exists():
        return {}
    content: dict[str, object] = json.loads(path.read_text())
    return content


def build_all(chosen: list[Target], out: Path) -> dict[str, object]:
    maps = path_maps()
    images: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as objects:
        for target in chosen:
            build(target, Path(objects), out, maps)
            images[target.name] = describe(target, out)
    return images


def check(chosen: list[Target], tools: dict[str, str]) -> int:
    """Compare the committed binaries and the manifest with what the sources give."""
    committed = read_manifest()
    if committed.get("toolchain") != tools:
        raise BuildError(
            f"the committed binaries were built with {committed.get('toolchain')}, "
            f"here is {tools}: only the same toolchain can prove them"
        )
    recorded = committed.get("images")
    assert isinstance(recorded, dict)
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        images = build_all(chosen, out)
        for target in chosen:
            for suffix in (".elf", ".hex"):
                name = f"{target.name}/{target.name}{suffix}"
                if not (FIRMWARE / name).exists():
                    wrong.append(f"{name}: not committed")
                elif (FIRMWARE / name).read_bytes() != (out / name).read_bytes():
                    wrong.append(f"{name}: differs from what the sources give")
            if recorded.get(target.name) != images[target.name]:
                wrong.append(f"{MANIFEST}: entry of {target.name} is out of date")
    if committed.get("compile_flags") != COMPILE_FLAGS or committed.get("link_flags") != LINK_FLAGS:
        wrong.append(f"{MANIFEST}: flags are out of date")
    wrong += [
        f"{MANIFEST}: {name} has no source" for name in sorted(set(recorded) - set(targets()))
    ]
    for line in wrong:
        print(line)
    if wrong:
        print("run tools/build_firmware.py and commit the result")
        return 1
    print(f"{len(chosen)} images are what their sources give")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Builds the firmware with avr-gcc.")
    parser.add_argument("names", nargs="*", help="images to build (default: all)")
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    options = parser.parse_args(arguments)
    known = targets()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    try:
        tools = toolchain()
        if options.check:
            return check(chosen, tools)
        images = build_all(chosen, FIRMWARE)
    except BuildError as error:
        print(f"build_firmware: {error}", file=sys.stderr)
        return 3
    kept = read_manifest().get("images") if options.names else None
    merged = {**(kept if isinstance(kept, dict) else {}), **images}
    (FIRMWARE / MANIFEST).write_text(manifest_text(tools, merged))
    for name, image in images.items():
        assert isinstance(image, dict)
        print(f"{name:20} {image['flash_bytes']:6} bytes flash {image['ram_bytes']:5} bytes RAM")
    return 0


if __name__ == "__main__":
    sys.exit(main())
