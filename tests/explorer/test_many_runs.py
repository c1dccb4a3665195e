"""The table of thousands of runs: updated in one step, sorted by keys computed once per sort."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from explorer.models import runs as rooms
from explorer.models.run_choices import run_choices
from explorer.models.runs import RUN_ROLE, RunColumn, RunsFilter, RunsModel
from tests.nightly import few_plain
from trainer.metrics import HEADLINE
from trainer.store import RunRow

_NOTHING = dict.fromkeys(("parent", "pid", "eta_s", "heartbeat_at", "started_at", "session_at", "ended_at"))


def row(number: int, **more: object) -> RunRow:
    known = {"id": number, "name": f"run {number}", "folder": Path(f"runs/{number}"), "objective": "clip"}
    known |= {"data": "scenes", "preset": "", "status": "finished", "asked": "", "step": 1, "total_steps": 10}
    known |= {"phase": "", "beats": 0, "created_at": float(number), "deleted_at": None, "trained_s": 1.0}
    known |= {"reason": "", "note": "", "metric": "i2t_r1", "last": None, "best": None, "facts": {}}
    return RunRow(**known | _NOTHING | more)


@pytest.fixture
def model(qapp: QApplication) -> RunsModel:
    return RunsModel()


def test_thousands_are_told_in_one_piece(model: RunsModel):
    told: list[tuple[int, int]] = []
    model.rowsInserted.connect(lambda _parent, first, last: told.append((first, last)))
    runs = [row(number) for number in range(1, 2_001)]
    model.show(runs)
    assert told == [(0, 1_999)]
    gone: list[tuple[int, int]] = []
    model.rowsRemoved.connect(lambda _parent, first, last: gone.append((first, last)))
    model.show([run for run in runs if not 500 < run.id <= 1_500])
    assert gone == [(500, 1_499)]
    model.show(runs)
    assert told == [(0, 1_999), (1_000, 1_999)]
    assert model.runs == tuple(runs)
    assert [run.id for run in model.rows] == [run.id for run in runs]


def test_a_sort_makes_each_key_once(model: RunsModel, monkeypatch: pytest.MonkeyPatch):
    made: Counter[int] = Counter()
    best = rooms.SORT_KEYS[RunColumn.BEST]
    monkeypatch.setitem(rooms.SORT_KEYS, RunColumn.BEST, lambda run: (made.update([run.id]), best(run))[1])
    rng = random.Random(0)
    values = [rng.choice([None, rng.random()]) for _ in range(500)]
    runs = [row(number, best=value) for number, value in enumerate(values, start=1)]
    shown = RunsFilter(model)
    shown.sort(RunColumn.BEST, Qt.SortOrder.DescendingOrder)
    model.show(runs)
    order = [shown.index(place, 0).data(RUN_ROLE).best for place in range(500)]
    there = sorted((value for value in values if value is not None), reverse=True)
    assert order == there + [None] * (500 - len(there))
    assert set(made.values()) == {1}
    model.show([replace(run, best=2.0) if run.id == 77 else run for run in runs])
    assert shown.index(0, 0).data(RUN_ROLE).id == 77
    assert set(made.values()) == {2}


def test_values_are_sorted_within_the_data_that_they_were_measured_on(model: RunsModel):
    def of(number: int, data: str, n: int, last: float) -> RunRow:
        facts = {"heldout_pairs": {"val": n}}
        return replace(row(number, last=last), metric=HEADLINE, data=data, facts=facts)

    runs = [of(1, "a", 1024, 0.2), of(2, "a", 1024, 0.6), of(3, "b", 1024, 0.9), of(4, "a", 14, 0.4)]
    shown = RunsFilter(model)
    for order, ids in (("Descending", [2, 1, 3, 4]), ("Ascending", [1, 2, 3, 4])):
        shown.sort(RunColumn.LAST, getattr(Qt.SortOrder, f"{order}Order"))
        model.show(runs)
        assert [run.id for run in shown.runs()] == ids, "first the data of most runs"
    quiet = [shown.index(line, RunColumn.LAST).data(Qt.ItemDataRole.ForegroundRole) is not None for line in range(4)]
    assert quiet == [False, False, True, True], "of another data set of the same size, too"
    assert "measured on a, held-out, n = 1,024" in shown.index(2, RunColumn.LAST).data(Qt.ItemDataRole.ToolTipRole)


def test_a_value_never_stands_under_the_name_of_another_metric(model: RunsModel):
    def heading(column: RunColumn) -> str:
        return model.headerData(column, Qt.Orientation.Horizontal)

    recall = replace(row(1, last=0.312), metric=HEADLINE)
    watched = replace(row(2, last=0.029), metric="train_loss")
    model.show([recall])
    assert (heading(RunColumn.LAST), model.index(0, RunColumn.LAST).data()) == ("R@1", "31.2 %")
    told = []
    model.headerDataChanged.connect(lambda *_: told.append(heading(RunColumn.LAST)))
    model.show([recall, watched])
    texts = {model.rows[line].id: model.index(line, RunColumn.LAST).data() for line in range(2)}
    assert texts == {1: "31.2 %", 2: "loss 0.029"}
    model.show([watched])
    assert (heading(RunColumn.LAST), heading(RunColumn.BEST)) == ("Loss", "Best loss")
    assert model.index(0, RunColumn.LAST).data() == "0.029"
    assert told == ["Loss"]


@few_plain(2, "seed", range(5))
def test_any_change_ends_in_exactly_what_was_told(model: RunsModel, seed: int):
    shown = RunsFilter(model)
    shown.sort(RunColumn.LAST, Qt.SortOrder.AscendingOrder)
    rng = random.Random(seed)
    for _ in range(12):
        numbers = sorted(rng.sample(range(1, 60), rng.randrange(0, 50)))
        runs = [row(number, last=rng.random(), status=rng.choice(["queued", "finished"])) for number in numbers]
        model.show(runs)
        assert model.runs == tuple(runs)
        assert [run.id for run in shown.runs()] == [run.id for run in sorted(runs, key=lambda run: run.last)]


def test_durations_that_grow_are_sorted_anew_each_second(model: RunsModel, monkeypatch: pytest.MonkeyPatch):
    clock = 1_000.0
    monkeypatch.setattr("trainer.store.rows.time.time", lambda: clock)
    shown = RunsFilter(model)
    shown.sort(RunColumn.DURATION, Qt.SortOrder.DescendingOrder)
    running = row(1, status="running", trained_s=0.0, started_at=990.0, session_at=990.0, pid=7)
    model.show([running, row(2, trained_s=15.0, started_at=900.0)])
    assert [run.id for run in shown.runs()] == [2, 1]
    clock = 1_010.0
    model._tick()
    assert [run.id for run in shown.runs()] == [1, 2]


def test_a_list_of_runs_has_a_heading_for_each_experiment_archived_ones_last():
    rows = [row(1), row(2, experiment="old"), row(3, experiment="old"), row(4, experiment="new")]
    rows += [row(5, experiment="new", archived_at=1.0), row(6)]
    found = [(choice.group, choice.key) for choice in run_choices(rows)]
    assert found == [("new", 4), ("old", 2), ("old", 3), ("No experiment", 1), ("No experiment", 6), ("Archived", 5)]
    assert {choice.group for choice in run_choices([row(1), row(2)])} == {""}, "no heading where all are of none"
