"""The scripts in tools/, as far as they can be tried without running everything."""

import shutil
import subprocess
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1] / "tools"


def test_continuous_integration_fails_without_its_tools(tmp_path):
    """A machine on which no package is found and none can be installed."""
    for command in ("bash", "dirname", "grep"):
        (tmp_path / command).symlink_to(shutil.which(command))
    done = subprocess.run(
        [tmp_path / "bash", TOOLS / "test.sh"],
        env={"PATH": str(tmp_path), "CI": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "could not install gcc-avr" in done.stderr
    assert "skipped" not in done.stderr
    assert "venv" not in done.stderr
