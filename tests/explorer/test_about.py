"""The dialog about the program: its version, and the libraries that are installed with their licenses."""

import importlib.metadata
import json

from explorer.window.about_sheet import AboutSheet
from tests.explorer.widgets import show_widget
from trainer.__main__ import main
from trainer.distribution.installed import installed_packages


def test_every_direct_dependency_is_told_with_its_installed_version():
    told = {one.name.lower().replace("_", "-"): one for one in installed_packages()}
    for name in ("numpy", "torch", "sqlalchemy", "pyside6-essentials", "markupsafe"):  # which comes through torch
        assert told[name].version == importlib.metadata.version(name)
    assert "LGPL" in told["pyside6-essentials"].license
    assert next(iter(told)) == "contrastive-explorer"
    assert told["contrastive-explorer"].license == "MIT"


def test_the_dialog_shows_and_copies_them(dressed, background, qtbot):
    sheet = show_widget(qtbot, AboutSheet(background))
    qtbot.waitUntil(lambda: sheet.table.rowCount() > 20)
    shown = {sheet.table.item(row, 0).text() for row in range(sheet.table.rowCount())}
    assert {"contrastive-explorer", "numpy"} <= shown
    assert f"numpy {importlib.metadata.version('numpy')}: " in sheet.text()


def test_the_command_tells_the_same(capsys, tmp_path):
    assert main(["doctor", "--licenses", "--json", "--workspace", str(tmp_path / "ws")]) == 0
    told = {one["name"]: one["version"] for one in json.loads(capsys.readouterr().out)}
    assert told == {one.name: one.version for one in installed_packages()}
    assert not (tmp_path / "ws").exists()
