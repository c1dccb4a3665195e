"""The window over hours and under load: nothing leaks, and it stays smooth while eight runs write.

A soak is speeded: something is done ten times a second, where a person does something every few seconds.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from PySide6.QtCore import QObject, Qt, QTimer

from explorer.event_loop.stall_detector import Clock
from explorer.window import Window
from tests.real_window import real_window
from trainer import config
from trainer.store import Workspace

pytestmark = [pytest.mark.faults, pytest.mark.timeout(4_000)]

HERE = Path(__file__).parent
FRAME_MS = 50
JOBS, ROWS_A_SECOND = 8, 1_000


@pytest.fixture
def open_window(qtbot, qapp) -> Iterator[Callable[[Path], Window]]:
    with contextlib.ExitStack() as opened:
        yield lambda folder: opened.enter_context(real_window(folder))


@pytest.fixture
def writers() -> Iterator[Callable[..., subprocess.Popen]]:
    started: list[subprocess.Popen] = []

    def start(script: str, *words: object, nice: int = 10, stdout: int | None = None) -> subprocess.Popen:
        environment = os.environ | {"PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(HERE / script), *map(str, words)]
        # As a trainer on a processor does.
        process = subprocess.Popen(command, env=environment, stdout=stdout, preexec_fn=lambda: os.nice(nice))
        started.append(process)
        return started[-1]

    yield start
    for process in started:
        for child in psutil.Process(process.pid).children() if process.poll() is None else ():
            child.kill()
        process.kill()
        process.wait()


ACTS_AN_HOUR = 720
"""Of a person: one in five seconds. The soak does ten a second, so half an hour of it stands for 25 hours."""
SLOPE_MB_H = 5.0
NOISE_MB = 20.0
"""What the allocator and caches that are still filling may add once, whatever the time: seen over 1,200 acts."""


@dataclass(frozen=True)
class Wear:
    """The window's resources at the end of a soak test, compared to after the first third, when caches fill.

    Attributes:
        slope: MB an hour, at the pace of a person: the median of the slopes between all pairs of samples.
        growth: MB that were added.
        grown: What else there is more of, in words; empty if all is flat.
    """

    slope: float
    growth: float
    hours: float
    grown: tuple[str, ...]
    last: dict[str, object]


def wear(samples: list[dict]) -> Wear:
    later = samples[len(samples) // 3 :]
    hours = np.array([one["acts"] for one in later]) / ACTS_AN_HOUR
    rss = np.array([one["rss"] for one in later])
    i, j = np.triu_indices(len(later), 1)
    slope = float(np.median((rss[j] - rss[i]) / (hours[j] - hours[i])))
    growth = float(np.median(rss[-3:]) - np.median(rss[:3]))
    middle, last, grown = later[: len(later) // 2], later[-3:], []
    for name, more in (("threads", 1), ("fds", 2)):
        # The least of three: an answer or a thumbnail may be under way in any one moment.
        before, now = max(one[name] for one in middle), min(one[name] for one in last)
        if now > before + more:
            grown.append(f"{name} from {before} to {now}")
    # Below Python 3.12 a Qt that releases None once too often uses up thousands of them in a minute.
    first, now = later[0]["nones"], later[-1]["nones"]
    if first < 2**30 and first - now > max(5_000, 0.2 * first):
        grown.append(f"references to None fall from {first} to {now}")
    return Wear(slope, growth, float(hours[-1] - hours[0]), tuple(grown), later[-1])


def nones_an_act(samples: list[dict]) -> float:
    """Return references to None leaked per action, which rise with PySide 6.11 without using memory."""
    first, last = samples[len(samples) // 3], samples[-1]
    return (last["nones"] - first["nones"]) / (last["acts"] - first["acts"])


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(psutil.Process, "num_fds"), reason="counts open files as POSIX does")
def test_nothing_grows_while_a_run_trains(faults, two_small_runs: Path, writers) -> None:
    acts, longest_s = (18_000, 2_700) if faults.whole else (1_800, 300)
    workspace = Workspace(two_small_runs)
    live = workspace.runs.create(config.Run(name="live"))
    workspace.close()
    writers("fake_trainer.py", live, two_small_runs, 0.05, longest_s + 120)
    window = writers("window_soak.py", two_small_runs, live, acts, longest_s, nice=0, stdout=subprocess.PIPE)
    samples = [json.loads(line) for line in window.stdout]
    (two_small_runs.parent / "soak.json").write_text(json.dumps(samples))
    assert window.wait(60) == 0, (two_small_runs / "explorer.log").read_text()[-2_000:]
    found, seconds = wear(samples), samples[-1]["s"] - samples[0]["s"]
    flat = [
        found.growth < SLOPE_MB_H * found.hours + NOISE_MB if not faults.whole else found.slope < SLOPE_MB_H,
        not any(words.startswith("threads") for words in found.grown),
        not any(words.startswith("fds") for words in found.grown),
        not any(words.startswith("references") for words in found.grown),
        samples[-1]["caught"] == 0,
    ]
    words = (
        f"memory {found.slope:+.1f} MB an hour of a person ({found.growth:+.0f} MB in {found.hours:.1f} h),"
        f" {found.last['threads']} threads, {found.last['fds']} files, {samples[-1]['caught']} errors,"
        f" {nones_an_act(samples):+.0f} references to None an act"
    )
    print(words, samples[-1])
    faults.row(20, f"{samples[-1]['acts']:,} acts in {seconds:.0f} s while a run trains", words, len(flat), sum(flat))
    assert all(flat), (words, found, samples)


class Frames(QObject):
    """Measures how late frames are at 60 per second."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu: list[float] = []
        self.own: list[float] = []
        self._clock = Clock()
        self._timer = QTimer(self, interval=16, timerType=Qt.TimerType.PreciseTimer, timeout=self._beat)
        self._timer.start()

    def _beat(self) -> None:
        wall, cpu, waited = self._clock.passed()
        self._clock.start()
        self.cpu.append(cpu)
        self.own.append(max(0.0, wall - waited - 16))

    def p99(self) -> tuple[float, float]:
        """Return the 99th percentiles of CPU time, and of all but the time without a processor, in ms."""
        return float(np.percentile(self.cpu, 99)), float(np.percentile(self.own, 99))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")
@pytest.mark.nightly
def test_the_window_is_smooth_while_eight_runs_write(qtbot, faults, tmp_path: Path, open_window, writers):
    seconds = {1: 600, 10: 10}.get(faults.part, 4)
    workspace = Workspace(tmp_path / "workspace")
    runs = [workspace.runs.create(config.Run(name=f"job {number}")) for number in range(JOBS)]
    window = open_window(workspace.folder)
    writing = writers("fake_writer.py", workspace.folder, seconds, ROWS_A_SECOND, *runs)
    qtbot.waitUntil(lambda: sum(run.status == "running" for run in window.services.jobs.runs) == JOBS, timeout=60_000)
    view = window.pages.views["runs"]
    view.table.choose(runs)
    qtbot.wait(1_000)
    frames = Frames()
    qtbot.waitUntil(lambda: writing.poll() is not None, timeout=1_000 * (seconds + 120))
    frames._timer.stop()
    cpu, own = frames.p99()
    assert writing.returncode == 0
    rows = 0
    for run in runs:
        steps = workspace.results.series(run, "train/loss")[0].tolist()
        assert steps == list(range(1, len(steps) + 1)), "a row was lost or came twice"
        rows += 4 * len(steps)
    workspace.close()
    rate = rows / JOBS / seconds
    frame_ms = 1000 * faults.within(FRAME_MS / 1000)
    good = sum(ms < frame_ms for ms in frames.cpu)
    words = f"frame p99 {cpu:.0f} ms computing, {own:.0f} ms with waiting; {rate:,.0f} rows/s each, none lost"
    faults.row(13, f"{JOBS} runs write while their curves are drawn, {seconds} s", words, len(frames.cpu), good)
    assert cpu < frame_ms, words
    assert window.hooks.caught_count == 0
