"""The pictures of a workspace that was moved are found, in the window and by a command."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.models.thumbnails import Thumbnails
from explorer.views.selected import PairTable
from tests.explorer.widgets import add_widget
from trainer.__main__ import main
from trainer.store import Workspace, read_snapshot, write_snapshot

pytestmark = pytest.mark.slow


@pytest.fixture
def moved(two_runs: tuple[int, int], tmp_path: Path) -> int:
    """Return a run whose images lie in its workspace, which was moved to the place of `make_context`."""
    first = Workspace((tmp_path / "workspace").rename(tmp_path / "first"))
    pictures = first.folder / "data" / "scenes-0123456789ab" / "renderings"
    pictures.mkdir(parents=True)
    for row in first.results.snapshots(two_runs[0]):
        snapshot = read_snapshot(row.folder)
        paths = [shutil.copy(path, pictures / Path(path).name) for path in snapshot.items.path]
        write_snapshot(
            row.folder,
            image=np.array(snapshot.image),
            text=np.array(snapshot.text),
            items=replace(snapshot.items, path=[str(path) for path in paths]),
            step=snapshot.step,
            dataset=snapshot.dataset,
            split=snapshot.split,
            model=snapshot.model,
        )
    first.close()
    first.folder.rename(tmp_path / "workspace")
    return two_runs[0]


def test_pictures_are_found_after_a_move(qtbot, make_context, moved: int, tmp_path: Path):
    context = make_context()
    items = read_snapshot(context.workspace.results.snapshots(moved)[-1].folder).items
    assert all(path.startswith(f"{tmp_path / 'workspace'}/data/") for path in items.path)
    pictures = Thumbnails(context.background)
    table = add_widget(qtbot, PairTable(pictures, name="moved", label="Pairs"), 600, 400)
    table.pairs.show(items, np.arange(len(items)), [])
    table.show()
    qtbot.waitUntil(lambda: pictures.get(items.path[0]) is not None or bool(pictures.problem(items.path[0])))
    assert pictures.problem(items.path[0]) == ""
    assert pictures.get(items.path[0]).width() > 0


def test_a_command_names_the_pictures_where_they_are(moved: int, tmp_path: Path):
    space, out = tmp_path / "workspace", tmp_path / "out.txt"
    keep = ["selections", "keep", "few", "--run", str(moved), "--rows", "3", "5", "--workspace", str(space)]
    assert main(keep) == 0
    assert main(["selections", "export", "few", "--run", str(moved), "--out", str(out), "--workspace", str(space)]) == 0
    named = [Path(line) for line in out.read_text().splitlines()]
    assert [path.name for path in named] == ["3.png", "5.png"]
    assert all(path.is_file() and path.is_relative_to(space) for path in named)
