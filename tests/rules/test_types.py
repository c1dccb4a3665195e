"""CI's type checker detects a bug that once broke Inspect for any two runs: a parameter shadowed by a list."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

SHADOWED = """
def maps(runs: list[str], steps: dict[str, int]) -> list[int]:
    steps = [len(run) for run in runs]
    return [steps[run] for run in runs]
"""


def _check(tmp_path: Path, source: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "planted.py"
    file.write_text(source)
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(file)], cwd=tmp_path, capture_output=True, text=True
    )


def test_a_shadowed_parameter_is_found(tmp_path):
    found = _check(tmp_path, SHADOWED)

    assert found.returncode == 1
    assert "[assignment]" in found.stdout


def test_a_name_of_its_own_passes(tmp_path):
    own = SHADOWED.replace("steps = [", "lengths = [").replace("[steps[run] for", "[steps[run] + len(lengths) for")

    assert _check(tmp_path, own).returncode == 0
