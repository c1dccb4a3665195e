"""Processor time of each test, with the processes that it starts and waits for.

A second of waiting costs nobody anything, a second of processor time is paid for at every change: so a test of the
plain suite that uses more than `LIMIT_S` belongs to `dear_tests.toml` with its reason, and fails above `MARGIN` times
as much where the limit is `ENFORCED`. Imports and shared fixtures are counted apart, because
whichever test comes first would pay for them.

The times are kept in pytest's cache: by them the next run begins with the files that take longest.
"""

from __future__ import annotations

import importlib.machinery
import json
import resource
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from tests import fork_server

LIMIT_S: Final = 4.0
DEAR: Final = Path(__file__).with_name("dear_tests.toml")
ENFORCED = False
"""Until a quiet run of the plain suite has told which tests `dear_tests.toml` must list."""
MARGIN: Final = 2.0
"""A test fails above so many limits. Beside 18 busy processes on 2 cores collecting the tests used 21 s instead of 16,
while `pace` saw nothing: its loop fits into the cache, which other processes empty."""
DEAREST: Final = 15
"""Tests that a long run prints."""
LONG_S: Final = 60.0
CACHED: Final = "processor_time/tests"
NOT_PLAIN: Final = ("nightly", "timed", "ray", "gpu", "shared")
_USUAL_LOOP_S: Final = 0.06
_BYTES_A_SECOND: Final = 2000
"""Of a test file whose time is not known: the average of the suite."""


def listed() -> dict[str, dict[str, Any]]:
    """Return the tests that may take more: `seconds` and `why` by their ids."""
    return tomllib.loads(DEAR.read_text(encoding="utf-8"))


def used() -> float:
    """Return the seconds of processor time of this process and the ended ones that it waited for."""
    mine, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def pace() -> float:
    """Return how many times slower this computer is now than the one on which the limit was set; at least 1."""
    began = time.process_time()
    sum(i * i for i in range(1_000_000))
    return max(1.0, (time.process_time() - began) / _USUAL_LOOP_S)


class ProcessorTimes:
    """Measures every test, fails the dear ones, and reports and keeps the times of a run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._listed = listed()
        self._apart = self._began = 0.0
        self._total = 0.0
        self._importing = 0
        self._times: dict[str, float] = {}
        self._fixtures: Counter[str] = Counter()
        self._shared: Counter[str] = Counter()
        self._exec_module = importlib.machinery.SourceFileLoader.exec_module

    def pytest_sessionstart(self) -> None:
        """Count imports apart from now on."""

        def exec_module(loader: Any, module: ModuleType) -> None:
            self._importing += 1
            began = time.process_time()
            try:
                self._exec_module(loader, module)
            finally:
                self._importing -= 1
                if not self._importing:
                    self._apart += time.process_time() - began

        importlib.machinery.SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Restore imports, and tell the first process what this one has used."""
        importlib.machinery.SourceFileLoader.exec_module = self._exec_module  # type: ignore[method-assign]
        fork_server.close()
        self._total += used()
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["processor_s"] = self._total

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a process of xdist has used."""
        self._total += getattr(node, "workeroutput", {}).get("processor_s", 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Count a fixture of several tests apart."""
        began, apart = used(), self._apart
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                inner = self._apart - apart
                self._apart = apart + used() - began
                self._fixtures[f"{fixturedef.argname} ({fixturedef.baseid})"] += used() - began - inner

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Begin to count."""
        self._began = used() - self._apart
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Write the time to the last report of a test, which fails if it is too long."""
        if call.when != "teardown":
            return (yield)
        seconds = used() - self._apart - self._began
        item.user_properties.append(("processor_s", seconds))
        if self._fixtures:
            item.user_properties.append(("fixtures_s", dict(self._fixtures)))
            self._fixtures.clear()
        report = yield
        limit = MARGIN * self._listed.get(item.nodeid, {}).get("seconds", LIMIT_S)
        if (
            ENFORCED
            and seconds > limit
            and self._is_plain(item)
            and report.passed
            and seconds > limit * (slower := pace())
        ):
            report.outcome = "failed"
            report.longrepr = (
                f"{item.nodeid} used {seconds:.1f} s of processor time, {limit * slower:.1f} are allowed here. Make it "
                "cheaper, or give it to the nightly tests but for one thin case (CONTRIBUTING.md)."
            )
        return report

    def _is_plain(self, item: pytest.Item) -> bool:
        whole = self._config.getoption("--faults") or "few"
        return whole == "few" and not any(item.get_closest_marker(mark) for mark in NOT_PLAIN)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the times, of all processes where there are several."""
        if report.when == "teardown":
            for name, value in report.user_properties:
                if name == "processor_s":
                    self._times[report.nodeid] = value
                elif name == "fixtures_s":
                    self._shared.update(value)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the dearest tests, and keep all times for the next run."""
        file = self._config.getoption("--processor-times")
        if file:
            Path(file).write_text(json.dumps({"tests": self._times, "fixtures": self._shared}, indent=0))
        if cache := getattr(self._config, "cache", None):
            known = cache.get(CACHED, {})
            cache.set(CACHED, known | {name: round(seconds, 2) for name, seconds in self._times.items()})
        if not file and self._total < LONG_S:
            return
        terminalreporter.section("processor time")
        dearest = sorted((self._times | dict(self._shared)).items(), key=lambda entry: -entry[1])[:DEAREST]
        for name, seconds in dearest:
            terminalreporter.write_line(f"{seconds:6.1f} s  {name}")
        tests, shared = sum(self._times.values()), sum(self._shared.values())
        rest = self._total - tests - shared
        terminalreporter.write_line(
            f"{self._total:6.0f} s in all: {tests:.0f} in tests, {shared:.0f} in fixtures of several tests, "
            f"{rest:.0f} in imports, collection and forked programs of windows"
        )


def seconds_by_file(config: pytest.Config) -> dict[str, float]:
    """Return the processor time of test files, as far as it is known from earlier runs or the list of dear tests."""
    cache = getattr(config, "cache", None)
    known: Mapping[str, float] = {name: entry["seconds"] for name, entry in listed().items()}
    known = {**known, **(cache.get(CACHED, {}) if cache else {})}
    sums: Counter[str] = Counter()
    for name, seconds in known.items():
        sums[name.partition("::")[0]] += seconds
    return dict(sums)


def estimate(file: Path) -> float:
    """Return the seconds of a file that no run has told of, by its length."""
    return file.stat().st_size / _BYTES_A_SECOND


def main() -> None:
    """Print the tests of the last run that used too much, as entries of the list of dear tests."""
    cached = Path(__file__).parents[1] / ".pytest_cache" / "v" / CACHED
    for name, seconds in sorted(json.loads(cached.read_text()).items(), key=lambda entry: -entry[1]):
        if seconds > LIMIT_S and name not in listed():
            print(f'[{json.dumps(name)}]\nseconds = {1.5 * seconds:.0f}\nwhy = ""\n')


if __name__ == "__main__":
    main()
