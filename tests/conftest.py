"""What all tests share: the folder of real data sets beside the checkout, or a reason to skip."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# CI tries the same examples every time, so that what lands does not depend on luck; at a desk they are new each time.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

# One process a core: threads of torch would only wait for each other.
if os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Set before any Qt import: tests never need a screen, and a window of theirs must not pop up on a person's.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


LEAST_WAIT_MS = 90_000
"""A wait that succeeds ends at once; one that ends early beside other work tells nothing about the program."""


@pytest.fixture(autouse=True, scope="session")
def patient_qt() -> Iterator[None]:
    """Waits for signals and conditions are at least `LEAST_WAIT_MS` long, so that none depends on a quiet machine."""
    from pytestqt.qtbot import QtBot

    patch = pytest.MonkeyPatch()
    for name in ("waitUntil", "waitSignal", "waitSignals", "waitExposed"):
        patch.setattr(QtBot, name, _patient(getattr(QtBot, name)))
    yield
    patch.undo()


def _patient(wait: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(wait)
    def patient(*args: Any, timeout: int = LEAST_WAIT_MS, **kwargs: Any) -> Any:
        # Without an error the wait is a look whether something happens, and its end is the answer.
        looks = kwargs.get("raising") is False
        return wait(*args, timeout=timeout if looks else max(timeout, LEAST_WAIT_MS), **kwargs)

    return patient


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; tests that use it skip where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets (../shared/data) are not beside this checkout")
    return folder


@dataclass(frozen=True)
class Faults:
    """How often a fault is tried, and where its row of the fault table is told.

    Attributes:
        request: The test that tries it.
        whole: Whether it is tried as often as the promise says (`--faults=full`), or a tenth of that.
    """

    request: pytest.FixtureRequest
    whole: bool

    def times(self, full: int) -> int:
        """How often to try: `full`, or a tenth of it, at least once."""
        return full if self.whole else max(1, round(full / 10))

    def row(self, promise: int, fault: str, result: str, tried: int, good: int) -> None:
        """Tells a row of the table; a row whose `good` is below `tried` is printed as it is: honest to the last."""
        # Plain numbers: a process of xdist cannot send those of numpy.
        self.request.node.user_properties.append(("fault", (promise, fault, result, int(tried), int(good))))


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> Faults:
    """Tries of a fault and its row in the fault table that README shows."""
    return Faults(request, request.config.getoption("--faults") == "full")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", choices=("tenth", "full"), default="tenth", help="how often each fault is tried")
    parser.addoption("--fault-table", metavar="FILE", help="write the fault table of this run as Markdown")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = [told for report in reports for told in getattr(report, "user_properties", ())]
    rows = sorted({tuple(row) for name, row in properties if name == "fault"})  # a test has a report for each phase
    if not rows:
        return
    lines = ["| promise | fault | result | tried | good |", "|---|---|---|---|---|"]
    lines += [f"| {promise} | {fault} | {result} | {n:,} | {good:,} |" for promise, fault, result, n, good in rows]
    terminalreporter.section("fault table")
    terminalreporter.write_line("\n".join(lines))
    if file := config.getoption("--fault-table"):
        Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")
