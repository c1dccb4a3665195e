"""The window of a workspace whose database was lost or replaced tells of the run folders, and how they come back."""

import shlex
from pathlib import Path

from pytestqt.qtbot import QtBot

from explorer.views import VIEWS
from tests.nightly import few_plain
from trainer import config
from trainer.__main__ import main
from trainer.store import Workspace


@few_plain(1, "lost", [True, False])
def test_run_folders_without_a_row_are_told_with_a_command_that_brings_them_back(
    lost: bool, window_of, qtbot: QtBot, tmp_path: Path
) -> None:
    workspace = Workspace(tmp_path / "a space")
    workspace.runs.create(config.Run(name="first"), status="stopped")
    folder = workspace.runs.get(1).folder
    workspace.close()
    if lost:
        for path in workspace.folder.glob("explorer.db*"):
            path.unlink()
    window = window_of(workspace.folder, [place for place in VIEWS if place.name == "runs"])
    jobs, banner = window.services.jobs, window.banner
    if lost:
        qtbot.waitUntil(lambda: banner.isVisible() and "no row" in banner.message.text(), timeout=20_000)
        words, command = banner.message.text().split(" Rebuild it: ")
        assert words == f"A run folder has no row in the database ({folder.name}): it was lost or replaced."
        assert main(shlex.split(command)[1:]) in (0, 1)
        jobs.poll()
    qtbot.waitUntil(lambda: [run.name for run in jobs.runs] == ["first"], timeout=20_000)
    assert lost or "no row" not in banner.message.text()
