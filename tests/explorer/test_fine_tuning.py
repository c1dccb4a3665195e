"""The form of a fine-tuning says where its settings come from; the view's slider chooses the snapshot of every view."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from explorer.intents import FineTune, MixRuns
from explorer.views.fine_tuning import FineTuningView
from explorer.views.runs.new_run import NewRun
from tests.explorer.widgets import add_widget
from trainer import config


@pytest.fixture
def view(qtbot, show_view) -> FineTuningView:
    made = show_view(FineTuningView, 1096, 716)
    qtbot.waitUntil(lambda: made.pane.answer is not None and not made.busy, timeout=30_000)
    return made


def test_the_slider_chooses_the_step_of_every_view(qtbot, view: FineTuningView, two_runs) -> None:
    steps = sorted({row.step for row in view.context.workspace.results.snapshots(two_runs[0])})
    assert (view.slider.minimum(), view.slider.maximum()) == (0, len(steps) - 1)
    assert view.slider.value() == len(steps) - 1
    view.slider.setFocus()
    QTest.keyClick(view.slider, Qt.Key.Key_Home)
    assert view.context.selection.step == steps[0]
    qtbot.waitUntil(lambda: not view.busy, timeout=30_000)
    assert view.pane.answer.settings.at == steps[0]
    assert f"Step {steps[0]:,}" in view.slider_text.text()
    view.context.selection.step = steps[-1]
    qtbot.waitUntil(lambda: view.slider.value() == len(steps) - 1, timeout=30_000)


def test_its_buttons_ask_for_the_forms(qtbot, view: FineTuningView, two_runs) -> None:
    asked: list[object] = []
    view.requested.connect(asked.append)
    QTest.mouseClick(view.tune, Qt.MouseButton.LeftButton)
    QTest.mouseClick(view.mix, Qt.MouseButton.LeftButton)
    assert asked == [FineTune(two_runs[0]), MixRuns((two_runs[0],))]
    for part in (view.slider, view.slider_text):
        part.hide()  # as where there is one snapshot
    qtbot.waitUntil(lambda: view.mix.x() < 300)
    assert max(button.width() for button in (view.tune, view.mix)) < 200, "no wider than their words"


def test_the_form_says_where_each_setting_comes_from(qtbot, make_context) -> None:
    source = config.Run(name="old", data=config.Scenes(train_pairs=64))
    tuned = config.fine_tuning_of(source, "0001-old@5", data=config.Scenes(train_pairs=128))
    form = add_widget(
        qtbot, NewRun({}, make_context().background, start_from=tuned, title="Fine-tune old", source="old")
    )
    assert form.windowTitle() == "Fine-tune old"
    assert form.section("tuning").fold.isChecked()
    told = form.origins.text()
    assert "Learning rate 1e-05: the weights are pretrained; from nothing it is 0.001." in told
    assert "Reference set start: held-out pairs of old, which it should not forget." in told
    form.show_run(config.replace(tuned, "optimizer.learning_rate", "1e-6"))
    assert "Learning rate 1e-06: asked for by name." in form.origins.text()
    assert form.run().tuning == tuned.tuning
    assert "tuning.start=0001-old@5" in form.command()


def test_starting_from_a_run_gives_the_form_the_rate_of_trained_weights(qtbot, make_context) -> None:
    form = add_widget(qtbot, NewRun({}, make_context().background))
    assert form.origins.isHidden()
    assert form.run().optimizer.learning_rate == 1e-3
    qtbot.keyClicks(form.section("tuning").form.editor("start"), "3")
    suited = config.FINE_TUNING["learning_rate"]
    qtbot.waitUntil(lambda: form.run().optimizer.learning_rate == suited, timeout=30_000)
