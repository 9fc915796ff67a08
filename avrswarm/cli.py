"""The command line: options in, a call of the package, words or JSON out; errors become exit codes.

Heavy imports happen inside the commands, so that ``--help`` and mistakes are answered at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click
from click.core import ParameterSource

from avrswarm import __version__
from avrswarm.errors import AvrSwarmError, ChipFault, RecordError

if TYPE_CHECKING:
    from rich.table import Table

    from avrswarm.chip.chip import Chip
    from avrswarm.engine import EngineName
    from avrswarm.program import Program
    from avrswarm.record.recorded_run import RecordedRun
    from avrswarm.study.bench import Row
    from avrswarm.study.bench_swarm import SwarmRow

DEFAULT_MAX_CYCLES = 80_000_000  # ten seconds of an 8 MHz chip
SHOWN_FAULTS = 8
SHOWN_BYTES = 200
MOST_NEIGHBOURS = 40  # who hear each other at 300 mm when they stand close together
SRAM_START = 0x100
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130

_ENGINE = click.option(
    "--engine",
    type=click.Choice(["interpreter", "translated", "auto"]),
    default="auto",
    show_default=True,
    help="Interpret, translate to native code first, or translate meanwhile. Changes speed only.",
)
_FIRMWARE = click.argument("firmware", type=click.Path())
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")

_SET = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the scene, such as motion.speed_mm_s=8; may be given often.",
)


_SYMBOLS = click.option(
    "--symbols",
    metavar="FILE",
    help="Names for a .hex: its ELF, or what avr-nm prints. Default: the ELF beside it.",
)


class _Seconds(click.FloatRange):
    """A time that a scene can last; NaN slips through click's own check."""

    name = "seconds"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a time", param, ctx)
        return number


SECONDS = _Seconds(min=0, max=86_400, min_open=True)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 2 wrong call, 3 bad input, 4 firmware fault, 70 defect of avrswarm.",
)
@click.version_option(__version__, prog_name="avrswarm")
def cli() -> None:
    """Run ATmega328P firmware to the cycle: one chip, or a swarm of Kilobots.

    \b
    Examples:
      avrswarm run orbit
      avrswarm exec firmware.elf --until main --uart -
    """


@cli.command()
@click.argument("scene", type=click.Path())
@click.option("--seconds", type=SECONDS, metavar="S", help="Simulated time; default: the scene's.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Another seed.")
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads that run chips; default: one per core. Changes speed only.",
)
@_SET
@click.option("--out", metavar="DIR", type=click.Path(), help="A new or empty folder for the run.")
@click.option("--film", is_flag=True, help="Make a film too: mp4 with ffmpeg, gif without.")
@click.option("--live", is_flag=True, help="Show the robots in a window while they run.")
@_ENGINE
@click.option("--window-us", type=click.FloatRange(10, 5000), hidden=True)
@_JSON
def run(
    scene: str,
    seconds: float | None,
    seed: int | None,
    threads: int | None,
    overrides: tuple[str, ...],
    out: str | None,
    film: bool,
    live: bool,
    engine: EngineName,
    window_us: float | None,
    as_json: bool,
) -> None:
    """Run a scene, and write a run folder with tables and pictures.

    SCENE is a TOML file or the name of a shipped scene (avrswarm scenes lists them). Without --out
    the run goes to a new folder in runs/. Ctrl-C ends a run early and keeps what was recorded.

    A robot whose firmware does something that has no meaning stops alone and is told; with
    --set scene.on_fault=stop_run it ends the run with exit code 4. A run with --live is at most
    record.film_speed times as fast as real time (4, unless the scene says otherwise).

    JSON has wall_s and realtime_factor without compile_s, the time that compiling or loading
    compiled code took, and without what a window took.

    \b
    Examples:
      avrswarm run orbit
      avrswarm run my/scene.toml --seconds 30 --seed 7 --set motion.speed_mm_s=8 --film
    """
    from avrswarm.scene import read_scene
    from avrswarm.study.scene_report import check_whole

    if seconds is not None:
        overrides = (*overrides, f"scene.seconds={seconds!r}")
    what = read_scene(scene, overrides)
    check_whole(what)  # mistakes are told before anything is compiled
    if live:
        from avrswarm.record.live import LiveWindow, check_screen

        check_screen()

    from avrswarm.record.progress import RunProgress
    from avrswarm.record.recorded_run import run_recorded
    from avrswarm.swarm.simulation import DEFAULT_WINDOW_US, Simulation
    from avrswarm.swarm.warm_up import compile_swarm

    compile_swarm()
    simulation = Simulation(
        what, seed, threads, window_us=window_us or DEFAULT_WINDOW_US, engine=engine
    )
    with ExitStack() as showing:
        on_progress = None
        if not as_json and sys.stderr.isatty():
            bar = RunProgress(what.scene.name, what.scene.seconds)
            on_progress = showing.enter_context(bar).update
        window = LiveWindow(simulation) if live else None
        done = run_recorded(simulation, None, out, film=film, live=window, on_progress=on_progress)
    click.echo(json.dumps(_run_figures(done)) if as_json else _run_text(done))
    if window is not None and sys.stderr.isatty() and done.reason != "interrupted":
        click.echo("Close the window to end.", err=True)
        window.hold()
    faults = done.info["faults"]
    for fault in faults[:SHOWN_FAULTS]:
        click.echo(f"avrswarm: {fault['message']}", err=True)
    if len(faults) > SHOWN_FAULTS:
        more = len(faults) - SHOWN_FAULTS
        click.echo(f"avrswarm: more faults in run.json: {more}", err=True)
    if done.reason == "fault":
        raise click.exceptions.Exit(ChipFault.exit_code)
    if done.reason == "interrupted":
        raise click.Abort


@cli.command()
@_JSON
def scenes(as_json: bool) -> None:
    """List the scenes that come with avrswarm; each is a lesson with a text at its beginning.

    \b
    Example:
      avrswarm scenes
    """
    from avrswarm.study.scene_report import describe_shipped

    found = describe_shipped()
    if as_json:
        click.echo(json.dumps({"scenes": found}))
        return
    width = max(len(scene["name"]) for scene in found)
    click.echo(f"{'scene':<{width}}  robots  seconds  what it shows")
    for scene in found:
        figures = f"{scene['robots']:>6}  {scene['seconds']:>7g}"
        click.echo(f"{scene['name']:<{width}}  {figures}  {scene['title']}")
    click.echo(f"\nThe files are in {os.path.dirname(found[0]['file'])}")


@cli.command("scene-check")
@click.argument("scene", metavar="FILE", type=click.Path())
@_SET
@_JSON
def scene_check(scene: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Check a scene as a run would, and say what it is, without running it.

    FILE is a TOML file or the name of a shipped scene. Mistakes are told with file, key, value and
    what would be right, and give exit code 3.

    \b
    Example:
      avrswarm scene-check my/scene.toml --set robots.0.count=50
    """
    from avrswarm.scene import read_scene
    from avrswarm.study.scene_report import check_whole, describe_scene

    what = read_scene(scene, overrides)
    check_whole(what)
    found = describe_scene(what)
    click.echo(json.dumps(found) if as_json else _scene_text(found))


@cli.command("scene-keys")
@click.argument("section", required=False)
@_JSON
def scene_keys(section: str | None, as_json: bool) -> None:
    """List every key that a scene may have: default, unit, limits and meaning.

    SECTION, such as motion or robots, shows a part of them.

    \b
    Example:
      avrswarm scene-keys motion
    """
    from avrswarm.scene.describe import describe_keys, describe_text

    keys = [key for key in describe_keys() if section is None or _section_of(key.path) == section]
    if not keys:
        known = dict.fromkeys(_section_of(key.path) for key in describe_keys())
        raise click.BadParameter(f"'{section}' is none of {', '.join(known)}", param_hint="SECTION")
    if as_json:
        click.echo(json.dumps({"keys": [key._asdict() for key in keys]}))
    else:
        click.echo(describe_text(keys))


@cli.command()
@_FIRMWARE
@_JSON
def info(firmware: str, as_json: bool) -> None:
    """Show what is in a firmware file: memory use, vectors in use, symbols, digest.

    FIRMWARE is an Intel HEX or ELF file.

    \b
    Example:
      avrswarm info firmware.elf
    """
    from avrswarm.program import load_program
    from avrswarm.study.firmware import describe_firmware

    found = describe_firmware(load_program(firmware))
    click.echo(json.dumps(found) if as_json else _info_text(found))


@cli.command("vars")
@_FIRMWARE
@_JSON
def variables(firmware: str, as_json: bool) -> None:
    """List the variables of a firmware with their C types: what scenes and scripts can watch.

    FIRMWARE is an ELF file with debug information, a .hex file with that ELF file beside it, or the
    name of a shipped firmware. The
    names go into [record] watch of a scene, or into simulation.robots[0].vars["name"] in Python.

    \b
    Example:
      avrswarm vars firmware.elf
    """
    from avrswarm.study.firmware import describe_variables, open_firmware

    found = describe_variables(open_firmware(firmware))
    click.echo(json.dumps({"variables": found}) if as_json else _variables_text(found))


@cli.command()
@_FIRMWARE
def disasm(firmware: str) -> None:
    """Disassemble a firmware file as avr-objdump does.

    FIRMWARE is an Intel HEX or ELF file; only an ELF has names.

    \b
    Example:
      avrswarm disasm firmware.elf | less
    """
    from avrswarm.isa.disassemble import disassemble
    from avrswarm.program import load_program

    for line in disassemble(load_program(firmware)):
        click.echo(line)


@cli.command("exec")
@_FIRMWARE
@click.option("--until", metavar="SYMBOL|0xADDR", help="Stop before executing this place.")
@click.option(
    "--max-cycles",
    type=click.IntRange(min=0),
    default=DEFAULT_MAX_CYCLES,
    show_default=True,
    help="Stop after this many cycles.",
)
@click.option("--clock-hz", type=click.IntRange(min=1), default=8_000_000, show_default=True)
@click.option("--uart", metavar="FILE|-", help="Write what the serial port sent; - is the screen.")
@click.option("--vcd", metavar="FILE", help="Write the pins as waveforms, for GTKWave.")
@click.option("--vcd-regs", metavar="NAME,...", help="Registers to add, such as TCNT1,OCR2A.")
@click.option("--trace", metavar="FILE|-", help="Write every executed instruction.")
@click.option("--eeprom", metavar="FILE.hex", help="Start with this EEPROM content.")
@click.option("--seed", type=int, help="Start with random SRAM of this seed instead of zeros.")
@click.option("--strict", is_flag=True, help="Make every report about the firmware a fault.")
@_ENGINE
@_JSON
def execute(
    firmware: str,
    until: str | None,
    max_cycles: int,
    clock_hz: int,
    uart: str | None,
    vcd: str | None,
    vcd_regs: str | None,
    trace: str | None,
    eeprom: str | None,
    seed: int | None,
    strict: bool,
    engine: EngineName,
    as_json: bool,
) -> None:
    """Run a firmware on one chip, and say where it stopped, after how many cycles, with what.

    FIRMWARE is an Intel HEX or ELF file. Addresses are byte addresses; a place may also be a symbol
    with an offset, such as main+0x10. With --trace or --vcd-regs the chip goes instruction by
    instruction, which is much slower. In JSON, uart has one character for each byte sent.

    \b
    Examples:
      avrswarm exec firmware.elf --until main
      avrswarm exec firmware.hex --max-cycles 8000000 --uart - --vcd pins.vcd --vcd-regs TCNT1
    """
    from avrswarm.program import load_eeprom, load_program

    if vcd_regs and vcd is None:
        raise click.UsageError("--vcd-regs adds registers to a waveform file; give --vcd FILE too")
    program = load_program(firmware)
    if eeprom is not None:
        program = program.with_eeprom(load_eeprom(eeprom))
    target = None if until is None else program.symbols.resolve(until)
    registers = [name.strip().upper() for name in vcd_regs.split(",")] if vcd_regs else []

    from avrswarm.chip.chip import Chip
    from avrswarm.engine import Translation
    from avrswarm.record.observe import Observation

    native = None if engine == "interpreter" else Translation(program.flash, engine == "translated")
    chip = Chip(program, clock_hz=clock_hz, strict=strict, sram_seed=seed, native=native)
    fault = None
    with _text_output(vcd) as vcd_file, _text_output(trace) as trace_file:
        observation = Observation(chip, vcd=vcd_file, vcd_registers=registers, trace=trace_file)
        try:
            stop = observation.run(target, max_cycles)
        except ChipFault as error:
            stop, fault = "fault", error
    if uart is not None and not (as_json and uart == "-"):
        _write_bytes(uart, chip.uart)
    figures = _exec_figures(chip, stop)
    if as_json:
        click.echo(json.dumps(figures))
    else:
        # Where a file goes to the screen, it has it for itself.
        click.echo(_exec_text(figures, program), err="-" in (uart, trace, vcd))
    for report in [] if strict else chip.reports:  # with --strict the fault says it
        click.echo(f"avrswarm: {report}", err=True)
    if chip.reports_lost:
        click.echo("avrswarm: more such places were met than are kept", err=True)
    if fault is not None:
        raise fault


@cli.group()
def calibrate() -> None:
    """Put calibration tables to the test, and make better ones.

    \b
    Examples:
      avrswarm calibrate distance --scene orbit --fit
      avrswarm calibrate motors my_robots.csv --fit
    """


@calibrate.command("distance")
@click.argument("firmware", type=click.Path(), required=False)
@_SYMBOLS
@click.option(
    "--eeprom",
    "eeproms",
    multiple=True,
    metavar="FILE.hex",
    type=click.Path(path_type=Path),
    help="EEPROM of a robot, Intel HEX; may be given often.",
)
@click.option(
    "--tables",
    metavar="FILE.csv",
    type=click.Path(path_type=Path),
    help="Tables: low_gain, high_gain, 14 rows; with uid for several robots.",
)
@click.option(
    "--scene", metavar="SCENE", type=click.Path(), help="Take robots and light of a scene."
)
@click.option(
    "--readings",
    metavar="FILE.csv",
    type=click.Path(path_type=Path),
    help="Readings of real robots in place of modelled ones: distance_mm, low_gain, high_gain, and"
    " uid for several robots.",
)
@click.option("--fit", is_flag=True, help="Make new tables from the readings, and run again.")
@click.option(
    "--robots",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="How many robots, without --eeprom and --tables; of a scene at most so many.",
)
@click.option(
    "--messages",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="Messages from each distance.",
)
@click.option(
    "--step-mm",
    type=click.FloatRange(0.1, 20),
    default=2.5,
    show_default=True,
    help="Between the distances, from 33 to 140 mm.",
)
@click.option(
    "--type", "message_type", type=click.IntRange(0, 127), default=0, help="Type of the messages."
)
@click.option("--data", metavar="N,N,...", help="Up to nine bytes of the messages; default: 1,0.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Another seed.")
@_SET
@click.option("--out", metavar="DIR", type=click.Path(), help="A new or empty folder for results.")
@_JSON
def calibrate_distance(
    firmware: str | None,
    symbols: str | None,
    eeproms: tuple[Path, ...],
    tables: Path | None,
    scene: str | None,
    readings: Path | None,
    fit: bool,
    robots: int,
    messages: int,
    step_mm: float,
    message_type: int,
    data: str | None,
    seed: int | None,
    overrides: tuple[str, ...],
    out: str | None,
    as_json: bool,
) -> None:
    """Test distance tables with a binary's own estimate_distance, from 33 to 140 mm.

    One robot receives: it hears frames of a sender at each distance, as strong as the scene's model
    of light makes them, or as --readings says.

    FIRMWARE is an ELF file with the symbol estimate_distance, whose return value is taken; without
    that symbol its serial output is, printed as the shipped distance_reporter does, which is also
    the default. Tables come from --eeprom, --tables or --scene, or are those of average robots, and
    their faults are named: not decreasing, saturated, crossing gains, erased, out of the ADC's
    reach, discontinuous where one gain hands over to the other, or not of this robot.

    With --fit new tables are made, proven by running again (with fresh noise; of --readings, with
    every second one of each distance, which the fit does not get), and written as EEPROM image and
    CSV.
    Figures, all readings and a picture go to a new folder in runs/, or to --out.

    \b
    Examples:
      avrswarm calibrate distance --scene orbit
      avrswarm calibrate distance my.elf --eeprom robot7.hex --readings measured.csv --fit
    """
    from avrswarm.record.run_folder import make_folder
    from avrswarm.robot.messages import Message
    from avrswarm.study import calibrate_distance as study
    from avrswarm.study.firmware import open_firmware

    if sum(bool(given) for given in (eeproms, tables, scene)) > 1:
        raise click.UsageError("--eeprom, --tables and --scene exclude each other")
    program = open_firmware(firmware or "distance_reporter", symbols)
    message = Message.make(message_type, _bytes_of(data)) if data else None
    world, subjects = study.gather(
        eeproms=eeproms,
        tables=tables,
        scene=scene,
        readings=readings,
        overrides=overrides,
        seed=seed,
        robots=robots,
    )
    found = study.study_distances(
        program, subjects, world, messages=messages, step_mm=step_mm, fit=fit, message=message
    )
    folder = make_folder(None if out is None else Path(out), "calibrate-distance")
    files = study.write_study(found, folder)
    if as_json:
        click.echo(json.dumps({**found.as_json(), "files": [str(file) for file in files]}))
        return
    from rich.console import Console

    Console().print(*study.report(found), sep="\n")
    click.echo(f"The picture is {folder / 'distance.png'}; tables and more are beside it.")


@calibrate.command("motors")
@click.argument("table", type=click.Path(path_type=Path), required=False)
@click.option(
    "--firmware", default="move", show_default=True, help="What the robots run; it obeys CALIB."
)
@click.option(
    "--scene", metavar="SCENE", type=click.Path(), help="Take motors, surface and seed of a scene."
)
@click.option(
    "--robots",
    "kind",
    type=click.Choice(["drawn", "average", "own"]),
    default="drawn",
    show_default=True,
    help="Bodies: drawn from the scene's spread, all average, or such as the table is right for.",
)
@click.option("--fit", is_flag=True, help="Find values that turn as wanted and go straight.")
@click.option(
    "--turn-deg-s",
    type=click.FloatRange(1, 500),
    default=45.0,
    show_default=True,
    help="Wanted rate of turns.",
)
@click.option(
    "--speed-mm-s",
    type=click.FloatRange(0.5, 100),
    default=10.0,
    show_default=True,
    help="Wanted speed straight on.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.5, 60),
    default=5.0,
    show_default=True,
    help="How long each motion is measured.",
)
@click.option(
    "--trial-s",
    type=click.FloatRange(0.2, 60),
    default=1.0,
    show_default=True,
    help="How long each trial of a search takes; noisy motion wants longer ones.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Another seed.")
@_SET
@click.option("--out", metavar="DIR", type=click.Path(), help="A new or empty folder for results.")
@_JSON
def calibrate_motors(
    table: Path | None,
    firmware: str,
    scene: str | None,
    kind: Any,
    fit: bool,
    turn_deg_s: float,
    speed_mm_s: float,
    seconds: float,
    trial_s: float,
    seed: int | None,
    overrides: tuple[str, ...],
    out: str | None,
    as_json: bool,
) -> None:
    """Test motor values: turn left, turn right and straight on, as fast and as straight as wanted.

    TABLE is a CSV file with the columns uid, turn_left, turn_right, straight_left, straight_right;
    without it, ten real robots of a thesis. Every motion is ordered by CALIB frames of an overhead
    controller, as the real calibration window sends them, and run by emulated robots with the
    scene's motors and surface.

    With --fit values from 26 to 90 are found by trial, as a person does it with that window, saved
    by the firmware itself, measured in a new run, and written as EEPROM images and CSV. A rate that
    they do not reach is remarked. Figures, paths and a picture go to a new folder in runs/, or to
    --out.

    \b
    Examples:
      avrswarm calibrate motors
      avrswarm calibrate motors my_robots.csv --fit --turn-deg-s 40
    """
    from avrswarm.record.run_folder import make_folder
    from avrswarm.study import calibrate_motors as study

    robots = study.read_motor_table(table or study.TABLE_2_2)
    world = study.gather_scene(
        robots, firmware=firmware, scene=scene, overrides=overrides, seed=seed, kind=kind
    )
    wanted = study.Wanted(turn_deg_s, speed_mm_s)
    found = study.study_motors(
        world, robots, wanted, kind=kind, fit=fit, seconds=seconds, trial_s=trial_s
    )
    folder = make_folder(None if out is None else Path(out), "calibrate-motors")
    files = study.write_study(found, folder)
    if as_json:
        click.echo(json.dumps({**found.as_json(), "files": [str(file) for file in files]}))
        return
    from rich.console import Console

    Console().print(*study.report(found), sep="\n")
    click.echo(f"The picture is {folder / 'motors.png'}; tables and more are beside it.")


@cli.command()
@_FIRMWARE
@click.option(
    "--seconds",
    type=SECONDS,
    metavar="S",
    help="How long to watch; default: 2, with --delay 5, with --sync 10.",
)
@click.option("--skip", "skip_s", type=SECONDS, metavar="S", help="Begin to watch only then.")
@click.option("--scene", metavar="SCENE", help="Watch robots of this scene (file or name).")
@click.option(
    "--robot",
    "robots",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Which robot of the scene runs FIRMWARE and is watched; may be given often. Default: 0.",
)
@click.option("--bare", is_flag=True, help="A chip without a board, even for Kilobot firmware.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Another seed.")
@_SET
@_SYMBOLS
@click.option(
    "--between",
    nargs=2,
    metavar="A B",
    help="Cycles from A to B: symbols, addresses, or pin edges such as PB0+ and PD5-.",
)
@click.option("--delay", is_flag=True, help="Delays, interrupt load and ticks among neighbours.")
@click.option(
    "--neighbours",
    default="0,5,10,20",
    show_default=True,
    metavar="K,...",
    help="With --delay: how many, up to 40.",
)
@click.option("--sync", is_flag=True, help="Clocks, message times and time handed on along a line.")
@click.option(
    "--hops",
    type=click.IntRange(1, 60),
    default=10,
    show_default=True,
    help="With --sync: length of a line.",
)
@click.option(
    "--lines",
    type=click.IntRange(1, 1000),
    default=8,
    show_default=True,
    help="With --sync: how many lines, with other clocks each.",
)
@click.option("--vcd", metavar="FILE", help="Write waveforms of the watched robots.")
@click.option("--pins", metavar="PB0,...", default="", help="With --vcd: pins to show there.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=12,
    show_default=True,
    metavar="N",
    help="Rows of printed tables.",
)
@click.option("--out", metavar="DIR", type=click.Path(), help="A new or empty folder for files.")
@_JSON
@click.pass_context
def timing(
    context: click.Context,
    firmware: str,
    seconds: float | None,
    skip_s: float | None,
    scene: str | None,
    robots: tuple[int, ...],
    bare: bool,
    seed: int | None,
    overrides: tuple[str, ...],
    symbols: str | None,
    between: tuple[str, str] | None,
    delay: bool,
    neighbours: str,
    sync: bool,
    hops: int,
    lines: int,
    vcd: str | None,
    pins: str,
    top: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Measure how long functions, interrupts and delays of a firmware take, to the cycle.

    FIRMWARE is an ELF or Intel HEX file, or the name of a shipped firmware. Kilobot firmware runs
    on a robot alone that is told to RUN soon after power-on, or on robots of a scene; other
    firmware runs on a chip alone. Times of functions are without interrupts, which have tables of
    their own.

    The folder gets timing.json, Parquet tables of all calls and interrupts, a picture, and profiles
    for speedscope and for callgrind viewers.

    \b
    Examples:
      avrswarm timing timing_probe
      avrswarm timing my.elf --scene orbit --robot 1 --seconds 5 --vcd waves.vcd --pins PB0,PB3
      avrswarm timing my.hex --symbols my.elf --between PB4+ PB4-
      avrswarm timing chatter --delay --neighbours 0,5,10,20 --seconds 10
      avrswarm timing hop_sync --sync --hops 10 --lines 20
    """
    from rich.console import Console

    from avrswarm.study.firmware import open_firmware
    from avrswarm.study.timing import report

    _check_together(context)
    wanted = report.Wanted(
        open_firmware(firmware, symbols),
        seconds=seconds or (5.0 if delay else 10.0 if sync else 2.0),
        skip_s=skip_s or 0.0,
        scene=scene,
        robots=robots,
        overrides=overrides,
        seed=seed,
        bare=bare,
        between=between,
        pins=tuple(pins.split(",")) if pins else (),
        vcd=vcd,
        out=out,
    )
    if delay:
        found = report.delays(wanted, _counts(neighbours, "--neighbours"))
        shown = report.delay_tables(found)
    elif sync:
        found = report.sync(wanted, hops, lines)
        shown = report.sync_tables(found)
    else:
        found = report.profile(wanted)
        shown = report.profile_tables(found, top)
    if as_json:
        click.echo(json.dumps(found))
        return
    Console().print(shown)
    click.echo(report.written(found))


@cli.command()
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Take the best of this many repetitions.",
)
@click.option("--swarm", is_flag=True, help="Measure swarms of 100 to 4000 robots instead.")
@click.option(
    "--threads", type=click.IntRange(min=1), help="With --swarm: threads; default: one per core."
)
@click.option(
    "--profile", is_flag=True, help="With --swarm: also tell where the time goes, phase by phase."
)
@_JSON
def bench(repeats: int, swarm: bool, threads: int | None, profile: bool, as_json: bool) -> None:
    """Measure the speed of one chip, beside Debian's simavr on the same firmware, or of swarms.

    Figures of a chip are emulated megahertz of one core; the ratio is ours over simavr's in this
    very run. Without simavr (Debian package simavr) its columns stay empty: nothing is installed.
    Swarms are measured by the clock on the wall, once, with physics and recording.

    \b
    Example:
      avrswarm bench --json > bench.json
      avrswarm bench --swarm --profile
    """
    if not swarm and (threads is not None or profile):
        raise click.UsageError("--threads and --profile belong to --swarm")
    if swarm:
        _bench_swarm(threads, profile, as_json)
        return
    from avrswarm.study import bench as study

    rows = list(study.bench_chip(repeats))
    if as_json:
        click.echo(json.dumps(study.as_json(rows)))
        return
    from rich.console import Console

    Console().print(_bench_table(rows))
    if study.simavr_version() is None:
        click.echo("simavr is not installed (Debian package simavr): no comparison.", err=True)


def _bench_swarm(threads: int | None, profile: bool, as_json: bool) -> None:
    from avrswarm.study import bench_swarm
    from avrswarm.study.bench import as_json as as_object
    from avrswarm.swarm.warm_up import compile_swarm

    compile_swarm()
    rows = list(bench_swarm.bench_swarm(threads))
    if as_json:
        click.echo(json.dumps(as_object(rows)))
        return
    from rich.console import Console

    for table in _swarm_tables(rows):
        Console().print(table)
    if profile:
        for row in rows:
            click.echo(f"{row.name}: milliseconds for one simulated second")
            for phase, seconds in sorted(row.phases.items(), key=lambda item: -item[1]):
                click.echo(f"  {1000 * seconds:9.1f}  {phase}")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    try:
        code = cli.main(arguments, prog_name="avrswarm", standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = EXIT_INTERRUPTED
    except AvrSwarmError as error:
        click.echo(f"avrswarm: {error}", err=True)
        code = error.exit_code
    except SystemExit:
        code = 0  # click leaves so when the reader, such as `head`, has seen enough
    except Exception as error:
        if "AVRSWARM_TRACEBACK" in os.environ:
            raise
        click.echo(
            f"avrswarm: internal error: {type(error).__name__}: {error}\n"
            "This is a defect of avrswarm; AVRSWARM_TRACEBACK=1 shows where it happened.",
            err=True,
        )
        code = EXIT_INTERNAL
    sys.exit(code)


_PROFILE_ONLY = ("skip", "scene", "robot", "bare", "set", "between", "vcd", "pins", "top")
_EXCLUDED = {
    "delay": ("sync", *_PROFILE_ONLY),
    "sync": _PROFILE_ONLY,
    "scene": ("bare",),
}
_NEEDED = {
    "robot": "scene",
    "set": "scene",
    "pins": "vcd",
    "neighbours": "delay",
    "hops": "sync",
    "lines": "sync",
}


def _check_together(context: click.Context) -> None:
    """Refuse options of ``timing`` that would be ignored beside, or without, others."""
    given = {
        option.opts[-1].removeprefix("--")
        for option in context.command.params
        if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    }
    for one, others in _EXCLUDED.items():
        for other in others:
            if {one, other} <= given:
                raise click.UsageError(f"--{one} and --{other} exclude each other")
    for one, other in _NEEDED.items():
        if one in given and other not in given:
            raise click.UsageError(f"--{one} goes with --{other}: give both, or none")


def _counts(text: str, option: str) -> list[int]:
    """Read numbers such as 0,5,10."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [-1]
    if any(not 0 <= count <= MOST_NEIGHBOURS for count in counts):
        raise click.BadParameter(
            f"'{text}' is no list of numbers from 0 to {MOST_NEIGHBOURS} such as 0,5,10",
            param_hint=option,
        )
    return counts


def _run_figures(done: RecordedRun) -> dict[str, Any]:
    info = done.info
    return {
        "run": str(done.folder),
        "simulated_s": info["simulated_s"],
        "wall_s": info["wall_s"],
        "compile_s": info["compile_s"],
        "realtime_factor": info["realtime_factor"],
        "digest": info["digest"],
        "faults": info["faults"],
        "reason": done.reason,
        "pictures": [str(path) for path in done.pictures],
    }


def _run_text(done: RecordedRun) -> str:
    info = done.info
    robots = "1 robot" if info["robots"] == 1 else f"{info['robots']} robots"
    factor = info["realtime_factor"]
    speed = f" ({factor:,.{_digits(factor)}f} times real time)" if factor else ""
    ended = {"finished": "", "interrupted": ", interrupted", "fault": ", stopped by a fault"}
    first = (
        f"{info['name']}: {robots}, {info['simulated_s']:.4g} s simulated"
        f" in {info['wall_s']:.1f} s{speed}{ended[done.reason]}."
    )
    if not done.pictures:
        return f"{first}\nThe run is in {done.folder}."
    film = f", the film {done.folder / info['film']}" if "film" in info else ""
    return f"{first}\nThe picture is {done.pictures[0]}{film}; tables and more are beside it."


def _scene_text(found: dict[str, Any]) -> str:
    arena = found["arena"]
    sizes = {
        "rectangle": f"{arena['width_mm']:g} x {arena['height_mm']:g} mm",
        "circle": f"round, {arena['width_mm']:g} mm",
        "open": "open",
    }
    lines = [f"scene    {found['name']}: {found['description']}".rstrip(": ")]
    lines.append(f"file     {found['file']}")
    lines.append(f"seconds  {found['seconds']:g}")
    lines.append(f"seed     {found['seed']}")
    lines.append(f"arena    {sizes[arena['shape']]}")
    lines.append(f"robots   {found['robots']}")
    lines += [
        f"  {group['count']:>5}  {group['name']}, placed: {group['placement']},"
        f" firmware {group['firmware']}"
        for group in found["groups"]
    ]
    lines += [f"{what:<8} {found[what]}" for what in ("lights", "objects") if found[what]]
    said = ", ".join(f"{one['command']} at {one['at_s']:g} s" for one in found["commands"])
    lines.append(f"overhead {said or 'silent'}")
    return "\n".join(lines)


def _bytes_of(text: str) -> bytes:
    """Read bytes that an option gives as numbers with commas between."""
    try:
        return bytes(int(number, 0) for number in text.split(","))
    except ValueError:
        raise click.BadParameter(f"'{text}' is not bytes such as 1,0,0x2F") from None


def _section_of(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _exec_figures(chip: Chip, stop: str) -> dict[str, Any]:
    data = bytes(chip.data)
    return {
        "stop": str(stop),
        "pc": chip.pc if chip.fault_pc is None else chip.fault_pc,
        "cycles": chip.cycle,
        "registers": list(data[:32]),
        "sp": chip.sp,
        "sreg": chip.sreg,
        "sram_sha256": hashlib.sha256(data[SRAM_START:]).hexdigest(),
        "uart": chip.uart.decode("latin-1"),
    }


def _exec_text(figures: dict[str, Any], program: Program) -> str:
    from avrswarm.record.trace import flags_text

    pc, registers = figures["pc"], figures["registers"]
    lines = [
        f"stop     {figures['stop']}",
        f"pc       {pc:#06x} ({program.symbols.describe(pc)})",
        f"cycles   {figures['cycles']}",
        f"sp       {figures['sp']:#06x}",
        f"sreg     {figures['sreg']:#04x} ({flags_text(figures['sreg'])})",
    ]
    for first in range(0, 32, 8):
        values = " ".join(f"{value:02x}" for value in registers[first : first + 8])
        lines.append(f"r{first:<7} {values}")
    lines.append(f"uart     {_sent_text(figures['uart'])}")
    return "\n".join(lines)


def _sent_text(sent: str) -> str:
    """Tell what the serial port sent, in one line."""
    size = f"{len(sent)} byte{'' if len(sent) == 1 else 's'} sent"
    if not sent:
        return size
    if len(sent) <= SHOWN_BYTES:
        return f"{size}: {sent!r}"
    return f"{size}: {sent[:SHOWN_BYTES]!r} and more (--uart FILE has all)"


def _bench_table(rows: Sequence[Row]) -> Table:
    from rich.table import Table

    table = Table(title="one chip, one core: emulated MHz")
    table.add_column("firmware", no_wrap=True)
    for title in ("MHz", "interpreter", "simavr", "ratio", "x real time", "us/pulse"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        figures = (
            row.mhz,
            row.interpreter_mhz,
            row.simavr_mhz,
            row.ratio,
            row.realtime_factor,
            row.us_per_pulse,
        )
        table.add_row(row.name, *("-" if f is None else f"{f:,.{_digits(f)}f}" for f in figures))
    return table


def _swarm_tables(rows: Sequence[SwarmRow]) -> list[Table]:
    from rich.table import Table

    speed = Table(title="swarms by the clock, physics and recording included; KiB per robot")
    shares = Table(title="parts of the time on the clock")
    speed_titles = ("threads", "x real", "CPU s/s", "GHz", "us/pulse", "KiB")
    share_titles = ("chips", "medium", "physics", "records")
    for table, titles in ((speed, speed_titles), (shares, share_titles)):
        table.add_column("robots", no_wrap=True)
        for title in titles:
            table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        name = row.name.replace(" robots", "").replace(", 1 thread", "")
        figures = (row.realtime_factor, row.processor_s, row.mhz / 1000, row.us_per_pulse)
        speed.add_row(
            name,
            str(row.threads),
            *("-" if f is None else f"{f:,.{_digits(f)}f}" for f in figures),
            f"{row.kib_per_robot:.1f}",
        )
        parts = (row.chips_share, row.medium_share, row.physics_share, row.records_share)
        shares.add_row(name, *(f"{part:.0%}" for part in parts))
    return [speed, shares]


def _digits(figure: float) -> int:
    return 0 if figure >= 100 else 1 if figure >= 10 else 2


@contextmanager
def _text_output(path: str | None) -> Iterator[TextIO | None]:
    """Open a file that an option names: None is no file, - the screen."""
    if path is None:
        yield None
    elif path == "-":
        yield sys.stdout
    else:
        with _opened(path, "w") as file:
            yield file


def _write_bytes(path: str, content: bytes) -> None:
    if path == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    else:
        with _opened(path, "wb") as file:
            file.write(content)


def _opened(path: str, mode: str) -> Any:
    try:
        return open(path, mode, encoding=None if "b" in mode else "utf-8")
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror}") from error


def _variables_text(found: list[dict[str, Any]]) -> str:
    rows = []
    for variable in found:
        place = f"{variable['space']} {variable['address']:#06x}"
        where = f"{variable['file']}:{variable['line']}"
        rows.append((variable["name"], variable["type"], place, where))
        parts = variable["parts"]
        if [part["path"] for part in parts] != [variable["name"]]:
            rows += [(f"  {part['path']}", part["type"], "", "") for part in parts]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _info_text(found: dict[str, Any]) -> str:
    lines = [f"file     {found['file']}", f"digest   {found['digest']}"]
    for memory in ("flash", "eeprom", "sram"):
        used, size = found[memory]["used_bytes"], found[memory]["size_bytes"]
        share = "not known without symbols" if used is None else f"{used} of {size} bytes"
        percent = "" if used is None else f" ({100 * used / size:.1f} %)"
        lines.append(f"{memory:<8} {share}{percent}")
    given = {**found["fuses"], "lock": found["lock"]}
    shown = [f"{name} {value:#04x}" for name, value in given.items() if value is not None]
    lines += [f"fuses    {', '.join(shown) or 'not given'}", ""]
    lines.append(f"vectors in use: {len(found['vectors'])}")
    for vector in found["vectors"]:
        place = vector["symbol"] or ""
        row = f"  {vector['number']:>2}  {vector['name']:<13} {vector['handler']:#06x}  {place}"
        lines.append(row.rstrip())
    lines += ["", f"symbols: {len(found['symbols'])}"]
    lines += [
        f"  {symbol['space']:<6}  {symbol['address']:#06x}  {symbol['size']:>5}  "
        f"{symbol['kind']:<8}  {symbol['name']}"
        for symbol in found["symbols"]
    ]
    return "\n".join(lines)
