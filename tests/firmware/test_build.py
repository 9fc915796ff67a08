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
    """A copy of sources, binaries and tool in another folder."""
    root = tmp_path / "another place" / "deep" / "inside"
    for folder in ("kilolib", "blink", "gradient"):
        shutil.copytree(FIRMWARE / folder, root / "firmware" / folder)
    shutil.copy(FIRMWARE / "manifest.json", root / "firmware")
    (root / "tools").mkdir()
    shutil.copy(TOOL, root / "tools")
    return root


def check(root, name):
    done = run_tool("--check", name, tool=root / "tools" / TOOL.name)
    return done.returncode, done.stdout


@pytest.mark.needs_avr_gcc
def test_builds_do_not_depend_on_the_place(elsewhere):
    _, output = check(elsewhere, "gradient")
    assert "gradient.elf" not in output
    assert "gradient.hex" not in output


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


LAB_PROGRAM = r"""
#include <avr/io.h>
#include <kilolib.h>
#ifdef WITH_DEBUG
#define DEBUG
#endif
#include <debug.h>

#define STOP 0
#define LEFT 1

int last_light = 0;
message_t message;
int message_sent = 0;
int new_message = 0;
distance_measurement_t distance;
uint32_t last_motion_ticks = 0;

void set_motion(int new_motion) {
    if (new_motion == STOP) {
        set_motors(0, 0);
    } else {
        spinup_motors();
        set_motors(kilo_turn_left, kilo_turn_right);
    }
}

message_t *message_tx() { return message_sent ? 0 : &message; }
void message_tx_success() { message_sent = 1; }
void message_rx(message_t *m, distance_measurement_t *d) {
    if (m->type == NORMAL && m->data[0] == 7) new_message = 1;
    distance = *d;
}

void setup() {
    message.type = NORMAL;
    message.data[0] = kilo_uid;
    message.crc = message_crc(&message);
    rand_seed(rand_hard());
    kilo_tx_period = 500;
    last_motion_ticks = kilo_ticks + 2 * TICKS_PER_SEC + rand_soft() % 8;
}

void loop() {
    if (new_message) {
        new_message = 0;
        int d = estimate_distance(&distance);
        set_color(RGB(d < 50, d > 50 ? 3 : 0, 0));
        printf("%d %d %d\n", d, distance.low_gain, distance.high_gain);
        set_motion(d < 50 ? STOP : LEFT);
        set_motors(kilo_straight_left, kilo_straight_right);
        delay(200);
    }
    last_light = get_ambientlight() + get_voltage() + get_temperature();
}

int main() {
    kilo_init();
    debug_init();
    kilo_message_rx = message_rx;
    kilo_message_tx = message_tx;
    kilo_message_tx_success = message_tx_success;
    kilo_start(setup, loop);
    return 0;
}
"""


@pytest.mark.needs_avr_gcc
@pytest.mark.parametrize("extra", [[], ["-DWITH_DEBUG"]])
def test_an_existing_program_compiles_unchanged(tmp_path, extra):
    """Every name of the public library, used the way programs use it."""
    source = tmp_path / "lab.c"
    source.write_text(LAB_PROGRAM)
    flags = json.loads((FIRMWARE / "manifest.json").read_text())["compile_flags"]
    flags = [flag for flag in flags if flag not in ("-Wextra",)]
    library = sorted(FIRMWARE.glob("kilolib/*.[cS]"))
    done = subprocess.run(
        [
            "avr-gcc",
            *flags,
            *extra,
            source,
            *library,
            "-Wl,--gc-sections",
            "-o",
            tmp_path / "lab.elf",
        ],
        cwd=FIRMWARE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
