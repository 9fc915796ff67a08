"""What the README shows is what comes out."""

import doctest
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from avrswarm.cli import cli

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
SESSIONS = "".join(re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
EXAMPLES = [
    (command, output)
    for command, output in re.findall(
        r"^\$ avrswarm ([^\n]*)\n(.*?)(?=^\$ |\Z)", SESSIONS, re.MULTILINE | re.DOTALL
    )
    if not command.startswith("bench")
]


def test_python_examples(monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False, encoding="utf-8")
    assert result.attempted > 10
    assert result.failed == 0


def test_there_are_examples_of_the_command_line():
    assert {command.split()[0] for command, _ in EXAMPLES} >= {"exec", "info", "disasm"}


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[c for c, _ in EXAMPLES])
def test_command_line_examples(command, output, monkeypatch):
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(cli, command.split(), catch_exceptions=False)
    assert done.exit_code == 0
    # doctest cannot begin an expected output with an ellipsis line, so both get a first line
    checker = doctest.OutputChecker()
    got, wanted = "start\n" + done.stdout, "start\n" + output
    assert checker.check_output(wanted, got, doctest.ELLIPSIS), done.stdout


def test_commands_that_the_readme_names_exist():
    for command in re.findall(r"`(tools/[\w.]+)`|^    (tools/[\w.]+)", README, re.MULTILINE):
        assert (ROOT / (command[0] or command[1])).is_file()


PLACES = sorted(
    set(re.findall(r"[`(]((?:avrswarm|firmware|scenes|tests|tools)/[\w./-]*)[`)]", README))
)


def test_there_are_places():
    assert len(PLACES) > 10


@pytest.mark.parametrize("place", PLACES)
def test_places_that_the_readme_names_exist(place):
    assert (ROOT / place).exists()


def test_files_of_the_tour_exist():
    tour = re.findall(r"^\| `(avrswarm/\w+/)` \| (.*) \|$", README, re.MULTILINE)
    assert len(tour) > 5
    for folder, text in tour:
        for name in re.findall(r"`([\w/]+\.py)`", text):
            assert (ROOT / folder / name).is_file(), f"{folder}{name}"
