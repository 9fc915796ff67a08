"""`avrswarm timing`: files, JSON, exit codes, and what is said of mistakes."""

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from avrswarm.cli import cli, main
from avrswarm.study.timing.observe import table_scene
from avrswarm.swarm.simulation import Simulation
from tests.firmware.bench import FIRMWARE
from tests.program.records import END, data, write_hex
from tests.record.test_vcd_round_trip import parse

EEPROM_STRAIGHT_LEFT = 0x0C  # firmware/kilolib/hardware.h
PROBE = FIRMWARE / "timing_probe" / "timing_probe.elf"
CHATTER = FIRMWARE / "chatter" / "chatter.elf"
COMPUTE = FIRMWARE / "bench_compute" / "bench_compute.elf"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def timing(*arguments):
    done = CliRunner().invoke(cli, ["timing", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def failure(capfd, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(["timing", *map(str, arguments)])
    return caught.value.code, capfd.readouterr().err


def test_a_chip_alone(tmp_path):
    found = json.loads(timing(COMPUTE, "--seconds", "0.01", "--json"))
    (seen,) = found["watched"]
    assert seen["label"] == "alone"
    assert seen["cycles"] == 80_000
    folder = tmp_path / found["folder"]
    assert json.loads((folder / "timing.json").read_text()) == found
    calls = pq.read_table(folder / "calls.parquet")
    assert calls.num_rows == sum(row["calls"] for row in seen["functions"])
    assert sum(calls["exclusive_cycles"].to_pylist()) == 80_000
    assert (folder / "timing.png").stat().st_size > 10_000


def check_speedscope(profile):
    """What speedscope itself checks."""
    stack, last = [], profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
    assert stack == []
    assert last <= profile["endValue"]


def test_profiles_for_viewers(tmp_path):
    timing(COMPUTE, "--seconds", "0.01", "--out", "here")
    scope = json.loads((tmp_path / "here" / "profile.speedscope.json").read_text())
    (profile,) = scope["profiles"]
    check_speedscope(profile)

    lines = (tmp_path / "here" / "callgrind.out.avrswarm").read_text().splitlines()
    own, skip = 0, False
    for line in lines:
        if line.startswith("0x") and not skip:
            own += int(line.split()[2])
        skip = line.startswith("calls=")
    assert "summary: 80000" in lines
    assert own == 80_000


def test_a_speedscope_file_that_is_cut_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("avrswarm.study.timing.calls.MOST_SHOWN", 50)
    monkeypatch.setattr("avrswarm.study.timing.calls.MOST_LISTED", 70)
    said = " ".join(timing(COMPUTE, "--seconds", "0.05", "--out", "here").split())
    (seen,) = json.loads((tmp_path / "here" / "timing.json").read_text())["watched"]
    cut = seen["speedscope"]
    assert 48 <= cut["calls"] < 60 < cut["of"] == sum(row["calls"] for row in seen["functions"])
    assert f"has the first {cut['calls']} of {cut['of']:,} calls, up to cycle" in said
    assert f"calls.parquet has the first 70 of {cut['of']:,} calls; all figures have" in said
    assert pq.read_table(tmp_path / "here" / "calls.parquet").num_rows == 70
    (scope,) = json.loads((tmp_path / "here" / "profile.speedscope.json").read_text())["profiles"]
    check_speedscope(scope)
    assert scope["events"][-1]["at"] == scope["endValue"] == cut["to_cycle"]


def test_skipping_changes_no_shares(tmp_path):
    """The program repeats itself; whoever calls whom does so after a while, too."""
    shares, callers = [], []
    for skip in ([], ["--skip", "0.0317"]):
        found = json.loads(timing(COMPUTE, "--seconds", "1", *skip, "--json"))
        (seen,) = found["watched"]
        shares.append({r["function"]: r["exclusive_share"] for r in seen["functions"]})
        callers.append({(r["caller"], r["callee"]) for r in seen["call_graph"] if r["calls"] > 9})
    for name, share in shares[0].items():
        if share > 0.005:
            assert shares[1][name] == pytest.approx(share, rel=0.05, abs=0.002), name
    assert callers[0] == callers[1]
    assert sum(shares[1].values()) == pytest.approx(1)


def test_robots_of_a_scene_with_waveforms(tmp_path):
    """Robot 1 hears what robot 0 sends: the same bytes, some cycles later."""
    found = json.loads(
        timing(
            PROBE, "--scene", "speaker_listener", "--robot", "0", "--robot", "1",
            "--seconds", "1.2", "--vcd", "waves.vcd", "--pins", "PB0,PD2",
            "--set", "spread.start_delay_s=0", "--json",
        )
    )  # fmt: skip
    assert [one["label"] for one in found["watched"]] == ["robot 0", "robot 1"]
    _, waves = parse((tmp_path / "waves.vcd").read_text())
    assert {"robot_0.PB0", "robot_0.ir_sent", "robot_1.comparator"} <= set(waves)
    assert waves["robot_0.ir_led"] == waves["robot_0.PB0"]
    # The probe's message is all zeros; its checksum is 0x9C87 (hardware reference 4.2).
    sent = [(time, value) for time, value in waves["robot_0.ir_sent"] if value]
    heard = [(time, value) for time, value in waves["robot_1.ir_heard"] if value]
    assert [value for _, value in sent[:2]] == [0x87, 0x9C]
    (said,) = [time for time, value in heard if value == 0x87 and abs(time - sent[0][0]) < 10**9]
    assert 1.05e6 < said - sent[0][0] < 8e6  # ps: the receiver's delay, and clocks that differ


def test_motors_and_the_serial_port_are_decoded(tmp_path):
    """Robot 0 walks by its calibrated values after 15 ms of full power; the reporter prints."""
    timing("move", "--seconds", "0.5", "--skip", "0.2", "--vcd", "moves.vcd", "--out", "m")
    _, waves = parse((tmp_path / "moves.vcd").read_text())
    left = waves["robot_0.motor_left"]
    begin = next(time for time, value in left if value == 255)
    end, value = next((time, value) for time, value in left if time > begin)
    assert (end - begin) / 1e12 == pytest.approx(0.015, rel=0.04)
    eeprom = Simulation(table_scene(FIRMWARE / "move" / "move.elf")).traits.eeprom[0]
    assert value == left[-1][1] == eeprom[EEPROM_STRAIGHT_LEFT]

    arguments = ("--scene", "speaker_listener", "--robot", "1", "--seconds", "1.5")
    timing("distance_reporter", *arguments, "--vcd", "says.vcd", "--out", "d")
    _, waves = parse((tmp_path / "says.vcd").read_text())
    printed = bytes(value for _, value in waves["robot_1.uart"] if value is not None)
    title, *lines = printed.splitlines()
    assert title.split()[-1] == b"distance_mm"  # the same letter twice is two letters
    assert int(lines[0].split()[-1]) == pytest.approx(50, abs=4)


def test_a_firmware_that_faults(tmp_path, capfd):
    """Alone and in a scene: exit code 4, and the place."""
    broken = write_hex(tmp_path, data(0, b"\x01\x00"), END)
    code, message = failure(capfd, broken)
    assert code == 4
    assert "pc 0x0000" in message
    code, message = failure(capfd, broken, "--scene", "blink")
    assert code == 4
    assert "robot 0" in message


def test_a_robot_that_is_off_all_the_time(capfd):
    late = ("--scene", "blink", "--set", "spread.start_delay_s=3000", "--seconds", "0.01")
    code, message = failure(capfd, "blink", *late)
    assert code == 2
    assert "robot 0: was not switched on" in message


def alone(elf):
    """A .hex file without its ELF file beside it."""
    return Path(shutil.copy(elf.with_suffix(".hex"), f"{elf.stem}.hex"))


def test_a_hex_file_with_its_elf_beside_it():
    given = (COMPUTE.with_suffix(".hex"), "--seconds", "0.005", "--json")
    (seen,) = json.loads(timing(*given))["watched"]
    assert "main" in {row["function"] for row in seen["functions"]}


def test_a_hex_file_with_names_from_elsewhere(tmp_path):
    bare = json.loads(timing(alone(COMPUTE), "--seconds", "0.005", "--json"))
    named = json.loads(timing(alone(COMPUTE), "--symbols", COMPUTE, "--seconds", "0.005", "--json"))
    (one,), (other,) = bare["watched"], named["watched"]
    assert all(row["function"].startswith("0x") for row in one["functions"])
    assert "main" in {row["function"] for row in other["functions"]}
    addresses = {row["address"]: row["exclusive_cycles"] for row in one["functions"]}
    mains = [row for row in other["functions"] if row["function"] == "main"]
    assert addresses[mains[0]["address"]] == mains[0]["exclusive_cycles"]

    listing = tmp_path / "names.txt"
    listing.write_text(f"{mains[0]['address']:08x} T main # what avr-nm prints\n")
    told = json.loads(timing(alone(COMPUTE), "--symbols", listing, "--seconds", "0.005", "--json"))
    assert "main" in {row["function"] for row in told["watched"][0]["functions"]}


def listed(tmp_path, elf, *options):
    listing = tmp_path / "names.txt"
    done = subprocess.run(["avr-nm", *options, elf], capture_output=True, text=True, check=True)
    listing.write_text(done.stdout)
    return listing


@pytest.mark.needs_avr_gcc
@pytest.mark.parametrize("options", [[], ["-S"]])
def test_what_avr_nm_prints_is_understood(tmp_path, options):
    listing = listed(tmp_path, COMPUTE, *options)
    arguments = ("--seconds", "0.005", "--json")
    told = json.loads(timing(alone(COMPUTE), "--symbols", listing, *arguments))
    itself = json.loads(timing(COMPUTE, *arguments))
    names = [
        {row["function"] for row in found["watched"][0]["functions"]} for found in (told, itself)
    ]
    assert "main" in names[0] & names[1]


@pytest.mark.needs_avr_gcc
@pytest.mark.parametrize("options", [[], ["-S"]])
def test_variables_of_a_symbol_file_have_their_sizes(tmp_path, options):
    """Plain avr-nm tells none; sync_offset is signed and has 32 bits, kilo_ticks too."""
    hops = FIRMWARE / "hop_sync" / "hop_sync.elf"
    few = ("--sync", "--hops", "2", "--lines", "1", "--seconds", "2", "--json")
    listing = listed(tmp_path, hops, *options)
    told = json.loads(timing(alone(hops), "--symbols", listing, *few))
    itself = json.loads(timing(hops, *few))
    assert told["sync"] == itself["sync"] is not None

    few = ("--delay", "--neighbours", "0", "--seconds", "1", "--json")
    listing = listed(tmp_path, CHATTER, *options)
    told = json.loads(timing(alone(CHATTER), "--symbols", listing, *few))
    itself = json.loads(timing(CHATTER, *few))
    assert told["cases"][0]["ticks"] == itself["cases"][0]["ticks"] is not None
    assert told["cases"][0]["delays"] == itself["cases"][0]["delays"]


def test_a_program_whose_delay_the_linker_dropped(tmp_path, recwarn):
    """It has busy waits, load and ticks all the same, and a picture of them."""
    said = timing("gradient", "--delay", "--neighbours", "0,1", "--seconds", "0.5", "--out", "d")
    found = json.loads((tmp_path / "d" / "delays.json").read_text())
    assert "has no function 'delay'" in " ".join(said.split())
    assert found["cases"][1]["load"]["percent"] > 0
    assert found["cases"][1]["ticks"]["ticks"] > 10
    assert not recwarn.list


def test_delays(tmp_path):
    found = json.loads(
        timing("chatter", "--delay", "--neighbours", "1", "--seconds", "0.5", "--json")
    )
    (case,) = found["cases"]
    table = pq.read_table(tmp_path / found["folder"] / "delays.parquet")
    assert table.num_rows == sum(row["count"] for row in case["delays"])
    assert (tmp_path / found["picture"]).stat().st_size > 10_000


def test_sync(tmp_path):
    said = timing(
        "hop_sync", "--sync", "--hops", "3", "--lines", "1", "--seconds", "3", "--out", "s"
    )
    assert "closer to" in said
    found = json.loads((tmp_path / "s" / "sync.json").read_text())
    assert [row["hops"] for row in found["sync"]["by_hop"]] == [1, 2, 3]
    table = pq.read_table(tmp_path / "s" / "clocks.parquet")
    assert set(table["robot"].to_pylist()) == {0, 1, 2, 3}
    assert (tmp_path / "s" / "sync.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--between", "lop", "delay"], 2, "no symbol 'lop' in flash; did you mean loop"),
        (["--between", "PB9+", "PB4-"], 2, "'PB9+': there is no such pin"),
        (["--vcd", "x.vcd", "--pins", "PE1"], 2, "no pin 'PE1'"),
        (["--scene", "orbit", "--robot", "7"], 2, "orbit: there is no robot 7: they are 0 to 1"),
        (["--scene", "no_such"], 3, "no shipped scene is called 'no_such'"),
        (["--bare", "--robot", "1"], 2, "--robot goes with --scene"),
        (["--set", "motion.speed_mm_s=8"], 2, "--set goes with --scene"),
        (["--pins", "PB0"], 2, "--pins goes with --vcd"),
        (["--hops", "3"], 2, "--hops goes with --sync"),
        (["--neighbours", "3"], 2, "--neighbours goes with --delay"),
        (["--bare", "--scene", "orbit"], 2, "--scene and --bare exclude each other"),
        (["--delay", "--sync"], 2, "exclude each other"),
        (["--delay", "--skip", "1"], 2, "--delay and --skip exclude each other"),
        (["--delay", "--set", "a.b=1"], 2, "--delay and --set exclude each other"),
        (["--sync", "--robot", "1"], 2, "--sync and --robot exclude each other"),
        (["--sync", "--bare"], 2, "--sync and --bare exclude each other"),
        (["--vcd", "nowhere/x.vcd"], 3, "nowhere/x.vcd: cannot be written: there is no such"),
        (["--delay", "--neighbours", "many"], 2, "'many' is no list of numbers from 0 to 40"),
        (["--symbols", "nowhere.txt"], 3, "nowhere.txt: cannot be read"),
        (["--symbols", str(COMPUTE)], 3, "is not the ELF file of"),
    ],
)
def test_mistakes(arguments, code, said, capfd):
    got, message = failure(capfd, PROBE, *arguments)
    assert (got, said in message) == (code, True), message


def test_a_symbol_file_that_is_none(tmp_path, capfd):
    (tmp_path / "names.txt").write_text("00000310 T delay\nwhat is this\n")
    code, message = failure(capfd, PROBE, "--symbols", "names.txt")
    assert code == 3
    assert "names.txt:2: 'what is this' is not a symbol; write ADDRESS NAME" in message


def test_symbols_that_a_hex_file_lacks(capfd):
    code, message = failure(capfd, alone(PROBE), "--between", "loop", "delay")
    assert code == 2
    assert "has no symbols" in message
