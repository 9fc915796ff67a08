import hashlib
import json
import os
import subprocess
import sys

import pytest

from avrswarm import cli
from avrswarm.errors import ChipFault
from tests.program.firmware import compile_firmware
from tests.program.records import END, data, write_hex
from tests.reference import assemble as asm

RJMP_SELF = b"\xff\xcf"
RJMP_WORDS = [0xCFFF]


def run(*arguments, capfd):
    """Run the command in this process; returns exit code, output and messages."""
    with pytest.raises(SystemExit) as caught:
        cli.main([str(argument) for argument in arguments])
    output, messages = capfd.readouterr()
    return caught.value.code, output, messages


@pytest.fixture
def loop(tmp_path):
    return write_hex(tmp_path, data(0, RJMP_SELF), END)


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["info"],
        ["disasm"],
        ["exec"],
        ["vars"],
        ["calibrate"],
        ["calibrate", "distance"],
        ["calibrate", "motors"],
    ],
)
def test_help_has_an_example(command, capfd):
    code, output, _ = run(*command, "--help", capfd=capfd)
    assert code == 0
    assert "Example" in output
    assert "avrswarm" in output


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["info"], ["info", "--nothing", "x"], ["exec", "x", "--max-cycles", "-1"]],
)
def test_wrong_call_is_2(arguments, capfd):
    code, _, messages = run(*arguments, capfd=capfd)
    assert code == 2
    assert "Error" in messages


@pytest.mark.parametrize("command", ["info", "disasm", "exec", "vars"])
def test_bad_input_is_3(command, tmp_path, capfd):
    code, output, messages = run(command, tmp_path / "none.hex", capfd=capfd)
    assert code == 3
    assert output == ""
    assert messages == f"avrswarm: {tmp_path / 'none.hex'}: no such file\n"


def test_unknown_place_is_a_wrong_call(loop, capfd):
    code, _, messages = run("exec", loop, "--until", "main", capfd=capfd)
    assert code == 2
    assert "no symbol 'main'" in messages


def test_bad_eeprom_file_is_bad_input(loop, tmp_path, capfd):
    code, _, messages = run("exec", loop, "--eeprom", tmp_path / "none.eep", capfd=capfd)
    assert code == 3
    assert "none.eep: no such file" in messages


def test_firmware_fault_is_4(monkeypatch, capfd):
    def fail():
        raise ChipFault("undefined opcode at 0x0000")

    monkeypatch.setattr(cli.cli.commands["info"], "callback", lambda **_: fail())
    code, _, messages = run("info", "x", capfd=capfd)
    assert code == 4
    assert messages == "avrswarm: undefined opcode at 0x0000\n"


def test_defect_is_70(monkeypatch, capfd):
    monkeypatch.delenv("AVRSWARM_TRACEBACK", raising=False)
    monkeypatch.setattr(cli.cli.commands["info"], "callback", lambda **_: 1 / 0)
    code, _, messages = run("info", "x", capfd=capfd)
    assert code == 70
    assert "internal error: ZeroDivisionError" in messages
    assert "Traceback" not in messages


def test_version(capfd):
    code, output, _ = run("--version", capfd=capfd)
    assert code == 0
    assert output.startswith("avrswarm, version 0.")


@pytest.mark.needs_avr_gcc
def test_info(tmp_path, capfd):
    elf = compile_firmware(tmp_path)
    code, output, _ = run("info", elf, capfd=capfd)
    assert code == 0
    assert "TIMER0_OVF" in output
    assert "neighbours" in output
    assert "low 0xe2, high 0xd9, extended 0xfe, lock 0xef" in output
    code, output, _ = run("info", elf, "--json", capfd=capfd)
    found = json.loads(output)
    assert found["fuses"] == {"low": 0xE2, "high": 0xD9, "extended": 0xFE}
    assert [vector["symbol"] for vector in found["vectors"]] == ["__vector_16"]


def test_info_without_symbols(loop, capfd):
    code, output, _ = run("info", loop, capfd=capfd)
    assert code == 0
    assert "sram     not known without symbols" in output
    assert "fuses    not given" in output
    assert "vectors in use: 0" in output


def test_disasm(loop, capfd):
    code, output, _ = run("disasm", loop, capfd=capfd)
    assert code == 0
    assert "rjmp" in output


def test_module_runs_and_survives_a_closed_pipe(tmp_path):
    path = write_hex(tmp_path, *(data(place, bytes(32)) for place in range(0, 0x8000, 32)), END)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "avrswarm", "disasm", path]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, b"")


class TestExec:
    """With the chip itself."""

    def test_json(self, loop, capfd):
        code, output, _ = run("exec", loop, "--max-cycles", 1001, "--json", capfd=capfd)
        found = json.loads(output)
        assert code == 0
        assert list(found) == [
            "stop", "pc", "cycles", "registers", "sp", "sreg", "sram_sha256", "uart",
        ]  # fmt: skip
        assert (found["stop"], found["pc"], found["cycles"]) == ("cycles", 0, 1002)
        assert len(found["registers"]) == 32
        assert found["uart"] == ""

    def test_text(self, loop, capfd):
        code, output, _ = run("exec", loop, "--max-cycles", 1000, capfd=capfd)
        assert code == 0
        assert "stop     cycles" in output
        assert "cycles   1000" in output

    @pytest.mark.needs_avr_gcc
    def test_until_symbol(self, tmp_path, capfd):
        elf = compile_firmware(tmp_path)
        code, output, _ = run("exec", elf, "--until", "main", "--json", capfd=capfd)
        assert code == 0
        assert json.loads(output)["stop"] == "breakpoint"
        code, output, _ = run("exec", elf, "--until", "main", capfd=capfd)
        assert "(main)" in output

    def test_undefined_opcode_is_4(self, tmp_path, capfd):
        path = write_hex(tmp_path, data(0, b"\x01\x00"), END)
        code, output, messages = run("exec", path, "--json", capfd=capfd)
        assert code == 4
        assert json.loads(output)["stop"] == "fault"
        assert "undefined opcode" in messages

    def test_vcd_trace_and_uart_files(self, loop, tmp_path, capfd):
        files = {name: tmp_path / name for name in ("vcd", "trace", "uart")}
        options = [part for name, path in files.items() for part in (f"--{name}", path)]
        code, *_ = run("exec", loop, *options, "--max-cycles", 10, capfd=capfd)
        assert code == 0
        assert files["vcd"].read_text().rstrip().endswith("#1250")
        assert len(files["trace"].read_text().splitlines()) == 5
        assert files["uart"].read_bytes() == b""

    def test_file_that_cannot_be_written_is_3(self, loop, tmp_path, capfd):
        code, _, messages = run("exec", loop, "--vcd", tmp_path / "no" / "x.vcd", capfd=capfd)
        assert code == 3
        assert "cannot be written" in messages


def hex_of(folder, *parts, name="program.hex"):
    """An Intel HEX file of assembled instructions."""
    words = [word for part in parts for word in part]
    content = b"".join(word.to_bytes(2, "little") for word in words)
    lines = [data(place, content[place : place + 16]) for place in range(0, len(content), 16)]
    return write_hex(folder, *lines, END, name=name)


SEND_HI = [
    *asm.ldi(16, 0x08), *asm.sts(asm.UCSR0B, 16),  # TXEN
    *asm.ldi(16, ord("H")), *asm.sts(asm.UDR0, 16), *asm.ldi(16, ord("i")), *asm.sts(asm.UDR0, 16),
]  # fmt: skip


class TestExecOptions:
    """What each option does, with programs that show it."""

    def test_until_address(self, tmp_path, capfd):
        path = hex_of(tmp_path, asm.nop() * 5, RJMP_WORDS)
        code, output, _ = run("exec", path, "--until", "0x6", "--json", capfd=capfd)
        found = json.loads(output)
        assert (code, found["stop"], found["pc"], found["cycles"]) == (0, "breakpoint", 6, 3)

    def test_serial_port_on_the_screen_and_in_a_file(self, tmp_path, capfd):
        path = hex_of(tmp_path, SEND_HI, RJMP_WORDS)
        code, output, messages = run("exec", path, "--max-cycles", 1000, "--uart", "-", capfd=capfd)
        assert (code, output) == (0, "Hi")
        assert "uart     2 bytes sent: 'Hi'" in messages
        file = tmp_path / "sent"
        _, output, _ = run(
            "exec", path, "--max-cycles", 1000, "--uart", file, "--json", capfd=capfd
        )
        assert file.read_bytes() == b"Hi"
        assert json.loads(output)["uart"] == "Hi"
        _, output, _ = run("exec", path, "--uart", "-", "--json", capfd=capfd)
        assert json.loads(output)["uart"] == "Hi"  # nothing but one object

    def test_serial_port_in_words(self, tmp_path, capfd):
        poll = [*asm.lds(17, asm.UCSR0A), *asm.sbrs(17, 5), *asm.rjmp(-4)]
        send = [*SEND_HI, *poll, *asm.ldi(16, ord("!")), *asm.sts(asm.UDR0, 16), *asm.rjmp(-8)]
        path = hex_of(tmp_path, send)
        _, output, _ = run("exec", path, "--max-cycles", 10_000, capfd=capfd)
        assert output.endswith("bytes sent: 'Hi" + "!" * (output.count("!")) + "'\n")
        _, output, _ = run("exec", path, "--max-cycles", 100_000, capfd=capfd)
        assert output.endswith(f"'Hi{'!' * 198}' and more (--uart FILE has all)\n")

    def test_eeprom(self, tmp_path, capfd):
        read = [*asm.ldi(16, 7), *asm.out(asm.EEARL, 16), *asm.sbi(asm.EECR, 0)]
        path = hex_of(tmp_path, read, asm.in_(20, asm.EEDR), RJMP_WORDS)
        content = write_hex(tmp_path, data(7, b"\x5a"), END, name="x.eep")
        for options, expected in (([], 0xFF), (["--eeprom", content], 0x5A)):
            _, output, _ = run("exec", path, "--json", *options, capfd=capfd)
            assert json.loads(output)["registers"][20] == expected

    def test_seed(self, loop, capfd):
        def sram(*options):
            _, output, _ = run("exec", loop, "--json", "--max-cycles", 9, *options, capfd=capfd)
            return json.loads(output)["sram_sha256"]

        assert sram() == hashlib.sha256(bytes(2048)).hexdigest()
        assert sram("--seed", 1) == sram("--seed", 1) != sram("--seed", 2)

    def test_reports_and_strict(self, tmp_path, capfd):
        stray = [*asm.ldi(16, 9), *asm.lds(17, 0x1234), *asm.dec(16), *asm.brne(-4)]
        path = hex_of(tmp_path, stray, RJMP_WORDS)
        code, _, messages = run("exec", path, "--max-cycles", 1000, capfd=capfd)
        assert code == 0
        (line,) = messages.splitlines()  # nine times, one place
        assert "read beyond SRAM" in line
        assert "address 0x1234 at cycle 2, pc 0x0002" in line
        assert "lds r17, 0x1234" in line
        code, output, messages = run("exec", path, "--strict", "--json", capfd=capfd)
        assert code == 4
        assert (json.loads(output)["stop"], json.loads(output)["pc"]) == ("fault", 2)
        assert len(messages.splitlines()) == 1
        assert "read beyond SRAM" in messages

    def test_more_places_than_are_kept(self, tmp_path, capfd):
        path = hex_of(tmp_path, asm.lds(17, 0x1234) * 9, RJMP_WORDS)
        _, _, messages = run("exec", path, "--max-cycles", 100, capfd=capfd)
        assert len(messages.splitlines()) == 9
        assert messages.endswith("more such places were met than are kept\n")

    def test_trace_and_registers_in_waveforms(self, tmp_path, capfd):
        start = [*asm.ldi(16, 1), *asm.out(asm.TCCR0B, 16), *asm.out(asm.DDRB, 16)]
        path = hex_of(tmp_path, start, asm.out(asm.PORTB, 16), RJMP_WORDS)
        vcd = tmp_path / "pins.vcd"
        code, output, _ = run(
            *("exec", path, "--trace", "-", "--vcd", vcd, "--vcd-regs", "TCNT0, ocr0a"),
            *("--max-cycles", 10),
            capfd=capfd,
        )
        assert code == 0
        first, *_ = output.splitlines()
        assert first.split() == ["0", "0000", "0x0000", "ldi", "r16,", "0x01", "r16=01"]
        assert len(output.splitlines()) == 7
        text = vcd.read_text()
        names = {line.split()[4] for line in text.splitlines() if line.startswith("$var")}
        assert {"PB0", "PD7", "TCNT0", "OCR0A"} <= names
        code, _, messages = run("exec", path, "--vcd", vcd, "--vcd-regs", "TCNT9", capfd=capfd)
        assert code == 2
        assert "TCNT9" in messages

    def test_registers_without_waveforms_are_a_wrong_call(self, loop, capfd):
        code, _, messages = run("exec", loop, "--vcd-regs", "TCNT0", capfd=capfd)
        assert code == 2
        assert "--vcd" in messages

    def test_trace_of_a_sleep(self, tmp_path, capfd):
        sleep = [*asm.ldi(16, 5), *asm.out(asm.SMCR, 16), *asm.sleep()]
        start = [*asm.ldi(16, 0x40), *asm.sts(asm.WDTCSR, 16), *asm.sei()]
        vectors = [*asm.jmp(14), *[0] * 10, *asm.reti(), 0]  # the watchdog's is the sixth
        path = hex_of(tmp_path, vectors, start, sleep, asm.nop(), asm.sleep(), RJMP_WORDS)
        _, output, _ = run("exec", path, "--trace", "-", "--max-cycles", 200_000, capfd=capfd)
        texts = [" ".join(line.split()[3:]) for line in output.splitlines()]
        asleep = [number for number, text in enumerate(texts) if text == "-- asleep"]
        assert len(asleep) == 2
        first = asleep[0]
        assert texts[first - 1] == "sleep"
        assert texts[first + 1].startswith("-- interrupt, to")
        assert [text.split()[0] for text in texts[first + 2 : first + 5]] == [
            "reti",
            "nop",
            "sleep",
        ]
        assert asleep[1] == len(texts) - 1
        woken = int(output.splitlines()[first + 1].split()[0])
        assert woken == 128_000 + 1 + 6 + 4

    @pytest.mark.needs_avr_gcc
    def test_trace_names_functions(self, tmp_path, capfd):
        elf = compile_firmware(tmp_path)
        _, output, _ = run("exec", elf, "--trace", "-", "--max-cycles", 2000, capfd=capfd)
        places = {line.split()[2] for line in output.splitlines()}
        assert {"main", "__vectors"} <= {place.partition("+")[0] for place in places}


@pytest.mark.needs_avr_gcc
def test_vars(tmp_path, capfd):
    elf = compile_firmware(tmp_path, "-gdwarf-4")
    code, output, _ = run("vars", elf, capfd=capfd)
    assert code == 0
    lines = {line.split()[0]: line for line in output.splitlines()}
    assert "struct node*" in lines["neighbours[0..3].next"]
    assert "float" in lines["mydata.grid[0..2][0..1]"]
    assert "EEPROM 0x0000" in lines["saved"]
    assert "firmware.c:" in lines["helper::calls"]
    _, output, _ = run("vars", elf, "--json", capfd=capfd)
    found = {one["name"]: one for one in json.loads(output)["variables"]}
    assert found["neighbours"]["bytes"] == 48
    assert [part["path"] for part in found["flag"]["parts"]] == ["flag"]


def test_vars_without_debug_information(loop, capfd):
    code, output, messages = run("vars", loop, capfd=capfd)
    assert code == 3
    assert output == ""
    assert "no debug information in it; give an .elf file" in messages
