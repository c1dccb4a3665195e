"""Panels of the Loss lab: settings through the command line and back, and figures of every kind."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.__main__ import main
from trainer.charts import ChartError
from trainer.charts.lab import PANELS, lab
from trainer.charts.settings import parse, settings_of, words
from trainer.cli.export import lab as export
from trainer.render_mpl import lab as figure


def test_command_offers_exactly_the_panels():
    assert tuple(PANELS) == export.PANELS


@pytest.mark.slow
@given(st.floats(-100, 100), st.floats(0.01, 10), st.sampled_from(["dot", "cosine"]))
def test_settings_come_back_exactly(cell: float, temperature: float, similarity: str):
    kind = PANELS["toy"].settings
    settings = kind(similarity=similarity, temperature=temperature, image=(cell,) * 9)
    assert parse(kind, words(settings)) == settings


@pytest.mark.parametrize(
    ("panel", "text", "says"),
    [
        ("toy", "temperature=0", "from 0.01 to 10"),
        ("toy", "temperature=warm", "must be a number"),
        ("toy", "similarity=angle", "dot, cosine"),
        ("toy", "image=1,2", "needs 9 numbers"),
        ("toy", "image=1,2,nan,4,5,6,7,8,9", "must be from"),
        ("saturation", "n=1", "from 2 to 32,768"),
        ("saturation", "n=2.5", "whole number"),
        ("retrieval", "gamma=1", "NAME one of beta"),
        ("margins", "alpha", "write NAME=VALUE"),
    ],
)
def test_bad_settings_are_a_sentence(panel: str, text: str, says: str):
    with pytest.raises(ChartError, match=re.escape(says)):
        lab(panel, [text])


@pytest.mark.parametrize("panel", PANELS)
def test_numbers_are_finite_at_every_end_of_every_setting(panel: str):
    """Where it is not a number on purpose (the merge), nothing is drawn."""
    kind = PANELS[panel].settings
    for knob in settings_of(kind):
        for value in (knob.low, knob.high) if knob.kind in ("number", "whole") else ():
            with np.errstate(over="raise", invalid="raise"):
                chart = lab(panel, [f"{knob.name}={value}"])
            for plot in chart.plots:
                assert np.isfinite([plot.x.low, plot.x.high, plot.y.low, plot.y.high]).all()
                assert plot.y.low < plot.y.high
                assert plot.x.low < plot.x.high
                assert all(np.isfinite(curve.y).all() for curve in plot.curves), plot.key
            assert all(np.isfinite(table.values).all() for table in chart.tables)


@pytest.mark.slow
@pytest.mark.parametrize("panel", PANELS)
def test_every_format_is_written_and_repeats(panel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    # The drawing is the same for all of them, and takes the time.
    files = [f"f.{suffix}" for suffix in (("svg", "png", "pdf", "csv") if panel == "toy" else ("svg", "csv"))]
    assert main(["export", "lab", "--panel", panel, "--out", *files, "--workspace", str(tmp_path / "w")]) == 0
    assert all((tmp_path / file).stat().st_size > 500 for file in files)
    before = (tmp_path / "f.svg").read_bytes()
    line = re.search(r"<dc:description>(.*?)</dc:description>", before.decode())[1]
    assert main([*shlex.split(line)[1:], "--workspace", str(tmp_path / "w")]) == 0
    assert (tmp_path / "f.svg").read_bytes() == before
    assert PANELS[panel].label in before.decode()


def test_csv_has_the_golden_total(tmp_path: Path):
    file = tmp_path / "toy.csv"
    settings = ["similarity=cosine", "temperature=0.07"]
    words_ = ["export", "lab", "--panel", "toy", "--set", *settings, "--out", str(file), "--workspace", str(tmp_path)]
    assert main(words_) == 0
    rows = list(csv.DictReader(file.open(encoding="utf-8")))
    total = next(row["y"] for row in rows if row["series"] == "Total loss")
    assert float(total) == pytest.approx(0.000438, abs=5e-7)
    assert {"part": "setting", "series": "temperature", "y": "0.07"}.items() <= rows[1].items()


def test_runs_are_asked_for_where_they_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", "curves", "--out", str(tmp_path / "f.svg"), "--workspace", str(tmp_path)]) == 2
    assert "--runs 1 2" in capsys.readouterr().err


def test_rows_hold_every_point():
    chart = lab("margins")
    rows = list(figure.rows(chart).rows)
    drawn = chart.plot("drawn")
    mine = [row for row in rows if row[1] == "drawn"]
    assert len(mine) == sum(len(curve.y) for curve in drawn.curves)
    # The histograms are densities: they sum to 1.
    assert sum(row[4] for row in mine if row[2] == "hard") * 0.04 == pytest.approx(1)
