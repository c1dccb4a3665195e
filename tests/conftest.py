"""Shared by all tests: the folder of real data sets next to the checkout, or a reason to skip."""

from __future__ import annotations

import atexit
import builtins
import functools
import gc
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis
import pytest
from filelock import FileLock

from tests import changed, compiled_once, fork_server, processor_time
from tests import trained_once as trained_once_
from trainer.analysis.compiled import cache_folder

if TYPE_CHECKING:
    from trainer.store import Workspace

# CI tries the same examples every time, so that what lands does not depend on luck; at a desk they are new each time.
# On a busy computer the first examples may take seconds: how slow it is says nothing about a test.
_ANY_PACE: dict[str, Any] = {"suppress_health_check": [hypothesis.HealthCheck.too_slow], "deadline": None}
hypothesis.settings.register_profile("nightly", **_ANY_PACE)
hypothesis.settings.register_profile("desk", max_examples=30, **_ANY_PACE)
hypothesis.settings.register_profile("ci", max_examples=30, derandomize=True, **_ANY_PACE)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")

# One process a core: threads of torch would only wait for each other.
if os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# numba sets OpenMP's threads to its own number, and what trains afterwards in this process would have other bits.
if threads := os.environ.get("OMP_NUM_THREADS"):
    os.environ.setdefault("NUMBA_NUM_THREADS", threads)
# scikit-learn and UMAP set these at import; commands with other variables than the server's would no longer be forked.
os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "True")
os.environ.setdefault("KMP_INIT_AT_FORK", "FALSE")
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
# A disk syncs a file in ten milliseconds, and a run of twelve steps syncs 170: in memory tests do not wait for it.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= 6 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Set before any Qt import: tests never need a screen, and a window of theirs must not pop up on a person's.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


# Hundreds of processes are started: where bytecode is not written, each compiles torch and this program again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Files of tests and what they import are no garbage: looking for some took two of nine seconds in every process.
gc.disable()
# `older_is_no_garbage` freezes modules; Triton would list a thousand objects that it misses when the process ends.
atexit.register(gc.unfreeze)


ROOT = Path(__file__).parents[1]
_IMPORT = builtins.__import__
"""PySide6 replaces it by a function that reads the source of every module that is imported from then on."""
_SELECTED = pytest.StashKey[Sequence[str]]()
_SENTENCE = pytest.StashKey[str]()
T = TypeVar("T")

LEAST_WAIT_MS = 90_000
"""A wait that succeeds ends at once; one that ends early beside other work tells nothing about the program."""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """Return an empty workspace."""
    from trainer.store import Workspace

    opened = Workspace(tmp_path / "workspace")
    yield opened
    opened.close()


@pytest.fixture(autouse=True, scope="session")
def patient_qt() -> Iterator[None]:
    """Extend waits for signals and conditions to `LEAST_WAIT_MS`, so that none depends on a quiet machine."""
    from pytestqt.qtbot import QtBot

    patch = pytest.MonkeyPatch()
    patch.setattr(QtBot, "waitUntil", _wait_until)
    for name in ("waitUntil", "waitSignal", "waitSignals", "waitExposed"):
        patch.setattr(QtBot, name, _patient(getattr(QtBot, name)))
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="session")
def own_configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the tests, and the processes they start, a user's configuration of their own.

    All processes of the tests have one key: a workspace that one of them fills once is everybody's own.
    """
    from trainer.config import default_paths
    from trainer.store import owner_key

    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("configuration") / "contrastive-explorer"
    folder.mkdir(mode=0o700)
    with FileLock(_whole(tmp_path_factory) / "key.lock"):
        key = _whole(tmp_path_factory) / "key"
        if not key.exists():
            key.write_bytes(os.urandom(owner_key.LENGTH))
            key.chmod(0o600)
        shutil.copy(key, folder / owner_key.NAME)
    patch.setenv("XDG_CONFIG_HOME", str(folder.parent))
    patch.setattr(default_paths, "user_folder", lambda: folder)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def pointer_beside_all_windows() -> None:
    """Take the pointer from where an earlier test left it: rows under it keep their order, and what it is on glows."""
    qt = sys.modules.get("PySide6.QtGui")
    if qt is not None and qt.QGuiApplication.instance() is not None:
        qt.QCursor.setPos(-100, -100)


@pytest.fixture(autouse=True, scope="session")
def keep_pace() -> Iterator[None]:
    """Prevent training on the CPU from lowering the test process's priority, which would slow all later tests."""
    patch, here, nice = pytest.MonkeyPatch(), os.getpid(), getattr(os, "nice", None)
    if nice:
        patch.setattr(os, "nice", lambda more: nice(0 if os.getpid() == here else more))
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="session")
def forked_programs() -> Iterator[None]:
    """Fork `python -m trainer ...` from a process that has imported it, which spares each command seconds."""
    with fork_server.forking():
        yield


@pytest.fixture(autouse=True, scope="module")
def older_is_no_garbage() -> None:
    """Exclude imports and what earlier files left from garbage collection: looking through them takes two seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def qapp(qapp: Any) -> Iterator[Any]:
    """Return the application, whose child processes are forked as well."""
    with fork_server.forking_of_qt():
        yield qapp


@pytest.fixture(scope="session")
def cold_models() -> Iterator[Callable[..., None]]:
    """Start no model process in advance, which would import torch or umap in vain; return what would do it."""
    from explorer.model_client.client import ModelClient

    patch, warm_up = pytest.MonkeyPatch(), ModelClient.warm_up
    patch.setattr(ModelClient, "warm_up", lambda *_, **__: None)
    yield warm_up
    patch.undo()


def _whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder of all processes of the tests."""
    here = tmp_path_factory.getbasetemp()
    return here.parent if os.environ.get("PYTEST_XDIST_WORKER") else here


def _wait_until(bot: Any, callback: Callable[[], object], *, timeout: int) -> None:
    """Wait as pytest-qt does, but look less often at what takes long: a look every 10 ms is a fifth of a core.

    A look at all buttons of a window takes milliseconds itself: it is followed by a wait five times as long.
    """
    began = time.monotonic()
    while True:
        error, spent = None, time.thread_time()
        try:
            result = callback()
        except AssertionError as raised:
            result, error = False, raised
        if result not in (None, True, False):
            raise ValueError(f"waitUntil() callback must return None, True or False, returned {result!r}")
        if result in (None, True):
            return
        waited = time.monotonic() - began
        if waited * 1000 > timeout:
            raise TimeoutError(f"waitUntil timed out in {timeout} milliseconds") from error
        bot.wait(max(10 if waited < 1 else 50, min(250, round(5000 * (time.thread_time() - spent)))))


def _patient(wait: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(wait)
    def patient(*args: Any, timeout: int = LEAST_WAIT_MS, **kwargs: Any) -> Any:
        # Without an error the wait is a look whether something happens, and its end is the answer.
        looks = kwargs.get("raising") is False
        return wait(*args, timeout=timeout if looks else max(timeout, LEAST_WAIT_MS), **kwargs)

    return patient


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real data sets; tests that use it are skipped without it."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets (../shared/data) are not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Any]:
    """Return what gives an own copy of the workspace that a function trains in `folder / "workspace"`.

    It is trained once for all sessions (`trained_once.py`); data beside the workspace stay where they were made.
    """
    from trainer.store import Workspace

    def copied(name: str, fill: Callable[[Path], object]) -> Workspace:
        made = trained_once_.folder_of(fill, name) / "workspace"
        workspace = Workspace(shutil.copytree(made, tmp_path_factory.mktemp(name) / "a workspace"))
        workspace.adopt()
        return workspace

    return copied


@pytest.fixture
def umap_as_pca(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute PCA where UMAP is asked for, which has its own tests and may take half a minute to compile."""
    from trainer.analysis.projection import pca
    from trainer.projection import fitting

    monkeypatch.setattr(fitting, "umap_layout", lambda vectors, **_: pca(vectors, 2).astype("float32"))


@dataclass(frozen=True)
class Faults:
    """The number of tries of a fault, and the reporting of its row of the fault table.

    Attributes:
        request: The test that tries it.
        part: Of how many tries that the promise names one is made: 1 is all of them.
    """

    request: pytest.FixtureRequest
    part: int

    @property
    def whole(self) -> bool:
        """Whether all tries run, on a dedicated machine: only then do times count."""
        return self.part == 1

    def times(self, full: int) -> int:
        """Return the number of tries: the requested part of `full`, at least one."""
        return max(1, round(full / self.part))

    def every(self, tenth: int) -> int:
        """Return the step through many cases: 1 for all, `tenth` for a tenth of them, ten times that for a few."""
        return {1: 1, 10: tenth}.get(self.part, 10 * tenth)

    def thin(self, cases: Sequence[T], step: int) -> list[T]:
        """Return all cases, but each `step`-th alone in the plain suite, which is paid for at every change."""
        return list(cases[:: 1 if self.part <= 10 else step])

    def within(self, seconds: float) -> float:
        """Return the time limit: enforced if all tries run on a quiet machine, otherwise generous.

        A wait for it ends at once when it comes, and a minute and a half later at most.
        """
        return seconds if self.whole else max(seconds, LEAST_WAIT_MS / 1000)

    def row(self, promise: int | str, fault: str, result: str, tried: int, good: int) -> None:
        """Report a row of the table; a row whose `good` is below `tried` is printed unchanged.

        Args:
            promise: Its number in the first table of the README; `S` and a number in that of a stranger's files.
            fault: What is broken on purpose.
            result: What must be true then.
            tried: How often.
            good: How often it was true.
        """
        # Plain numbers: a process of xdist cannot send those of numpy.
        self.request.node.user_properties.append(("fault", (promise, fault, result, int(tried), int(good))))


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> Faults:
    """Return the tries of a fault and its row in the README's fault table."""
    asked = request.config.getoption("--faults") or _faults_by_mark(request.config.getoption("-m"))
    return Faults(request, FAULTS[asked])


FAULTS = {"few": 100, "tenth": 10, "full": 1}


def _faults_by_mark(expression: str) -> str:
    """Return a tenth if the marks select faults (`-m faults`), a few with all other tests."""
    return "tenth" if re.search(r"(?<!not )\bfaults\b", expression) else "few"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", choices=tuple(FAULTS), help="how often each fault is tried; -m faults: a tenth")
    parser.addoption("--fault-table", metavar="FILE", help="write the fault table of this run as Markdown")
    parser.addoption(
        "--changed",
        metavar="COMMIT",
        nargs="?",
        const="main",
        help="run what changes since it can affect, nearest",
    )
    parser.addoption("--changed-s", metavar="SECONDS", type=float, default=60.0, help="of processor time (default: 60)")
    parser.addoption("--processor-times", metavar="FILE", help="write each test's seconds of processor time as JSON")


@pytest.hookimpl(trylast=True)  # pytest-qt imports PySide6 here
def pytest_configure(config: pytest.Config) -> None:
    builtins.__import__ = _IMPORT
    if not hasattr(config, "workerinput"):
        compiled_once.share()
    if since := config.getoption("--changed"):
        told = getattr(config, "workerinput", {}).get("selected")
        chosen = told or changed.select(config, since, config.getoption("--changed-s"))
        config.stash[_SELECTED] = chosen if told else chosen.files
        config.stash[_SENTENCE] = "" if told else chosen.sentence
    config.pluginmanager.register(processor_time.ProcessorTimes(config), "processor_time")
    if not re.search(r"quick|not nightly", config.getoption("-m")):
        hypothesis.settings.load_profile("nightly")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is run of what changed."""
    return config.stash.get(_SENTENCE, None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    # A test has a report for each phase; tries of several tests that are called alike are one row.
    called = [report for report in reports if getattr(report, "when", "") == "call"]
    counts: Counter[tuple[Any, ...]] = Counter()
    good: Counter[tuple[Any, ...]] = Counter()
    for name, (*row, tried, survived) in (told for report in called for told in report.user_properties):
        if name == "fault":
            counts[tuple(row)] += tried
            good[tuple(row)] += survived
    rows = sorted(
        ((*row, counts[row], good[row]) for row in counts),
        key=lambda row: (isinstance(row[0], str), int(str(row[0]).removeprefix("S")), *row[1:]),
    )
    if not rows:
        return
    lines = ["| promise | fault | result | tried | good |", "|---|---|---|---|---|"]
    lines += [f"| {promise} | {fault} | {result} | {n:,} | {good:,} |" for promise, fault, result, n, good in rows]
    terminalreporter.section("fault table")
    terminalreporter.write_line("\n".join(lines))
    if file := config.getoption("--fault-table"):
        Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")


# -- the quick tests ---------------------------------------------------------------------------------------------

SLOW_ROOMS = ("faults", "journeys")
SLOW_MARKS = ("slow", "faults", "timed", "nightly", "shared", "gpu")
RULES = "tests/rules/"
WINDOW = ("qapp", "qtbot")
"""Fixtures that make a window possible."""
PROCESSES = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")
"""What Python tells its audit hooks when a process is started."""

_now_quick = False


def is_quick(item: pytest.Item) -> bool:
    """Return whether a test belongs to `-m quick`: without a window, a slow mark, or a slow folder."""
    slow = _room(item) in SLOW_ROOMS or any(mark.name in SLOW_MARKS for mark in item.iter_markers())
    return not slow and not set(WINDOW) & set(getattr(item, "fixturenames", ()))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one process more than there are cores: tests wait for windows and children, and each imports for 30 s."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (not _quick_alone(config)) + (cores or 1)


def _quick_alone(config: pytest.Config) -> bool:
    return config.getoption("-m") == "quick"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test that is selected before they are imported, which may take longer than they do."""
    selected = config.stash.get(_SELECTED, None)
    if selected is not None and collection_path.name.startswith("test_"):
        return collection_path.relative_to(ROOT).as_posix() not in selected or None
    if collection_path.is_dir():
        return (_quick_alone(config) and collection_path.name in SLOW_ROOMS) or None
    left_out = SLOW_MARKS if _quick_alone(config) else _excluded_marks(config.getoption("-m"))
    source = collection_path.read_text(encoding="utf-8") if left_out and collection_path.suffix == ".py" else ""
    marks = source.partition("\npytestmark = ")[2].partition("\n\n")[0]
    return any(f"mark.{mark}" in marks for mark in left_out) or None


def _excluded_marks(expression: str) -> list[str]:
    """Return the marks that no selected test has, where the expression does nothing but exclude."""
    excludes = re.fullmatch(r"not \w+( and not \w+)*", expression)
    return re.findall(r"not (\w+)", expression) if excludes else []


@pytest.hookimpl(tryfirst=True)  # before the marks of the command line choose
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A long file that is begun last would keep one process at work and the others idle.
    seconds = _seconds_by_file(config)
    files = {item.nodeid.partition("::")[0]: item.path for item in items}
    seconds |= {name: processor_time.estimate(path) for name, path in files.items() if name not in seconds}
    items.sort(key=lambda item: (-seconds[item.nodeid.partition("::")[0]], item.nodeid.partition("::")[0]))
    for item in items:
        if is_quick(item):
            item.add_marker(pytest.mark.quick)
    gc.freeze()
    gc.enable()


def _seconds_by_file(config: pytest.Config) -> dict[str, float]:
    """Return what the first process knows, because all must have the same order."""
    told = getattr(config, "workerinput", {}).get("seconds_by_file")
    return dict(told) if told is not None else processor_time.seconds_by_file(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of xdist how long the files take."""
    node.workerinput["selected"] = node.config.stash.get(_SELECTED, None)
    node.workerinput["seconds_by_file"] = processor_time.seconds_by_file(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all rules to one process, which parses the sources once for all, and of other tests a file to each."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class RulesTogether(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return RULES if nodeid.startswith(RULES) else super()._split_scope(nodeid)

    return RulesTogether(config, log)


def _room(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    global _now_quick
    _now_quick = item.get_closest_marker("quick") is not None
    fork_server.enabled = item.get_closest_marker("real_process") is None
    try:
        return (yield)
    finally:
        _now_quick = False
        windowed = _room(item) == "explorer" or set(WINDOW) & set(getattr(item, "fixturenames", ()))
        stays = nextitem is not None and _room(nextitem) == "explorer"  # its tests collect by themselves
        if windowed and not stays:
            # Otherwise a thread of a later test collects the window: it destroys timers of this thread, which crashes.
            gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Delete the windows and their parts that a file has left: whatever is dressed later would dress them, too."""
    try:
        return (yield)
    finally:
        widgets = sys.modules.get("PySide6.QtWidgets")
        if widgets and widgets.QApplication.instance() and _ends_file(item, nextitem):
            from PySide6.QtCore import QEvent

            for left in widgets.QApplication.topLevelWidgets():
                # Three files left 448 menus of pyqtgraph and 1,900 parts of tabs; each change of the theme dresses all.
                tabs = isinstance(left, widgets.QTabWidget | widgets.QTabBar)
                if isinstance(left, widgets.QMainWindow) or (
                    (tabs or type(left) is widgets.QMenu) and left.parent() is None
                ):
                    left.deleteLater()
            widgets.QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def _ends_file(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    return nextitem is None or nextitem.path != item.path


def _refuse_processes(event: str, _: object) -> None:
    if _now_quick and event in PROCESSES:
        pytest.fail("A quick test starts no process: mark this one slow (tests/conftest.py).")


sys.addaudithook(_refuse_processes)
