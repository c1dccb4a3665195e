"""The Many runs view: its filter, A and B first, and what it says where nothing fits."""

from explorer.state.view_link import ViewLink
from explorer.views.run_comparison import ChosenRuns, RunComparisonView, runs_for
from tests.explorer.widgets import show_widget
from trainer.store import SplitKey


def test_the_filter_chooses_the_runs_and_a_and_b_come_first(qtbot, make_context, two_runs):
    context = make_context()
    first, second = two_runs
    context.jobs.poll()
    qtbot.waitUntil(lambda: context.jobs.is_read)
    context.selection.select_runs(second, None)
    view = show_widget(qtbot, RunComparisonView(context), 1180, 700)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy, timeout=60_000)
    assert view.chart.name == "map-of-models"
    assert [target.run for target in view.request_now().targets] == [second, first]
    assert view.shown.text() == "2 runs."
    objective = context.workspace.runs.get(first).objective
    view.show_link(ViewLink({}, f"id:{first} objective:{objective}"))
    qtbot.waitUntil(lambda: [target.run for target in view.request_now().targets] == [first])
    view.show_link(ViewLink({}, "beta>"))
    qtbot.waitUntil(lambda: "value is missing" in view.pane.area.page.text.text())
    view.show_link(ViewLink({}, "tag:none"))
    qtbot.waitUntil(lambda: view.pane.area.kind == "empty")
    view.show_link(ViewLink({}, ""))
    view.open_chart("config-difference")
    qtbot.waitUntil(lambda: view.pane.answer is not None and view.pane.answer.chart.name == "config-difference")
    command = view.command()
    assert command is not None
    assert command[:4] == ["export", "config-difference", "--runs", str(second)]


def test_runs_without_the_data_are_left_out_and_counted(make_context, two_runs):
    workspace = make_context().workspace
    there = workspace.results.snapshots(two_runs[0])[0]
    held, other = SplitKey(there.dataset, there.split), SplitKey("other", "heldout")
    assert runs_for(workspace, "", two_runs[1:], held, True, 5) == ChosenRuns(two_runs[::-1], 2, 0, held)
    assert runs_for(workspace, "", (), None, True, 5) == ChosenRuns(two_runs, 2, 0, held), "what the first one prefers"
    assert runs_for(workspace, "", (), other, True, 5) == ChosenRuns((), 0, 2, other)
    assert runs_for(workspace, "", (), None, False, 1) == ChosenRuns(two_runs[1:], 2, 0)
    assert ChosenRuns((1, 2), 2, 1, other).words == "2 runs. 1 more has no snapshot of other, held-out."
    assert ChosenRuns((1,), 9, 2).words.endswith("B and the newest. 2 more have no snapshot.")
