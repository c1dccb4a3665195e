"""The rule of dear tests can fail, and fails none that is listed, nightly, or dear on a slow computer alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import processor_time
from tests.processor_time import LIMIT_S, MARGIN, ProcessorTimes

DEAR_S = MARGIN * LIMIT_S + 1


def outcome(monkeypatch: pytest.MonkeyPatch, seconds: float, *, pace: float = 1.0, mark: str = "") -> str:
    """Return how the last report of a passed test ends that used these seconds."""
    item: Any = SimpleNamespace(nodeid="tests/test_it.py::test_it", user_properties=[])
    item.get_closest_marker = lambda name: name == mark
    report = SimpleNamespace(passed=True, outcome="passed", longrepr="")
    monkeypatch.setattr(processor_time, "ENFORCED", True)
    monkeypatch.setattr(processor_time, "used", lambda: seconds)
    monkeypatch.setattr(processor_time, "pace", lambda: pace)
    times = ProcessorTimes(SimpleNamespace(getoption=lambda _name: None))  # type: ignore[arg-type]
    steps = times.pytest_runtest_makereport(item, SimpleNamespace(when="teardown"))  # type: ignore[arg-type]
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(report)  # type: ignore[attr-defined]
    return report.outcome


def test_a_dear_test_fails_and_the_next_cheap_one_does_not(monkeypatch: pytest.MonkeyPatch):
    assert outcome(monkeypatch, DEAR_S) == "failed"
    assert outcome(monkeypatch, DEAR_S - 2) == "passed"


@pytest.mark.parametrize("how", [{"pace": 1.5}, {"mark": "nightly"}])
def test_a_slow_computer_and_a_nightly_test_are_excused(monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]):
    assert outcome(monkeypatch, DEAR_S, **how) == "passed"


def test_a_listed_test_may_use_what_the_list_says(monkeypatch: pytest.MonkeyPatch):
    entry = {"tests/test_it.py::test_it": {"seconds": 2 * DEAR_S, "why": "it trains"}}
    monkeypatch.setattr(processor_time, "listed", lambda: entry)
    assert outcome(monkeypatch, 3 * DEAR_S) == "passed"
    assert outcome(monkeypatch, 5 * DEAR_S) == "failed"
