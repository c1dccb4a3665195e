"""Links to views: they say all that is looked at, choose it again, and do nothing else."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from explorer.state.selection import Looking, Rows, Selection
from explorer.state.view_link import LinkError, link_to, read_link
from explorer.widgets.banner import Banner
from explorer.window.saved_views import SavedViews, read, write
from trainer.config.split_key import SplitKey
from trainer.store import Workspace

NOW = Looking(3, 4, 24, 36, SplitKey("emoji & co", "val"), Rows([1, 5, 7]), (), "map")


def test_a_link_says_what_is_looked_at_and_chooses_it_again():
    link = link_to(NOW, 'objective:cloob name:"a b" beta>8')
    assert link.startswith("contrastive-explorer://open?view=map&a=3&b=4")
    found = read_link(link)
    assert found.filter == 'objective:cloob name:"a b" beta>8'
    assert Looking(**found.values) == NOW
    assert read_link(link_to(Looking())).values["run_a"] is None
    assert "pairs" not in link_to(Looking(pairs=Rows(range(5_000)))), "more pairs than fit are left out"


@pytest.mark.parametrize(
    "text",
    [
        "https://open?view=map",
        "contrastive-explorer://delete?a=1",
        "contrastive-explorer://open?a=-1",
        "contrastive-explorer://open?a=9" + "9" * 40,
        "contrastive-explorer://open?pairs=" + ",".join(["1"] * 2_000),
        "contrastive-explorer://open?view=" + "x" * 20_000,
        "contrastive-explorer://open?view",
        "contrastive-explorer://[",
        "",
    ],
)
def test_what_is_no_link_is_refused_with_a_sentence(text):
    with pytest.raises(LinkError):
        read_link(text)


def test_views_are_saved_in_the_workspace_and_opened_again(qtbot, make_context):
    context = make_context()
    window = QWidget()
    qtbot.addWidget(window)
    parent = Banner(window)
    selection: Selection = context.selection
    saved = SavedViews(parent, selection, parent, dict)
    saved.begin(context.workspace, context.background)
    selection.propose(run_a=2, run_b=1, step=10, view="map", pairs=(4, 2))
    saved.save("  what I  saw ")
    qtbot.waitUntil(lambda: [action.text() for action in saved.actions] == ["Open view: what I saw"])
    selection.propose(run_a=None, run_b=None, step=None, view="runs", pairs=())
    saved.actions[0].trigger()
    assert (selection.run_a, selection.run_b, selection.step, selection.view) == (2, 1, 10, "map")
    assert selection.pairs.tolist() == [2, 4]
    assert read(Workspace(context.workspace.folder)) == saved.links
    assert not saved.open("file:///etc/passwd")


def test_a_setting_that_somebody_else_wrote_is_read_with_care(tmp_path):
    workspace = Workspace(tmp_path / "w")
    workspace.set_setting("saved_views", {"a": 3, "": "x", "b": "contrastive-explorer://open?view=map"})
    assert list(read(workspace)) == ["b"]
    workspace.set_setting("saved_views", [1])
    assert read(workspace) == {}
    assert list(write(workspace, "c", "link")) == ["c"]
