"""Settings for all tests: one hypothesis profile, and tools that some tests cannot do without."""

import os
import shutil

import pytest
from hypothesis import settings

from . import seeds

settings.register_profile(
    "avrswarm", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
settings.load_profile("avrswarm")

TOOLS = {"needs_avr_gcc": "avr-gcc", "needs_simavr": "simavr", "needs_ffmpeg": "ffmpeg"}


def pytest_report_header():
    return seeds.header()


def pytest_collection_modifyitems(items):
    """Skip what needs an absent tool, unless tools/test.sh vouches for the tools being there."""
    if os.environ.get("AVRSWARM_REQUIRE_TOOLS"):
        return
    for marker, tool in TOOLS.items():
        if shutil.which(tool) is None:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=f"{tool} is not installed"))


if os.environ.get("AVRSWARM_TEST_TRANSLATED"):

    @pytest.fixture(autouse=True)
    def every_chip_runs_native_code(monkeypatch):
        """Run tests of the chip again on translated programs; tools/test.sh does."""
        from avrswarm.chip.chip import Chip
        from avrswarm.engine import Translation

        interpreted = Chip.__init__

        def translated(chip, program, *arguments, **options):
            options.setdefault("native", Translation(program.flash, wait=True))
            interpreted(chip, program, *arguments, **options)

        monkeypatch.setattr(Chip, "__init__", translated)
