"""A window opens with any content of its settings file."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.state.settings import FILE
from tests.real_window import real_window

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_800)]

JUNK = [7, -1, 10**6, 10**400, 0.5, True, None, "junk", "", [], [1, "x", None, {}], {}, {"a": [1]}, [[]], "AAAA"]
SELECTED = ("run_a", "run_b", "step", "step_b", "dataset", "pairs", "queries", "view")


def keys() -> list[str]:
    """Return all settings keys in the code."""
    code = "".join(file.read_text(encoding="utf-8") for file in Path("explorer").rglob("*.py"))
    found = set(re.findall(r'(?:value|state|set|set_state)\(\s*"([a-z_]+/[a-z_]+)"', code))
    named = set(re.findall(r'_KEY(?:: Final)? = "([a-z_]+/[a-z_]+)"', code))
    assert len(found | named) > 25
    return sorted(found | named)


def test_a_window_opens_whatever_was_remembered(qtbot, faults, tmp_path: Path) -> None:
    tried, good = faults.times(20), 0
    names, wrong = keys(), []
    for seed in range(tried):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        selection = {name: rng.choice(JUNK) for name in SELECTED} if seed % 2 == 0 else rng.choice(JUNK)
        remembered = {name: rng.choice(JUNK) for name in names} | {"selection": selection}
        (folder / FILE).write_text(json.dumps(remembered))
        with real_window(folder) as window:
            whole = set(window.pages.views) == set(window.pages.places)
            window.close()
            if whole and not window.hooks.caught_count:
                good += 1
            else:
                wrong.append(f"seed {seed}: {window.hooks.last_lines()}")
    faults.row(22, "nonsense under every key of what was remembered", "the window opens with every view", tried, good)
    assert good == tried, wrong


START = '''
import json, sys
from PySide6.QtCore import QTimer
from explorer import __main__ as program
from explorer.views import ViewEntry
from explorer.window import Window

load, begin, told = ViewEntry.load, Window.begin, {}

def loaded(place):
    """The map breaks when a certain thing was remembered, as a bug of ours might."""
    view = load(place)
    if place.name != "map":
        return view

    class Fragile(view):
        def build(self):
            if self.context.settings.value("map/poison", "") == "poison":
                raise ValueError("poisoned by what was remembered")
            return super().build()

    return Fragile

def look(window):
    told.update(
        banner=window.banner.message.text(),
        views=sorted(window.pages.views),
        places=sorted(window.pages.places),
        runs=[run.name for run in window.services.jobs.runs],
        view=window.selection.view,
        error=window._failure.happened.text() if window._failure.isVisible() else "",
    )
    window.close()

def begin_and_look(window):
    window.ready.connect(lambda: QTimer.singleShot(1500, lambda: look(window)))
    begin(window)

ViewEntry.load, Window.begin = loaded, begin_and_look
status = program.main(sys.argv[1:])
print(json.dumps(told))
sys.exit(status)
'''
POISON = json.dumps({"map/poison": "poison", "selection": {"view": "map"}})
DAMAGED = '{"window/geometry": "AAAA", "selection": {"view": "ma'


def start(folder: Path, *arguments: str) -> dict:
    """Return what a window of this workspace shows 1.5 s after its start."""
    words = ["--workspace", str(folder), *arguments]
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    ended = subprocess.run(
        [sys.executable, "-c", START, *words], capture_output=True, text=True, timeout=300, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.nightly  # in the plain suite test_start.py starts with --safe, and test_window.py has a broken view
def test_safe_mode_opens_where_the_normal_start_tells_an_error(faults, two_small_runs: Path) -> None:
    wrong = []
    for remembered in (POISON, DAMAGED) if faults.whole else (POISON,):
        file = two_small_runs / FILE
        file.write_text(remembered)
        safe = start(two_small_runs, "--safe")
        whole = safe["views"] == safe["places"] and len(safe["runs"]) == 2
        untouched = file.read_text() == remembered and safe["view"] != "map"
        if not (whole and untouched and "safe mode" in safe["banner"] and not safe["error"]):
            wrong.append(safe)
        normal = start(two_small_runs)
        missing = set(normal["places"]) - set(normal["views"])
        if remembered == POISON:
            told = missing == {"map"} and "poisoned by what was remembered" in normal["error"]
        else:
            told = not missing and "could not be read" in normal["banner"]
        if not (told and len(normal["runs"]) == 2):
            wrong.append(normal)
    tried = 4 if faults.whole else 2
    words = "told by a normal start, whose other views work; --safe opens all, with every run, and changes nothing"
    faults.row(22, "what was remembered breaks a view or is damaged", words, tried, tried - len(wrong))
    assert not wrong
