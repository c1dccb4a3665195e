"""The Decode view through its real widgets, with pictures made here instead of a model process."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from explorer.intents import TrainDecoder
from explorer.run_control import actions
from explorer.views.decode import DecodeView
from explorer.views.decode.choices import decoder_of, decoders_of, in_the_making, why_not
from explorer.views.decode.view import VISIBLE_DISTANCE
from explorer.views.view import Context
from explorer.widgets.image_row import ImageRowItem
from tests.explorer.answering_client import AnsweringClient
from tests.explorer.widgets import show_widget
from trainer.messages import Decode, Failure, decode_answer

SIZE = 16


class FakeClient(AnsweringClient):
    """Answers with one shade a run and noise; the mean picture is black."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def answer_of(self, question: Any) -> Any:
        return decode_answer(question, self.answer(question))

    def answer(self, question: Decode) -> dict[str, Any]:
        runs = []
        for place, run in enumerate(question.runs):
            shades = np.array([0, *(20 * noise + 10 * place for noise in question.noises)], np.uint8)
            pictures = np.broadcast_to(shades[:, None, None, None], (len(shades), SIZE, SIZE, 3))
            spread = np.zeros((SIZE, SIZE), np.float32)
            spread[0, 0], spread[1, 1] = 0.15, 0.9
            np.save(self.folder / f"p{place}.npy", pictures)
            np.save(self.folder / f"s{place}.npy", spread)
            near = [{"path": "/nowhere/a.png", "caption": "a red ring", "cosine": 0.875}]
            told = {
                "run": run,
                "name": f"decoder {run}",
                "of_name": "clip",
                "of_step": 240,
                "step": 9,
                "recovered": 0.25,
                "recovered_of": 48,
                "measured": [{"name": "ground", "samples": 0.9, "originals": 1.0, "limit": 0.95}],
                "measured_of": 256,
            }
            files = {"pictures": str(self.folder / f"p{place}.npy"), "spread": str(self.folder / f"s{place}.npy")}
            if question.reverse:
                way = np.full((2, 3, SIZE, SIZE, 3), 50 + place, np.uint8)
                np.save(self.folder / f"w{place}.npy", way)
                files |= {"reverse": str(self.folder / f"w{place}.npy")}
                told |= {"levels": [999, 500, 40]}
            runs.append(told | files | {"nearest": near, "nearest_of": 64})
        np.save(self.folder / "o.npy", np.full((SIZE, SIZE, 3), 90, np.uint8))
        about = {"title": "x", "how": f"{question.steps} DDIM steps.", "noises": list(question.noises)}
        return about | {"original": str(self.folder / "o.npy") if question.image else "", "runs": runs}


def row(number: int, *, objective: str = "clip", of: int | None = None, step: int = 9, steps: int = 9) -> Any:
    facts = {} if of is None else {"decodes": {"run": of, "name": f"run {of}", "step": 240}}
    status, active = ("finished", False) if step else ("stopped" if of is None else "running", False)
    return SimpleNamespace(
        id=number,
        name=f"r{number}",
        short_name=f"r{number}",
        label=f"r{number}",
        experiment="",
        objective=objective,
        facts=facts,
        step=step,
        status=status,
        active=active,
        preset="decoder",
        total_steps=steps,
        is_elsewhere=False,
        no_model="",
    )


def test_of_two_runs_the_newest_decoders_that_are_alike_answer():
    small, other, large = (
        row(n, objective="decoder", of=of, steps=s) for n, of, s in ((3, 1, 9), (4, 2, 9), (5, 1, 50))
    )
    rows = [row(1), row(2), small, other, large]
    assert decoders_of(rows, [1, 2]) == [small, other]
    assert decoders_of(rows, [1]) == [large]
    assert decoders_of([row(1), row(2), other, large], [1, 2]) == [large, other], "none are alike"
    assert decoders_of([row(1), row(2), large], [1, 2]) == [large, None]


def test_decoders_that_do_not_compare_are_mended_by_one_click(
    view: DecodeView, context: Context, two_runs: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [*context.jobs.runs, *(row(10 + n, objective="decoder", of=n, steps=9 * n) for n in two_runs)]
    monkeypatch.setattr(type(context.jobs), "runs", property(lambda jobs: tuple(known)))
    started: list[Any] = []
    monkeypatch.setattr(context.jobs, "do", lambda _action, runs, like=None: started.append((list(runs), like)))
    view.refresh()
    view.asking.failed.emit(Failure("bad_question", "r11 and r12 do not compare.", "Decode one alone."))
    assert "do not compare" in view.answer_area.page.text.text()
    assert view.answer_area.page.button.text() == "Train the same decoder for B"
    view.answer_area.page.button.click()
    assert started == [([two_runs[1]], 10 + two_runs[0])]


def test_the_newest_decoder_that_made_a_step_answers_and_a_decoder_for_itself():
    old, new, unborn = (row(n, objective="decoder", of=1, step=s) for n, s in ((3, 9), (4, 9), (5, 0)))
    rows = [row(1), row(2), old, new, unborn]
    assert decoder_of(rows, 1) is new
    assert decoder_of(rows, 2) is None
    assert decoder_of(rows, 3) is old
    assert decoder_of(rows, 99) is None


@pytest.fixture
def context(make_context: Any, two_runs: tuple[int, int], tmp_path: Path, qtbot: QtBot) -> Context:
    made = dataclasses.replace(make_context(), client=FakeClient(tmp_path))
    made.jobs.poll()
    qtbot.waitUntil(lambda: len(made.jobs.runs) >= 2, timeout=60_000)
    made.selection.select_runs(*two_runs)
    return made


@pytest.fixture
def decoders(context: Context, two_runs: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give runs A and B a decoder each, 11 and 12."""
    known = [*context.jobs.runs, *(row(10 + n, objective="decoder", of=n) for n in two_runs)]
    monkeypatch.setattr(type(context.jobs), "runs", property(lambda jobs: tuple(known)))
    return [10 + n for n in two_runs]


@pytest.fixture
def view(qtbot: QtBot, context: Context) -> Iterator[DecodeView]:
    made = show_widget(qtbot, DecodeView(context), 1200, 760)
    yield made
    # Thumbnails of a busy machine may still be decoded.
    qtbot.waitUntil(lambda: not context.background.busy, timeout=60_000)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "a.png"
    Image.new("RGB", (40, 40), (200, 30, 30)).save(file)
    return file


def shade(view: DecodeView, place: int, column: int) -> int:
    """Return the red of a shown picture's first pixel."""
    return shown(view, f"decoded-{place}-0")[column].pixmap.toImage().pixelColor(0, 0).red()


def shown(view: DecodeView, key: str) -> tuple[ImageRowItem, ...]:
    return view.rows.cards[key].row.shown


def test_without_a_decoder_it_trains_one_of_each_run_in_one_click(
    view: DecodeView, context: Context, two_runs: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert view.is_empty
    assert view.drop_words == ""
    assert not view.area.page.button.isEnabled()
    assert "train it first" in view.area.page.text.text()
    monkeypatch.setattr(context.jobs, "run", row)
    view.refresh()
    sent: list[TrainDecoder] = []
    view.requested.connect(sent.append)
    view.area.page.other.click()
    assert sent == [TrainDecoder(view.context.selection.runs[0])]
    assert view.area.page.button.text() == "Train both decoders"
    started: list[list[int]] = []
    monkeypatch.setattr(context.jobs, "do", lambda _action, runs: started.append(list(runs)))
    view.area.page.button.click()
    assert started == [list(two_runs)]


def test_decoders_that_are_queued_together_are_alike_and_say_what_they_decode(
    context: Context, two_runs: tuple[int, int]
) -> None:
    runs = context.workspace.runs
    for run in two_runs:
        context.workspace.results.add_checkpoint(run, 20, runs.get(run).folder / "checkpoints" / "step_000020")
    first = actions.queue_decoders(context.workspace, two_runs, None)
    made = [runs.get(first), runs.get(first + 1)]
    assert [row.facts["decodes"]["run"] for row in made] == list(two_runs)
    assert [row.status for row in made] == ["queued", "queued"]
    a, b = (runs.config_of(row.id) for row in made)
    assert (a.optimizer, a.seed, a.objective.size) == (b.optimizer, b.seed, b.objective.size)
    like = actions.decoder_like(context.workspace, two_runs[1], first)
    assert (like.optimizer, like.objective.of) == (a.optimizer, str(two_runs[1]))


def test_what_cannot_be_decoded_disables_the_button_and_says_why(
    view: DecodeView, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(run, objective="simclr") for run in context.selection.runs]
    monkeypatch.setattr(type(context.jobs), "runs", property(lambda jobs: tuple(rows)))
    monkeypatch.setattr(context.jobs, "run", lambda run: next((one for one in rows if one.id == run), None))
    view.refresh()
    assert not view.area.page.button.isEnabled()
    assert "has no image and text towers" in view.area.page.text.text()


def test_b_without_a_decoder_is_told_and_offered_one_like_as(
    view: DecodeView, context: Context, decoders: list[int], two_runs: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [one for one in context.jobs.runs if one.id != decoders[1]]
    monkeypatch.setattr(type(context.jobs), "runs", property(lambda jobs: tuple(known)))
    monkeypatch.setattr(context.jobs, "run", row)
    started: list[Any] = []
    monkeypatch.setattr(context.jobs, "do", lambda _action, runs, like=None: started.append((list(runs), like)))
    view.refresh()
    assert view.answer_area.kind == "partial"
    assert (
        f"r{two_runs[1]} has no decoder. One with the settings of r11 compares them"
        in view.answer_area.note.words.text()
    )
    view.answer_area.note.button.click()
    assert started == [([two_runs[1]], decoders[0])]


def test_decoders_that_went_meanwhile_are_no_error(
    view: DecodeView, context: Context, decoders: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    view.refresh()
    assert view.answer_area.kind == "ready"
    assert view.decoders
    monkeypatch.setattr(type(context.jobs), "runs", property(lambda jobs: ()))
    view.show_now()
    assert not view.decoders


def test_reasons_why_no_decoder_can_be_trained() -> None:
    assert why_not(row(1), False) == ""
    assert "read-only" in why_not(row(1), True)
    assert "no longer there" in why_not(None, False)
    assert "no image and text towers" in why_not(row(1, objective="elsewhere"), False)
    assert "train it first" in why_not(row(1, step=0), False)
    assert in_the_making([row(1), row(2, objective="decoder", of=1, step=0)], 1).id == 2
    assert in_the_making([row(1), row(2, objective="decoder", of=1)], 1) is None


def test_a_dropped_picture_is_decoded_in_few_steps_and_then_in_all(
    qtbot: QtBot, view: DecodeView, decoders: list[int], context: Context, picture: Path
) -> None:
    view.refresh()
    assert view.drop_words == "Drop to decode"
    view.take([picture])
    qtbot.waitUntil(lambda: not view.asking.busy and view.chart is not None)
    assert [question.steps for question in context.client.asked] == [8, 25]
    assert all(question.runs == tuple(decoders) for question in context.client.asked)
    assert all(question.image == str(picture) and not question.text for question in context.client.asked)
    qtbot.waitUntil(lambda: not view.rows.filling and bool(view.rows.panel.notes))
    assert [shade(view, 1, column) for column in (0, 1, 4, 5, 9)] == [90, 0, 10, 30, 110]
    assert shown(view, "decoded-0-0")[2].path == "/nowhere/a.png"
    spread = shown(view, "decoded-0-0")[3].pixmap.toImage()
    assert (spread.pixelColor(0, 0).red(), spread.pixelColor(1, 1).red()) == (128, 255)
    assert "The mean picture explains 25 %, 25 % of the held-out pixels' variance" in view.rows.notes.text()
    assert (
        "% of 256 samples of clip at step 240, samples of clip at step 240, of true attributes, of the originals: "
        "ground 90, 90, 95 of 100." in view.rows.notes.text()
    )
    assert view.details().findChild(QWidget, "decode-distance") is not None
    assert not view.controls.controls["prior"].isVisible()
    assert min(view.rows.cards[f"decoded-{side}-0"].row.place(9).width() for side in range(2)) > 90
    assert view.command() == ["decode", *map(str, decoders), "--image", str(picture)]
    assert not view.show_button.isEnabled()


def test_the_way_from_noise_is_shown_on_request(
    qtbot: QtBot, view: DecodeView, decoders: list[int], context: Context, picture: Path
) -> None:
    view.refresh()
    view.take([picture])
    qtbot.waitUntil(lambda: view.chart is not None and not view.asking.busy)
    assert "noisy-0-0" not in view.rows.cards
    view.controls.show_settings(dataclasses.replace(view.controls.settings, reverse=True))
    view.controls.changed.emit()
    qtbot.waitUntil(lambda: context.client.asked[-1].reverse and not view.asking.busy)
    qtbot.waitUntil(lambda: "noisy-1-0" in view.rows.cards and not view.rows.filling)
    assert [item.words for item in shown(view, "noisy-1-0")] == ["t = 999", "t = 500", "t = 40"]
    assert shown(view, "foreseen-1-0")[0].pixmap.toImage().pixelColor(0, 0).red() == 51
    assert view.command()[-1] == "--reverse"


def test_a_sentence_goes_through_the_chosen_prior(
    qtbot: QtBot, view: DecodeView, decoders: list[int], context: Context
) -> None:
    view.refresh()
    QTest.keyClicks(view.sentence, "a red  ring")
    QTest.keyClick(view.sentence, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: view.chart is not None and not view.asking.busy)
    assert view.controls.controls["prior"].isVisible()
    assert (context.client.asked[-1].text, context.client.asked[-1].prior) == ("a red ring", "mlp")
    view.controls.controls["prior"].buttons["ridge"].click()
    qtbot.waitUntil(lambda: context.client.asked[-1].prior == "ridge" and not view.asking.busy)
    assert view.command()[-2:] == ["--prior", "ridge"]


def test_moves_are_asked_for_and_written_as_a_command(
    qtbot: QtBot, view: DecodeView, decoders: list[int], context: Context, picture: Path, tmp_path: Path
) -> None:
    second = tmp_path / "b.png"
    Image.new("RGB", (40, 40)).save(second)
    view.refresh()
    view.take([picture, second])
    view.before.setText("a red ring")
    view.after.setText("a blue ring")
    wanted = dataclasses.replace(view.controls.settings, share=0.25, strength=1.5, direction=2, guidance=2.0)
    view.controls.show_settings(wanted)
    view.controls.changed.emit()
    qtbot.waitUntil(lambda: context.client.asked[-1].direction == 2 and not view.asking.busy)
    asked = context.client.asked[-1]
    assert (asked.other, asked.share, asked.before, asked.after) == (str(second), 0.25, "a red ring", "a blue ring")
    assert (asked.strength, asked.guidance) == (1.5, 2.0)
    words = " ".join(view.command())
    assert f"--other {second} --guidance 2 --share 0.25" in words
    assert "--before a red ring --after a blue ring --strength 1.5 --drop 2" in words
    view.controls.show_settings(dataclasses.replace(wanted, move="along", distance=-0.75))
    view.controls.changed.emit()
    qtbot.waitUntil(lambda: context.client.asked[-1].distance == -0.75 and not view.asking.busy)
    assert "--along 2 --distance=-0.75" in " ".join(view.command())
    view.controls.show_settings(dataclasses.replace(wanted, move="along", distance=0.0))
    view.controls.changed.emit()
    qtbot.waitUntil(lambda: context.client.asked[-1].direction == 0 and not view.asking.busy)


def test_a_direction_chosen_in_geometry_is_moved_along(
    qtbot: QtBot, view: DecodeView, decoders: list[int], context: Context, picture: Path
) -> None:
    view.refresh()
    view.take([picture])
    view.move_along(3)
    qtbot.waitUntil(lambda: context.client.asked[-1].direction == 3 and not view.asking.busy)
    assert context.client.asked[-1].distance == VISIBLE_DISTANCE
    view.controls.show_settings(dataclasses.replace(view.controls.settings, distance=-1.0))
    view.move_along(5)
    qtbot.waitUntil(lambda: context.client.asked[-1].direction == 5 and not view.asking.busy)
    assert context.client.asked[-1].distance == -1.0


def test_cancel_keeps_the_first_look_and_a_failure_is_told(
    qtbot: QtBot, view: DecodeView, decoders: list[int], context: Context, picture: Path
) -> None:
    view.refresh()
    context.client.answering = False
    view.take([picture])
    assert view.asking.busy
    view.working.cancel()
    assert not view.asking.busy
    assert context.client.cancelled == [1]
    context.client.failing = Failure(
        "bad_question", "r11 and r12 do not compare: seed is 0 and 1.", "Train both alike."
    )
    QTest.mouseClick(view.show_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: view.answer_area.kind == "failed")
    assert view.command() is None


def test_a_window_that_becomes_narrow_again_cuts_no_picture(
    view: DecodeView, decoders: list[int], qtbot: QtBot
) -> None:
    view.refresh()
    for size in ((2300, 1300), (700, 560)):
        view.resize(*size)
        qtbot.wait(50)
    for card in view.rows.cards.values():
        assert card.row.fitting == len(card.row.shown) == 10
        assert 0 < card.row.mapTo(view, card.row.place(9).topRight()).x() < view.width()
