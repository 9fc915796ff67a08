"""The committed binaries are what the sources give and name no machine."""

import json
import os
import re
import subprocess
import sys
from hashlib import sha256

import pytest

from .bench import FIRMWARE

TOOL = FIRMWARE.parent / "tools" / "build_firmware.py"
IMAGES = sorted(path.stem for path in FIRMWARE.glob("*/*.elf"))
PROGRAMS = [
    "blink",
    "bootloader",
    "disperse",
    "distance_reporter",
    "edge_following",
    "follow_leader",
    "gradient",
    "listener",
    "move",
    "move_nonblocking",
    "move_to_light",
    "ohc",
    "orbit_planet",
    "orbit_star",
    "random_walk",
    "speaker",
    "sync",
    "timing_probe",
]


def run_tool(*arguments, **environment):
    return subprocess.run(
        [sys.executable, TOOL, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_all_programs_are_there():
    assert IMAGES == PROGRAMS


@pytest.mark.needs_avr_gcc
def test_committed_binaries_are_what_the_sources_give():
    done = run_tool("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_manifest_knows_the_committed_files():
    manifest = json.loads((FIRMWARE / "manifest.json").read_text())
    assert sorted(manifest["images"]) == PROGRAMS
    assert "avr-gcc" in manifest["toolchain"]["compiler"]
    for name, image in manifest["images"].items():
        for suffix in ("elf", "hex"):
            content = (FIRMWARE / name / f"{name}.{suffix}").read_bytes()
            assert sha256(content).hexdigest() == image[f"{suffix}_sha256"], name


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_path_of_any_machine_is_inside(name):
    content = (FIRMWARE / name / f"{name}.elf").read_bytes()
    assert not re.findall(rb"/(?:home|usr|tmp|work|root|build|opt|mnt|var)/[\w./-]+", content)


@pytest.mark.parametrize("name", PROGRAMS)
def test_sources_say_what_one_should_see(name):
    source = (FIRMWARE / name / f"{name}.c").read_text()
    header = source[: source.index("*/")]
    assert re.search(r"[Ww]hat one should\s+\*?\s*see", header)


def test_a_missing_compiler_is_told_clearly():
    done = run_tool(PATH="/nonexistent")
    assert done.returncode == 3
    assert "avr-gcc is not installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_names_are_told_clearly():
    done = run_tool("gradeint")
    assert done.returncode == 2
    assert "gradeint" in done.stderr
