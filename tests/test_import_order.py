"""A layer imports only from layers before it, so that the package can be read in one direction."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import avrswarm

PACKAGE = Path(avrswarm.__file__).parent
LAYERS = ["program", "isa", "chip", "engine", "robot", "world", "scene", "swarm"]
LAYERS += ["record", "study", "cli"]
FOUNDATIONS = {
    "errors",
    "jit",
    "whole_program",
    "units",
    "portable_math",
    "randomness",
    "__version__",
}  # below every layer; they import no layer
STRANGERS = {frozenset({"robot", "world"})}  # only swarm knows both
ENTRANCES = {"__init__", "__main__"}  # they only pass names on

MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(module):
    """'avrswarm.chip.core' -> 'chip'; the package itself is '__init__'."""
    return [*module.split("."), "__init__"][1]


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            # `from avrswarm import chip` imports the layer that it names.
            for alias in node.names:
                at_top = node.module == "avrswarm"
                yield (f"avrswarm.{alias.name}" if at_top else node.module), node.lineno


def objection(importer, imported):
    """Say what is wrong with a layer importing another, or None."""
    if imported in FOUNDATIONS or importer == imported:
        return None
    if importer in FOUNDATIONS:
        return f"{importer} is below every layer and imports {imported}"
    if imported not in LAYERS:
        return f"{imported} is in no layer"
    if LAYERS.index(imported) > LAYERS.index(importer):
        return f"{importer} comes before {imported}"
    if frozenset({importer, imported}) in STRANGERS:
        return f"{importer} and {imported} do not know each other"
    return None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    importer = part_of(module_name(path))
    if importer in ENTRANCES:
        return
    assert importer in LAYERS or importer in FOUNDATIONS, f"{importer} needs a place in LAYERS"
    for imported, line in imported_modules(path.read_text()):
        if imported.partition(".")[0] == "avrswarm":
            problem = objection(importer, part_of(imported))
            assert problem is None, f"{path}:{line}: {problem}"


@pytest.mark.parametrize(
    ("importer", "imported", "is_fine"),
    [
        ("chip", "isa", True),
        ("isa", "chip", False),
        ("robot", "world", False),
        ("world", "robot", False),
        ("swarm", "robot", True),
        ("program", "errors", True),
        ("jit", "chip", False),
        ("cli", "utils", False),
    ],
)
def test_the_check_itself(importer, imported, is_fine):
    assert (objection(importer, imported) is None) == is_fine


def test_import_forms_are_all_seen():
    source = (
        "import avrswarm.chip.core\nfrom avrswarm import world\nfrom avrswarm.isa.table import Op"
    )
    assert [part_of(name) for name, _ in imported_modules(source)] == ["chip", "world", "isa"]


def test_importing_the_package_imports_nothing_heavy():
    heavy = "{'numba', 'numpy', 'matplotlib', 'pyarrow', 'elftools', 'click'}"
    code = f"import avrswarm, sys; print(sorted({heavy} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
