"""The published coverage, in few samples: every row exists, and broken intervals would be detected."""

import json

import pytest

from tests.benchmarks import coverage
from tests.benchmarks.__main__ import main

pytestmark = pytest.mark.slow


def test_the_command_prints_every_setting(capsys, monkeypatch):
    monkeypatch.setattr(coverage, "SIZES", (50,))
    assert main(["coverage", "--samples", "20", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows = {(row["number"], row["case"], row["n"]): row["held"] for row in told["coverage"]}
    assert {number for number, _, _ in rows} == {
        "AUC (grouped bootstrap)", "d' (grouped bootstrap)", "difference, Newcombe", "difference, resampled",
        "calibration error", "share (Wilson)",
    }  # fmt: skip
    assert all(0.7 <= held <= 1 for (number, _, _), held in rows.items() if "resampled" not in number)
    assert rows["difference, resampled", "0.97 against 0.99", 30] < 0.7, "why it is not used for right and wrong"
    shuffled = {level["n"]: level["auc"] for level in told["shuffled"]}
    assert shuffled[1000] < shuffled[500] < shuffled[100] < 0.1
