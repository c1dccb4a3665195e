"""The Similarity view shows exactly the analysis, and only valid comparisons."""

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from explorer.state.selection import Side
from explorer.views.sentences import at_its_step
from explorer.views.similarity import SimilarityView
from tests.explorer.conftest import unselected
from tests.two_runs import write_run_on_other_data
from trainer import config
from trainer.analysis.similarity import auc, d_prime, hardest_texts, matched_cosines, overlap
from trainer.store import SplitKey, of_split, read_snapshot

N = 48


@pytest.fixture
def view(qtbot, show_view) -> SimilarityView:
    shown = show_view(SimilarityView, 1000, 700)
    qtbot.waitUntil(lambda: len(shown.cosines.runs) == 2 and not shown.cosines.pane.busy, timeout=30_000)
    return shown


@pytest.fixture(scope="module")
def _shared(share_view) -> SimilarityView:
    return share_view(SimilarityView, 1000, 700)


@pytest.fixture
def shared(qtbot, dressed, _shared: SimilarityView) -> SimilarityView:
    """Return the view of the tests that look and select, with the last steps of both runs."""
    unselected(_shared)
    tab = _shared.cosines
    qtbot.waitUntil(lambda: [(run.run, run.step) for run in tab.runs] == [(1, 20), (2, 20)] and not tab.pane.busy)
    return _shared


def plot(view: SimilarityView, place: int):
    return view.cosines.pane.panel.cards[f"cosines-{place}"].plot


def test_numbers_are_those_of_the_analysis(shared: SimilarityView, two_runs: tuple[int, int]):
    table = shared.cosines.pane.panel.cards["numbers"]
    for place, run in enumerate(two_runs):
        snapshot = read_snapshot(shared.context.workspace.results.snapshots(run)[-1].folder)
        matched = matched_cosines(snapshot.image, snapshot.text)
        unmatched = hardest_texts(snapshot.image, snapshot.text, 10).cosines
        expected = {
            "AUC vs. 10 hardest": f"{auc(matched, unmatched):.3f}",
            "d′": f"{d_prime(matched, unmatched):.2f}",
            "Overlap": f"{100 * overlap(matched, unmatched):.1f} %",
            "Image to text R@1, unseen renderings, n = 48": f"{100 * (matched > unmatched[:, 0]).mean():.1f} %",
            "Mean matched": f"{matched.mean():.3f}",
            "Mean unmatched": f"{unmatched.mean():.3f}",
            "n matched": "48",
            "n unmatched": "480",
        }
        shown = {name: table.text(name, place) for name in expected}
        assert shown == {name: words.replace("-", "−") for name, words in expected.items()}


def test_only_comparable_measures_have_a_difference(shared: SimilarityView):
    a, b = shared.cosines.runs
    differences = shared.cosines.pane.panel.cards["differences"]
    assert differences.title.text() == "B against A"
    assert differences.text("AUC vs. 10 hardest") == f"{b.auc - a.auc:+.3f}".replace("-", "−")
    assert differences.text("Overlap") == f"{100 * (b.overlap - a.overlap):+.1f} points".replace("-", "−")
    assert differences.text("AUC vs. 10 hardest").startswith("−")
    assert "Mean matched" not in [line.words for line in differences.numbers.lines]
    assert "not comparable across runs" in shared.cosines.pane.panel.notes.text()


def test_each_plot_has_the_letter_of_its_run(shared: SimilarityView):
    cards = [shared.cosines.pane.panel.cards[f"cosines-{place}"] for place in (0, 1)]
    assert [card.badge.letter for card in cards if card.badge.isVisible()] == ["A", "B"]


def test_axes_are_those_of_the_runs_until_one_is_asked_for(qtbot: QtBot, view: SimilarityView):
    for place, run in enumerate(view.cosines.runs):
        values = np.concatenate([run.matched, run.unmatched])
        low, high = plot(view, place).viewRange()[0]
        assert abs(low - values.min()) < 1e-6
        assert values.max() < high + 1e-6
    view.cosines.controls.controls["same_axis"].box.click()
    qtbot.waitUntil(lambda: plot(view, 0).viewRange() == plot(view, 1).viewRange(), timeout=5000)
    assert "same_axis=True" in view.context.settings.value("similarity/settings")
    assert plot(view, 0).getPlotItem().getAxis("bottom").autoSIPrefixScale == 1, "cosines, not thousandths"


def test_k_asks_again(qtbot: QtBot, view: SimilarityView):
    view.cosines.change(k=3)
    table = view.cosines.pane.panel.cards["numbers"]
    qtbot.waitUntil(lambda: table.text("n unmatched") == "144", timeout=5000)
    assert view.command()[-2:] == ["--k", "3"]
    for width in (view.width(), 900, 600):
        view.resize(width, view.height())
        qtbot.wait(20)
        assert len({view.cosines.pane.panel.cards[f"cosines-{place}"].legend.isVisible() for place in (0, 1)}) == 1
    view.context.selection.run_b = None
    view.resize(1200, view.height())
    qtbot.waitUntil(lambda: len(view.cosines.runs) == 1 and bool(plot(view, 0).labels()), timeout=5000)
    named = [text for text, _ in plot(view, 0).labels()]
    assert [text.split(", mean ")[0] for text in named] == ["matched", "3 most similar unmatched"]
    card = view.cosines.pane.panel.cards["cosines-0"]
    assert not card.legend.isVisible(), "the labels at the lines say it all"
    view.resize(400, view.height())
    qtbot.waitUntil(card.legend.isVisible)
    assert {words for words, *_ in card.entries} == set(named), "the same with too little room"
    assert not plot(view, 0).labels()


def test_command(shared: SimilarityView, two_runs: tuple[int, int]):
    assert shared.command() == ["export", "similarity", "--runs", *map(str, two_runs)]


def test_runs_without_the_step_say_so(qtbot: QtBot, shared: SimilarityView):
    shared.context.selection.step = 15
    area = shared.cosines.pane.area
    qtbot.waitUntil(lambda: area.kind == "failed", timeout=5000)
    assert "no snapshot at step 15" in area.page.text.text()
    assert shared.command() is None


def test_the_names_of_data_may_have_dashes(make_context, two_runs: tuple[int, int]):
    workspace, key = make_context().workspace, SplitKey("scenes", "val-200-of-536")
    (first, *_), side = workspace.results.snapshots(two_runs[0]), Side(0, two_runs[0], None)
    workspace.results.add_snapshot(first.run, first.step, key.dataset, key.split, first.folder, n=first.n, d=first.d)
    assert at_its_step(workspace, side, of_split(key)).step == first.step


def test_one_run_without_snapshots_does_not_hide_the_other(qtbot: QtBot, shared: SimilarityView):
    shared.context.selection.run_b = shared.context.workspace.runs.create(config.Run(name="nothing yet"))
    qtbot.waitUntil(lambda: len(shared.cosines.runs) == 1 and not shared.cosines.pane.busy, timeout=5000)
    assert shared.cosines.runs[0].n == N
    assert "nothing yet has no snapshot" in shared.cosines.pane.warnings.text()


def test_a_run_on_other_data_is_read_by_its_own_pairs(qtbot: QtBot, view: SimilarityView, two_runs: tuple[int, int]):
    selection, pane = view.context.selection, view.cosines.pane
    own = write_run_on_other_data(view.context.workspace)
    selection.select_runs(own, two_runs[1])
    qtbot.waitUntil(lambda: len(view.cosines.runs) == 2 and view.cosines.runs[0].n == 20 and not pane.busy)
    lines = [item.lines for item in view.cosines.strip.strip.items]
    assert [len(line) for line in lines] == [1] * 20, "row 3 of run B is another pair"
    assert "own on own" in pane.warnings.text()
    assert pane.warnings.text().startswith("Different data: ")
    assert [plot(view, place).spec.rug is None for place in (0, 1)] == [False, True]
    tables = {key: card.numbers.columns for key, card in pane.panel.cards.items() if hasattr(card, "numbers")}
    assert tables == {"numbers": ("CLIP · own",), "numbers-1": ("bad",)}, "no difference, and no value beside another"
    qtbot.waitUntil(lambda: "measured on different data" in view.truth.said)
    selection.select_runs(*two_runs)
    qtbot.waitUntil(lambda: len(view.cosines.runs) == 2 and view.cosines.runs[0].n == N and not pane.busy)
    qtbot.waitUntil(lambda: view.truth.said == "1 seed each: undecided")
    assert not pane.warnings.text()


def test_a_part_that_fails_to_show_leaves_no_former_runs(qtbot: QtBot, view: SimilarityView, monkeypatch):
    def fail(*_: object) -> None:
        raise IndexError("772 of 20 values")

    view.hide()
    view.context.selection.run_b = None
    monkeypatch.setattr(view.cosines.strip, "show_pairs", fail)
    with pytest.raises(IndexError), qtbot.captureExceptions():
        view.show()
    with qtbot.captureExceptions():
        qtbot.waitUntil(lambda: len(view.cosines.runs) == 1 and not view.cosines.pane.busy)


def test_one_run_and_none(qtbot: QtBot, shared: SimilarityView):
    shared.context.selection.run_b = None
    qtbot.waitUntil(lambda: len(shared.cosines.runs) == 1 and not shared.cosines.pane.busy, timeout=5000)
    assert "differences" not in shared.cosines.pane.panel.cards
    shared.context.selection.run_a = None
    assert shared.is_empty
    assert shared.command() is None
