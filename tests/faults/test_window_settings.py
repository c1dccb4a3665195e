"""A window opens whatever stands in the file of what it remembered."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.garbage import Garbage
from explorer.hooks import Hooks
from explorer.settings import FILE
from explorer.window import Window

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_800)]

JUNK = [7, -1, 10**6, 10**400, 0.5, True, None, "junk", "", [], [1, "x", None, {}], {}, {"a": [1]}, [[]], "AAAA"]
SELECTED = ("run_a", "run_b", "step", "step_b", "dataset", "pairs", "queries", "view")


def keys() -> list[str]:
    """Everything the window remembers, as the code names it."""
    code = "".join(file.read_text(encoding="utf-8") for file in Path("explorer").rglob("*.py"))
    found = set(re.findall(r'(?:value|state|set|set_state)\(\s*"([a-z_]+/[a-z_]+)"', code))
    named = set(re.findall(r'_KEY(?:: Final)? = "([a-z_]+/[a-z_]+)"', code))
    assert len(found | named) > 25
    return sorted(found | named)


def test_a_window_opens_whatever_was_remembered(qtbot, faults, tmp_path: Path) -> None:
    tried, good = faults.times(20), 0
    names, wrong = keys(), []
    theme.theme().apply(QApplication.instance(), "light")
    for seed in range(tried):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        selection = {name: rng.choice(JUNK) for name in SELECTED} if seed % 2 == 0 else rng.choice(JUNK)
        remembered = {name: rng.choice(JUNK) for name in names} | {"selection": selection}
        (folder / FILE).write_text(json.dumps(remembered))
        hooks, garbage = Hooks(folder), Garbage()
        hooks.install()
        window = Window(folder, hooks)
        with qtbot.waitSignal(window.ready, timeout=120_000):
            window.show()
        whole = set(window.pages.views) == set(window.pages._places)
        window.close()
        if whole and not hooks.caught_count:
            good += 1
        else:
            wrong.append(f"seed {seed}: {hooks.last_lines()}")
        garbage.close()
        hooks.remove()
        window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    faults.row(22, "nonsense under every key of what was remembered", "the window opens with every view", tried, good)
    assert good == tried, wrong
