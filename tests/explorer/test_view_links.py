"""Links to views: they say all that is looked at, choose it again, and do nothing else."""

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from explorer.state.selection import Looking, Rows, Selection
from explorer.state.view_link import link_to, read_link
from explorer.widgets.banner import Banner
from explorer.window import saved_views
from explorer.window.saved_views import SavedViews, read, write
from tests.explorer.widgets import add_widget
from trainer.config.split_key import SplitKey
from trainer.errors import UserError
from trainer.store import Workspace

NOW = Looking(3, 4, 24, 36, SplitKey("emoji & co", "val"), Rows([1, 5, 7]), (), "map")


def test_a_link_says_what_is_looked_at_and_chooses_it_again():
    link = link_to(NOW, 'objective:cloob name:"a b" beta>8')
    assert link.startswith("contrastive-explorer://open?view=map&a=3&b=4")
    found = read_link(link)
    assert found.filter == 'objective:cloob name:"a b" beta>8'
    assert Looking(**found.values) == NOW
    assert read_link(link_to(Looking(run_a=3))).values["run_b"] is None
    assert read_link("contrastive-explorer://open?view=map&filter=x").values == {"view": "map"}, "runs stay"
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
    with pytest.raises(UserError):
        read_link(text)


def test_views_are_saved_in_the_workspace_and_opened_again(qtbot, make_context):
    context = make_context()
    window = add_widget(qtbot, QWidget())
    parent = Banner(window)
    selection: Selection = context.selection
    saved = SavedViews(parent, selection, parent, dict)
    saved.begin(context.workspace, context.background, context.jobs)
    selection.propose(run_a=2, run_b=1, step=10, view="map", pairs=(4, 2))
    saved.save("  what I  saw ")
    qtbot.waitUntil(lambda: [action.text() for action in saved.actions] == ["Open view: what I saw"])
    selection.propose(run_a=None, run_b=None, step=None, view="runs", pairs=())
    saved.actions[0].trigger()
    assert (selection.run_a, selection.run_b, selection.step, selection.view) == (2, 1, 10, "map")
    assert selection.pairs.tolist() == [2, 4]
    assert read(Workspace(context.workspace.folder)) == saved.links
    assert not saved.open("file:///etc/passwd")


def test_a_late_answer_does_not_replace_what_is_saved(qtbot, make_context, monkeypatch):
    context = make_context()
    window = add_widget(qtbot, QWidget())
    banner, released = Banner(window), threading.Event()
    saved = SavedViews(banner, context.selection, banner, dict)
    monkeypatch.setattr(saved_views, "read", lambda workspace: released.wait(60) and {})
    saved.begin(context.workspace, context.background, context.jobs)
    monkeypatch.undo()
    context.selection.propose(run_a=1, view="map")
    names = [f"view {number}" for number in range(8)]
    for name in names:  # faster than a thread begins
        saved.save(name)
    qtbot.waitUntil(lambda: {*read(context.workspace)} == {*names})
    released.set()
    qtbot.waitUntil(lambda: not context.background.busy)
    assert {*saved.links} == {*read(context.workspace)} == {*names}


def test_a_setting_that_somebody_else_wrote_is_read_with_care(tmp_path):
    workspace = Workspace(tmp_path / "w")
    workspace.set_setting("saved_views", {"a": 3, "": "x", "b": "contrastive-explorer://open?view=map"})
    assert list(read(workspace)) == ["b"]
    workspace.set_setting("saved_views", [1])
    assert read(workspace) == {}
    assert list(write(workspace, "c", "link")) == ["c"]


def test_saved_views_are_opened_renamed_and_deleted_in_their_dialog(qtbot, make_context, monkeypatch):
    context = make_context()
    window = add_widget(qtbot, QWidget())
    banner = Banner(window)
    selection: Selection = context.selection
    saved = SavedViews(window, selection, banner, dict)
    saved.begin(context.workspace, context.background, context.jobs)
    for name, step in (("first", 5), ("second", 10)):
        selection.propose(run_a=1, step=step, view="map")
        saved.save(name)
        qtbot.waitUntil(lambda name=name: name in saved.links)
    sheet = saved.manage()
    assert [sheet.names.item(row).text() for row in range(2)] == ["first", "second"]
    sheet.names.setCurrentRow(1)
    sheet.names.item(1).setText("last  one")
    qtbot.waitUntil(lambda: list(saved.links) == ["first", "last one"])
    assert sheet.names.currentItem().text() == "last one"
    sheet.names.item(1).setText("first")
    qtbot.waitUntil(lambda: sheet.names.item(1).text() == "last one")
    assert any("There is a view called first" in label.text() for label in banner.findChildren(QLabel))
    sheet.names.setCurrentRow(0)
    qtbot.keyClick(sheet.names, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: sheet.names.count() == 1)
    assert list(read(Workspace(context.workspace.folder))) == ["last one"]
    selection.propose(step=None, view="runs")
    qtbot.mouseClick(sheet.open_button, Qt.MouseButton.LeftButton)
    assert (selection.step, selection.view) == (10, "map")
    monkeypatch.setattr(context.jobs, "_look_only", "it mirrors box")
    sheet = saved.manage()
    assert not sheet.rename_button.isEnabled()
    assert "read-only" in sheet.delete_button.toolTip()
    qtbot.keyClick(sheet.names, Qt.Key.Key_Delete)
    assert list(saved.links) == ["last one"]
    assert sheet.open_button.isEnabled()
