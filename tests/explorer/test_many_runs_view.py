"""The Many runs view: its filter, A and B first, and what it says where nothing fits."""

from __future__ import annotations

from explorer.views.run_comparison import ManyRunsView


def test_the_filter_chooses_the_runs_and_a_and_b_come_first(qtbot, make_context, two_runs):
    context = make_context()
    first, second = two_runs
    context.jobs.poll()
    qtbot.waitUntil(lambda: context.jobs.is_read)
    context.selection.select_runs(second, None)
    view = ManyRunsView(context)
    qtbot.addWidget(view)
    view.resize(1180, 700)
    view.show()
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy, timeout=60_000)
    assert view.chart.name == "map-of-models"
    assert [target.run for target in view.request_now().targets] == [second, first]
    assert view.shown.text() == "2 runs."
    objective = context.workspace.runs.get(first).objective
    view.show_filter(f"id:{first} objective:{objective}")
    qtbot.waitUntil(lambda: [target.run for target in view.request_now().targets] == [first])
    view.show_filter("beta>")
    qtbot.waitUntil(lambda: "value is missing" in view.pane.area.page.text.text())
    view.show_filter("tag:none")
    qtbot.waitUntil(lambda: view.pane.area.kind == "empty")
    view.show_filter("")
    view.open_chart("config-difference")
    qtbot.waitUntil(lambda: view.pane.answer is not None and view.pane.answer.chart.name == "config-difference")
    command = view.command()
    assert command is not None
    assert command[:4] == ["export", "config-difference", "--runs", str(second)]
