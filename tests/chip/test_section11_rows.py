"""Every row of section 11 of the timing reference that is not marked U has a test that names it."""

import re
from pathlib import Path

LAST_ROW = {"C": 18, "I": 13, "T": 32, "A": 16, "E": 7, "F": 8, "W": 7, "P": 5, "U": 5, "R": 4}
UNKNOWN = {"C12"}  # marked U as a whole: what executing FFFF does


def rows_with_tests() -> set[str]:
    found = set()
    for path in Path(__file__).parent.glob("test_section11_*.py"):
        for name in re.findall(r"^def test_((?:[A-Z]\d\d_)+)", path.read_text(), re.MULTILINE):
            found |= set(name.strip("_").split("_"))
    return found


def test_every_known_row_has_a_test():
    rows = {
        f"{letter}{number:02}" for letter, last in LAST_ROW.items() for number in range(1, last + 1)
    }
    assert rows_with_tests() == rows - UNKNOWN
