"""Charts of the Loss lab: settings through the command line and back, and figures of every kind."""

import csv
import dataclasses
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nightly import few_plain, nightly_except
from trainer.__main__ import main
from trainer.charts import ChartError
from trainer.charts.marks import HeatMap, ImageRow, NumberTable, Panel, ShadedTable, XYPlot
from trainer.charts.registry import BUILT_IN, load
from trainer.charts.settings import parse, words
from trainer.charts.spec import Request
from trainer.config.fields import fields_of

CHARTS = BUILT_IN["losslab"]


def panel(name: str, settings: Any = None) -> Panel:
    """Return the chart's panel, which needs no workspace."""
    chart = load(name)
    settings = chart.settings() if settings is None else settings
    data = chart.result(None, Request(), settings, lambda share, note: None)
    return chart.panel(data, settings)


@pytest.mark.slow
@given(st.floats(-100, 100), st.floats(0.01, 10), st.sampled_from(["dot", "cosine"]))
def test_settings_come_back_exactly(cell: float, temperature: float, similarity: str):
    kind = load("toy-batch").settings
    settings = kind(similarity=similarity, temperature=temperature, image=(cell,) * 9)
    assert parse(kind, words(settings)) == settings


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("toy-batch", "temperature=0", "too small: choose at least 0.01"),
        ("toy-batch", "temperature=warm", "is not a number"),
        ("toy-batch", "similarity=angle", "dot, cosine"),
        ("toy-batch", "image=1,2", "needs 9 numbers"),
        ("toy-batch", "image=1,2,nan,4,5,6,7,8,9", "a finite number is needed"),
        ("loss-saturation", "n=1", "too small: choose at least 2"),
        ("loss-saturation", "n=2.5", "whole number"),
        ("hopfield-temperature", "gamma=1", "NAME one of beta"),
        ("loss-margins", "alpha", "write NAME=VALUE"),
    ],
)
def test_bad_settings_are_a_sentence(name: str, text: str, says: str):
    with pytest.raises(ChartError, match=re.escape(says)):
        parse(load(name).settings, [text])


@pytest.mark.slow
@few_plain(3, "name", nightly_except(CHARTS, *[name for name in CHARTS if name != "softmax-cost"]))
def test_numbers_are_finite_at_every_end_of_every_setting(name: str):
    """Where a value is intentionally NaN (the merge), nothing is drawn."""
    kind = load(name).settings
    for one in fields_of(kind):
        for value in (one.low, one.high) if one.kind in ("number", "integer") else ():
            with np.errstate(over="raise", invalid="raise"):
                drawn = panel(name, dataclasses.replace(kind(), **{one.name: value}))
            for mark in drawn.marks:
                if isinstance(mark, XYPlot):
                    assert np.isfinite([mark.x.low, mark.x.high, mark.y.low, mark.y.high]).all()
                    assert mark.y.low < mark.y.high
                    assert mark.x.low < mark.x.high
                    assert all(np.isfinite(curve.y).all() for curve in mark.curves), mark.key
                elif isinstance(mark, ShadedTable | HeatMap):
                    assert np.isfinite(mark.values).all()
                elif isinstance(mark, ImageRow):
                    assert all(cell.pixels is not None for cell in mark.cells)
                else:
                    assert isinstance(mark, NumberTable)


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_except(CHARTS, "toy-batch"))
def test_every_format_is_written_and_repeats(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    # The drawing is the same for all of them, and takes the time.
    files = [f"f.{suffix}" for suffix in (("svg", "png", "pdf", "csv") if name == "toy-batch" else ("svg", "csv"))]
    assert main(["export", name, "--out", *files, "--workspace", str(tmp_path / "w")]) == 0
    assert all((tmp_path / file).stat().st_size > 500 for file in files)
    before = (tmp_path / "f.svg").read_bytes()
    line = re.search(r"<dc:description>(.*?)</dc:description>", before.decode())[1]
    assert main([*shlex.split(line)[1:], "--workspace", str(tmp_path / "w")]) == 0
    assert (tmp_path / "f.svg").read_bytes() == before
    assert panel(name).title in before.decode()


def test_csv_has_the_golden_total(tmp_path: Path):
    file = tmp_path / "toy.csv"
    settings = ["--similarity", "cosine", "--temperature", "0.07"]
    assert main(["export", "toy-batch", *settings, "--out", str(file), "--workspace", str(tmp_path)]) == 0
    rows = list(csv.DictReader(file.open(encoding="utf-8")))
    total = next(row["y"] for row in rows if row["x"] == "Total loss")
    assert float(total) == pytest.approx(0.000438, abs=5e-7)


def test_what_is_set_stands_over_the_figure():
    kind = load("toy-batch").settings
    assert panel("toy-batch", kind(temperature=0.07)).head == ("Similarity = dot · Temperature τ = 0.07",)


def test_runs_are_asked_for_where_they_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", "curves", "--out", str(tmp_path / "f.svg"), "--workspace", str(tmp_path)]) == 2
    assert "Name the runs, or a filter: 1 2" in capsys.readouterr().err


def test_histograms_are_densities():
    drawn = panel("loss-margins").mark("drawn")
    for curve in drawn.curves:
        assert curve.y.sum() * 0.04 == pytest.approx(1)
