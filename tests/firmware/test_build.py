"""The committed binaries are what the sources give and name no machine."""

import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256

import pytest

from .bench import FIRMWARE

TOOL = FIRMWARE.parent / "tools" / "build_firmware.py"
IMAGES = sorted(path.stem for path in FIRMWARE.glob("*/*.elf"))
PROGRAMS = [
    "bench_adc",
    "bench_compute",
    "bench_idle",
    "bench_polling",
    "blink",
    "bootloader",
    "chatter",
    "disperse",
    "distance_reporter",
    "edge_following",
    "follow_leader",
    "gradient",
    "hop_sync",
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


def run_tool(*arguments, tool=TOOL, **environment):
    return subprocess.run(
        [sys.executable, tool, *arguments],
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


@pytest.fixture
def elsewhere(tmp_path):
    """A copy of two programs, their manifest and the tool in another folder."""
    root = tmp_path / "another place" / "deep" / "inside"
    for folder in ("kilolib", "blink", "gradient"):
        shutil.copytree(FIRMWARE / folder, root / "firmware" / folder)
    manifest = json.loads((FIRMWARE / "manifest.json").read_text())
    manifest["images"] = {name: manifest["images"][name] for name in ("blink", "gradient")}
    (root / "firmware" / "manifest.json").write_text(json.dumps(manifest))
    (root / "tools").mkdir()
    shutil.copy(TOOL, root / "tools")
    return root


def check(root, name):
    done = run_tool("--check", name, tool=root / "tools" / TOOL.name)
    return done.returncode, done.stdout


@pytest.mark.needs_avr_gcc
def test_builds_do_not_depend_on_the_place(elsewhere):
    assert check(elsewhere, "gradient") == (0, "1 images are what their sources give\n")


@pytest.mark.needs_avr_gcc
def test_a_build_elsewhere_gives_the_committed_bytes(elsewhere):
    images = [elsewhere / "firmware" / "gradient" / f"gradient.{kind}" for kind in ("elf", "hex")]
    for image in images:
        image.unlink()
    done = run_tool("gradient", tool=elsewhere / "tools" / TOOL.name)
    assert done.returncode == 0, done.stderr
    recorded = json.loads((FIRMWARE / "manifest.json").read_text())["images"]["gradient"]
    digests = [sha256(image.read_bytes()).hexdigest() for image in images]
    assert digests == [recorded["elf_sha256"], recorded["hex_sha256"]]


@pytest.mark.needs_avr_gcc
def test_check_finds_a_changed_binary_and_a_changed_source(elsewhere):
    binary = elsewhere / "firmware" / "blink" / "blink.hex"
    content = binary.read_text()
    binary.write_text(content.replace("0C94", "0C95", 1))
    code, output = check(elsewhere, "blink")
    assert code == 1
    assert "blink/blink.hex: differs from what the sources give" in output
    assert "blink.elf: differs" not in output
    binary.write_text(content)
    source = elsewhere / "firmware" / "kilolib" / "kilolib.c"
    source.write_text(source.read_text().replace("_delay_loop_2(2000)", "_delay_loop_2(2001)"))
    code, output = check(elsewhere, "blink")
    assert code == 1
    assert "blink/blink.elf: differs" in output
    assert "blink/blink.hex: differs" in output


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
