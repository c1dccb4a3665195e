"""Processor time of each test, with the processes that it starts.

A second of waiting costs nobody anything, a second of processor time is paid for at every change: so a test of the
plain suite that uses more than `LIMIT_S` belongs to `dear_tests.toml` with its reason. A run fails if a test uses more
than `MARGIN` times as much, and does so again alone. Imports and shared fixtures are counted apart, because whichever
test comes first would pay for them; a process counts for the test or fixture that started it, whenever it ends.

The times are kept in pytest's cache: by them the next run begins with the files that take longest.
"""

import contextlib
import importlib.machinery
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from tests import fork_server
from tests.child_times import ChildTimes

LIMIT_S: Final = 4.0
DEAR: Final = Path(__file__).with_name("dear_tests.toml")
MARGIN: Final = 2.5
"""A test fails above so many limits. Beside 18 busy processes on 2 cores collecting the tests used 21 s instead of 16,
while `pace` saw nothing: its loop fits into the cache, which other processes empty."""
DEAREST: Final = 15
"""Tests that a long run prints."""
LONG_S: Final = 60.0
CACHED: Final = "processor_time/tests"
NOT_PLAIN: Final = ("nightly", "timed", "ray", "gpu", "shared")
ALONE: Final = ("-n", "0", "-q", "-p", "no:cacheprovider")
"""How a test is run again that used too much: what compiles or trains once for all sessions has done so then."""
_AGAIN: Final = "PROCESSOR_TIME_AGAIN"
_OF_FIXTURE: Final = ")"
"""How the name of a fixture ends, and none of a test does."""
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


def above_limit(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the tests that used too much, and how much was allowed here."""
    entries, slower = listed(), pace()
    limits = {name: MARGIN * slower * entries.get(name, {}).get("seconds", LIMIT_S) for name in seconds}
    return {name: limit for name, limit in limits.items() if seconds[name] > limit}


class ProcessorTimes:
    """Measures every test, reports and keeps the times of a run, and fails it for dear tests that are not listed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._children = ChildTimes()
        self._apart = self._began = 0.0
        self._total = 0.0
        self._importing = 0
        self._times: Counter[str] = Counter()
        self._plain: set[str] = set()
        self._fixtures: Counter[str] = Counter()
        self._shared: Counter[str] = Counter()
        self._too_dear: dict[str, float] = {}
        self._exec_module = importlib.machinery.SourceFileLoader.exec_module
        self._finish = pytest.FixtureDef.finish

    def pytest_sessionstart(self) -> None:
        """Count imports, shared fixtures and children apart from now on."""

        def exec_module(loader: Any, module: ModuleType) -> None:
            self._importing += 1
            began = time.process_time()
            try:
                self._exec_module(loader, module)
            finally:
                self._importing -= 1
                if not self._importing:
                    self._apart += time.process_time() - began

        def finish(fixturedef: pytest.FixtureDef[Any], request: Any) -> None:
            with self._counted_apart(fixturedef):
                self._finish(fixturedef, request)

        importlib.machinery.SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]
        pytest.FixtureDef.finish = finish  # type: ignore[method-assign]
        self._children.begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Restore what was replaced, tell the first process what this one has used, and judge the run there."""
        importlib.machinery.SourceFileLoader.exec_module = self._exec_module  # type: ignore[method-assign]
        pytest.FixtureDef.finish = self._finish  # type: ignore[method-assign]
        fork_server.close()
        self._children.end()
        self._total += used()
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["processor_s"] = self._total
            self._config.workeroutput["late_s"] = dict(self._children.by_owner)
            return
        self._add_late(self._children.by_owner)
        if os.environ.get(_AGAIN) is None and session.exitstatus == pytest.ExitCode.OK:
            self._too_dear = self._used_again(above_limit({name: self._times[name] for name in self._plain}))
            if self._too_dear:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a process of xdist has used."""
        output = getattr(node, "workeroutput", {})
        self._total += output.get("processor_s", 0.0)
        self._add_late(output.get("late_s", {}))

    def _add_late(self, seconds: Mapping[str, float]) -> None:
        """Add what children used that ended after the test or fixture that started them."""
        for owner, used_late in seconds.items():
            (self._shared if owner.endswith(_OF_FIXTURE) else self._times)[owner] += used_late

    @contextlib.contextmanager
    def _counted_apart(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Count what a fixture of several tests uses for the fixture."""
        if fixturedef.scope == "function":
            yield
            return
        began, apart, owner = used(), self._seconds_apart(), self._children.owner
        name = f"{fixturedef.argname} ({fixturedef.baseid}{_OF_FIXTURE}"
        self._children.pay(name)
        try:
            yield
        finally:
            self._children.pay(owner)
            seconds = used() - began - (self._seconds_apart() - apart)
            self._apart += seconds
            self._fixtures[name] += seconds

    def _seconds_apart(self) -> float:
        return self._apart + self._children.foreign

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Count a fixture of several tests apart."""
        with self._counted_apart(fixturedef):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Begin to count."""
        self._children.pay(item.nodeid)
        self._began = used() - self._seconds_apart()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Give the time to the last report of a test."""
        if call.when != "teardown":
            return
        seconds = used() - self._seconds_apart() - self._began + self._children.pop(item.nodeid)
        item.user_properties.append(("processor_s", seconds))
        item.user_properties.append(("plain", self._is_plain(item)))
        if self._fixtures:
            item.user_properties.append(("fixtures_s", dict(self._fixtures)))
            self._fixtures.clear()

    def _is_plain(self, item: pytest.Item) -> bool:
        faults = self._config.getoption("--faults") or "few"
        return faults == "few" and not any(item.get_closest_marker(mark) for mark in NOT_PLAIN)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the times, of all processes where there are several."""
        if report.when == "teardown":
            properties = dict(report.user_properties)
            self._times[report.nodeid] += properties.get("processor_s", 0.0)
            self._shared.update(properties.get("fixtures_s", {}))
            if properties.get("plain"):
                self._plain.add(report.nodeid)

    def _used_again(self, limits: Mapping[str, float]) -> dict[str, float]:
        """Run the tests alone, and return the seconds of those that are above their limits again."""
        if not limits:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "times.json"
            command = [sys.executable, "-m", "pytest", *ALONE, "--processor-times", str(file), *limits]
            with contextlib.suppress(subprocess.TimeoutExpired):
                environment = os.environ | {_AGAIN: "1"}
                subprocess.run(command, cwd=self._config.rootpath, env=environment, check=False, timeout=600)
            seconds = json.loads(file.read_text())["tests"] if file.exists() else {}
        return {name: seconds[name] for name, limit in limits.items() if seconds.get(name, 0.0) > limit}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the dearest tests, and keep all times for the next run."""
        file = self._config.getoption("--processor-times")
        if file:
            Path(file).write_text(json.dumps({"tests": self._times, "fixtures": self._shared}, indent=0))
        if cache := getattr(self._config, "cache", None):
            known = cache.get(CACHED, {})
            cache.set(CACHED, known | {name: round(seconds, 2) for name, seconds in self._times.items()})
        for name, seconds in self._too_dear.items():
            terminalreporter.section("too dear")
            terminalreporter.write_line(
                f"{name} used {self._times[name]:.1f} s of processor time, and {seconds:.1f} s alone. Make it cheaper, "
                "or give it to the nightly tests but for one thin case (CONTRIBUTING.md)."
            )
        if not file and self._total < LONG_S:
            return
        terminalreporter.section("processor time")
        dearest = sorted((self._times + self._shared).items(), key=lambda entry: -entry[1])[:DEAREST]
        for name, seconds in dearest:
            terminalreporter.write_line(f"{seconds:6.1f} s  {name}")
        tests, shared = sum(self._times.values()), sum(self._shared.values())
        rest = self._total - tests - shared
        terminalreporter.write_line(
            f"{self._total:6.0f} s in all: {tests:.0f} in tests, {shared:.0f} in fixtures of several tests, "
            f"{rest:.0f} in imports and collection"
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
