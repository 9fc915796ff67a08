"""Compiled code on disk is never stale and is found again; bounds checks reach into kernels."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from avrswarm import jit

ROOT = Path(jit.__file__).resolve().parents[1]

KERNELS = """
from avrswarm.jit import kernel

@kernel
def rule(numbers, place):
    return numbers[place] + {added}
"""
ENTRIES = """
import numpy as np
from avrswarm.inner.kernels import rule
from avrswarm.jit import entry

@entry
def apply(numbers, place):
    return rule(numbers, place)

def show(place):
    print(apply(np.arange(10), place), apply.stats.cache_hits[apply.signatures[0]]
          if apply.signatures and apply.stats.cache_hits else 0)
"""


@pytest.fixture
def package(tmp_path):
    """A small package that compiles as ours does: a kernel in one module, an entry in another."""
    folder = tmp_path / "source" / "avrswarm"
    (folder / "inner").mkdir(parents=True)
    for name in ("jit.py", "whole_program.py"):
        shutil.copy(ROOT / "avrswarm" / name, folder / name)
    (folder / "__init__.py").touch()
    (folder / "inner" / "__init__.py").touch()
    (folder / "inner" / "kernels.py").write_text(KERNELS.format(added=100))
    (folder / "entries.py").write_text(ENTRIES)
    return folder


def python(code, package, **environment):
    """Run code in a fresh interpreter with that package and a cache of its own."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "AVR"))
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=package.parent,
        env=inherited
        | {
            "AVRSWARM_CACHE": str(package.parent.parent / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def shown(package, place=3, **environment):
    done = python(f"from avrswarm.entries import show; show({place})", package, **environment)
    assert done.returncode == 0, done.stderr
    result, hits = done.stdout.split()
    return int(result), int(hits)


def test_second_start_takes_compiled_code_from_disk(package):
    assert shown(package) == (103, 0)
    assert shown(package) == (103, 1)


def test_an_edit_in_any_module_is_seen(package):
    """numba's own cache would serve the old code: only the file of the entry counts there."""
    shown(package)
    kernels = package / "inner" / "kernels.py"
    times = kernels.stat()
    kernels.write_text(KERNELS.format(added=200))
    os.utime(kernels, ns=(times.st_atime_ns, times.st_mtime_ns))  # not even the date tells
    assert shown(package) == (203, 0)
    assert shown(package) == (203, 1)
    kernels.write_text(KERNELS.format(added=100))  # back again: the older code is still there
    assert shown(package) == (103, 1)


def test_parts_that_the_digest_leaves_out_have_no_compiled_code():
    """tests/test_import_order.py sees to it that nothing else imports them."""
    left_out = [ROOT / "avrswarm" / name for name in jit.NEVER_COMPILED]
    sources = [
        path for part in left_out for path in ([part] if part.is_file() else part.rglob("*.py"))
    ]
    assert len(sources) > 10
    for path in sources:
        text = path.read_text()
        assert "@kernel" not in text, path
        assert "@entry" not in text, path
        assert "njit" not in text, path


def test_few_old_caches_are_kept(package):
    for added in range(10):
        (package / "inner" / "kernels.py").write_text(KERNELS.format(added=added))
        python("import avrswarm.jit", package)
    assert len(list((package.parent.parent / "cache").iterdir())) <= 9


def test_without_a_place_for_the_cache_it_still_runs(package):
    (package.parent.parent / "file").touch()
    assert shown(package, AVRSWARM_CACHE=str(package.parent.parent / "file"))[0] == 103


def test_jit_off(package):
    done = python(
        "from avrswarm.entries import apply; print(apply([1, 2], 1), type(apply).__name__)",
        package,
        NUMBA_DISABLE_JIT="1",
    )
    assert done.stdout.split() == ["102", "function"]


def test_bounds_checks_reach_into_kernels(package):
    """NUMBA_BOUNDSCHECK=1 makes an index outside an array an error, and has its own cache."""
    assert shown(package) == (103, 0)
    for _ in range(2):  # compiled, and from disk
        done = python(
            "from avrswarm.entries import show; show(3); show(99)", package, NUMBA_BOUNDSCHECK="1"
        )
        assert done.stdout.startswith("103 ")
        assert "IndexError" in done.stderr
    assert shown(package) == (103, 1)


def test_first_start_says_that_it_compiles(tmp_path):
    """From an empty cache, ``exec`` speaks up before it compiles, and all is compiled then."""
    if jit.JIT_DISABLED:
        pytest.skip("nothing is compiled")
    firmware = tmp_path / "loop.hex"
    firmware.write_text(":02000000FFCF30\n:00000001FF\n")
    done = subprocess.run(
        [sys.executable, "-m", "avrswarm", "exec", str(firmware), "--engine", "interpreter"],
        cwd=ROOT,
        env=os.environ | {"AVRSWARM_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stderr.splitlines()
    assert "first start of this version: compiling" in first
    assert "compiled in" in second
    compiled = {path.name.split("-")[0] for path in (tmp_path / "cache").rglob("*.nbi")}
    assert compiled == {"decode.decode_image", "kernels.bench"}


def test_start_with_a_warm_cache():
    """The cache that this test run filled serves the next process: it says nothing of compiling."""
    if jit.JIT_DISABLED:
        pytest.skip("nothing is compiled")
    command = "from avrswarm import Chip; from avrswarm.program import Program;"
    command += "chip = Chip(Program.from_words([0xCFFF])); chip.run(1000); print(chip.cycle)"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == "1000"
    assert "compil" not in done.stderr
