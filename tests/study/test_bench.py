"""`avrswarm bench`: the figures are there, and they are of runs that did what they should."""

import json
import shutil
from functools import cache

import pytest
from click.testing import CliRunner

from avrswarm import Chip, load_program
from avrswarm.cli import cli
from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.scene.shipped import shipped_folder
from avrswarm.study import bench, bench_swarm
from avrswarm.swarm.simulation import Simulation

FIELDS = {
    "name",
    "mhz",
    "simavr_mhz",
    "ratio",
    "realtime_factor",
    "us_per_pulse",
    "interpreter_mhz",
}
NAMES = ["compute", "idle", "idle, skipping off", "polling", "ADC polling", "message receive"]


@cache
def figures():
    done = CliRunner().invoke(cli, ["bench", "--json", "--repeats", "1"], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout)


def test_json_has_one_row_for_each_case():
    rows = figures()["rows"]
    assert [row["name"] for row in rows] == NAMES
    for row in rows:
        assert set(row) == FIELDS
        assert row["mhz"] > 0
        assert row["interpreter_mhz"] > 0
        assert row["realtime_factor"] == pytest.approx(row["mhz"] / 8)
        assert (row["us_per_pulse"] is not None) == (row["name"] == "message receive")


@pytest.mark.needs_simavr
def test_ratios_are_ours_over_simavr():
    for row in figures()["rows"]:
        if row["name"] == "message receive":
            assert row["ratio"] is None
        else:
            assert row["ratio"] == pytest.approx(row["mhz"] / row["simavr_mhz"])


def test_swarm_rows_add_up(monkeypatch):
    """A few robots for a moment: the same figures as for a thousand."""
    few = tuple(case._replace(robots=9) for case in bench_swarm.CASES[:1] + bench_swarm.CASES[5:6])
    monkeypatch.setattr(bench_swarm, "_LONGEST_S", 0.5)
    talking, silent = bench.as_json(list(bench_swarm.bench_swarm(1, few)))["rows"]
    assert set(talking) > FIELDS
    for row in (talking, silent):
        assert row["mhz"] == pytest.approx(9 * 8 * row["realtime_factor"])
        shares = [row[f"{part}_share"] for part in ("chips", "medium", "physics", "records")]
        assert min(shares) > 0
        assert sum(shares) < 1
        assert sum(row["phases"].values()) == pytest.approx(1 / row["realtime_factor"])
    assert talking["us_per_pulse"] > 0
    assert silent["us_per_pulse"] is None


def test_options_of_swarms_belong_to_swarms():
    done = CliRunner().invoke(cli, ["bench", "--profile"])
    assert done.exit_code == 2
    assert "belong to --swarm" in done.output


def test_without_simavr_its_columns_are_empty(monkeypatch):
    monkeypatch.setattr(bench, "_CASES", bench._CASES[3:4])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    done = CliRunner().invoke(cli, ["bench", "--repeats", "1"], catch_exceptions=False)
    assert "polling" in done.stdout
    assert "simavr is not installed" in done.stderr
    other = bench.Row("x", 1, None, None, 1, None, 1)
    monkeypatch.setattr(bench, "_receive", lambda repeats: other)
    rows = list(bench.bench_chip(1))
    assert rows[0].simavr_mhz is None
    assert rows[0].ratio is None
    assert bench.as_json(rows)["simavr"] is False


@pytest.mark.parametrize("name", sorted({case.firmware for case in bench._CASES}))
def test_benchmark_firmware_ends_by_itself(name):
    program = load_program(shipped_folder("firmware") / name / f"{name}.elf")
    ends = {}
    for skip_idle in (True, False):
        chip = Chip(program, stop_when_halted=True, skip_idle=skip_idle)
        assert chip.run(100_000_000) == "halted"
        assert chip.asleep
        ends[skip_idle] = chip.cycle, chip.digest()
    assert ends[True] == ends[False]
    assert 25_000_000 < chip.cycle < 80_000_000


def test_every_pulse_of_the_receive_case_is_an_interrupt():
    chip = Chip(load_program(shipped_folder("firmware") / "listener" / "listener.elf"),
                eeprom=EepromMap(uid=1).pack())  # fmt: skip
    pulses = bench._frames(100_000, 1)
    assert pulses == sorted(pulses)
    chip.pulse_comparator(pulses, 200)
    heard = 0
    while chip.run_until(pc=4 * 23, max_cycles=9_000_000 - chip.cycle) == "breakpoint":
        heard += 1
    assert heard == len(pulses)


def test_a_robot_takes_at_most_16_kib():
    """Beyond what a simulation needs anyway: the difference between two sizes."""
    few, many = (
        bench_swarm._bytes_of(Simulation(bench_swarm._scene(case), threads=1, engine="interpreter"))
        for case in (bench_swarm.CASES[0]._replace(robots=robots) for robots in (200, 600))
    )
    assert (many - few) / 400 <= 16 * 1024
