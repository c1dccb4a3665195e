"""The tests that inject faults report the fault table, row by row."""

import os
import sys
from pathlib import Path
from subprocess import run

import pytest

from tests.nightly import nightly_except

pytestmark = pytest.mark.faults

FAILING = """
import numpy as np
import pytest

@pytest.mark.faults
def test_a_fault(faults):
    tried = faults.times(30)
    faults.row(1, "a plug is pulled", "nothing is lost", tried, np.int64(tried - 1))
    assert tried == {expected}
"""


@pytest.mark.parametrize(
    ("choice", "tried", "workers"), nightly_except([["tenth", 3, 1], ["full", 30, 0]], ["tenth", 3, 1])
)
def test_the_table_names_what_was_tried_and_what_was_good(
    tmp_path: Path, choice: str, tried: int, workers: int
) -> None:
    (tmp_path / "conftest.py").write_text(Path("tests/conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "test_it.py").write_text(FAILING.format(expected=tried), encoding="utf-8")
    table = tmp_path / "table.md"

    # In a process of its own, and a worker of that: rows must come back from where a test ran.
    arguments = [f"--faults={choice}", f"--fault-table={table}", "-n", str(workers), "-q", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(tmp_path), *arguments]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    answer = run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, answer.stdout
    assert f"| 1 | a plug is pulled | nothing is lost | {tried} | {tried - 1} |" in table.read_text(encoding="utf-8")
