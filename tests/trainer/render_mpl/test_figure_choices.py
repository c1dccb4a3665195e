"""What is chosen of a figure: its parts, its true size, its labels; and previews by the same commands."""

import io
import json
import re
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer.__main__ import main
from trainer.charts import ChartError
from trainer.charts.figure_choices import FigureChoices, chosen_panel, parts_of, run_names
from trainer.charts.marks import Axis, NumberTable, Panel, Series, XYPlot, one_number
from trainer.charts.settings import options
from trainer.config.fields import fields_of
from trainer.render_mpl.files import FigureSize
from trainer.render_mpl.panel import draw
from trainer.store import Workspace

X = np.arange(3.0)


def plot(number: int, title: str) -> XYPlot:
    curve = Series(title, "run_a", X, X)
    return XYPlot(f"cosines-{number}", title, Axis("x", 0, 2), Axis("y", 0, 2), (curve,))


PANEL = Panel(
    title="Cosines",
    rows=(
        (plot(0, "CLIP · s0"), plot(1, "CLOOB · s10")),
        (NumberTable("numbers", "Numbers", ("CLIP · s0",), (one_number("AUC", 0.9, 3),)),),
    ),
    head=("step 384",),
    notes=("CLIP · s0 is larger.",),
)


def test_tables_are_left_out_unless_they_are_named():
    assert [(part.name, part.size, part.is_table) for part in parts_of(PANEL)] == [
        ("cosines", "2 plots", False),
        ("numbers", "table, 1 row", True),
    ]
    assert [mark.key for mark in chosen_panel(PANEL, FigureChoices()).marks] == ["cosines-0", "cosines-1"]
    assert len(chosen_panel(PANEL, FigureChoices(panels=("numbers",))).marks) == 1
    assert len(chosen_panel(PANEL, FigureChoices(panels=("all",))).marks) == 3
    tables = replace(PANEL, rows=PANEL.rows[1:])
    assert len(chosen_panel(tables, FigureChoices()).marks) == 1, "a figure of tables alone has them"
    with pytest.raises(ChartError, match="all, cosines, numbers"):
        chosen_panel(PANEL, FigureChoices(panels=("number",)))


def test_letters_of_runs_become_their_labels_unless_they_are_chosen():
    rows = ((plot(0, "only A is right"),),)
    notes = ("A: CLIP · s0. B: CLOOB · s10.", "A graph of AB.")
    panel = replace(PANEL, rows=rows, notes=notes[:1], head=(), letters=True)
    runs = ("CLIP · s0", "CLOOB · s10")
    short = chosen_panel(panel, FigureChoices(), runs)
    assert short.marks[0].curves[0].name == "only CLIP is right"
    assert short.notes == ("CLIP. CLOOB.",)
    seeds = chosen_panel(panel, FigureChoices(names="seed"), runs)
    assert seeds.notes == ("CLIP · s0. CLOOB · s10.",)
    assert chosen_panel(panel, FigureChoices(names="letters"), runs).marks[0].curves[0].name == "only A is right"
    assert chosen_panel(panel, FigureChoices(), runs[:1] * 2).notes == ("A: CLIP. B: CLOOB · s10.",), "steps of one run"
    plain = replace(panel, letters=False, notes=notes)
    assert chosen_panel(plain, FigureChoices(names="seed"), runs).notes == notes


def test_titles_and_notes():
    plain = chosen_panel(PANEL, FigureChoices())
    assert (plain.title, plain.head, plain.notes) == ("", (), ("step 384", "CLIP · s0 is larger."))
    short = chosen_panel(PANEL, FigureChoices(title="short", notes=False))
    assert (short.title, short.head, short.notes) == ("Cosines", ("step 384",), ())
    assert [len(row) for row in chosen_panel(PANEL, FigureChoices(arrange="column")).rows] == [1, 1]
    alone = replace(PANEL, rows=((PANEL.rows[0][0],), PANEL.rows[1]))
    assert [[mark.title for mark in chosen_panel(one, FigureChoices()).marks] for one in (PANEL, alone)] == [
        ["CLIP · s0", "CLOOB · s10"],
        [""],
    ], "titles that tell panels apart stay"
    explained = replace(PANEL, notes=("AUC is an area.", *PANEL.notes), table_notes=1)
    assert chosen_panel(explained, FigureChoices()).notes == plain.notes, "it has no table"
    assert len(chosen_panel(explained, FigureChoices(panels=("numbers",))).notes) == 3


def test_a_plot_without_a_title_is_laid_out_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(replace(PANEL, rows=((plot(0, ""),),)), FigureChoices()).savefig(io.BytesIO())


@pytest.mark.parametrize(
    ("runs", "names", "expected"),
    [
        (["CLIP · s0", "CLOOB · s0"], "short", {"CLIP · s0": "CLIP", "CLOOB · s0": "CLOOB"}),
        (["CLIP · s0", "CLIP · s1"], "short", {}),
        (["CLIP · s0", "CLOOB · s0"], "seed", {}),
        (["CLIP · s0", "mine"], "letters", {"CLIP · s0": "A", "mine": "B"}),
    ],
)
def test_labels_stay_apart(runs: list[str], names: str, expected: dict[str, str]):
    assert run_names(runs, FigureChoices(names=names)) == expected


def test_every_text_is_renamed_and_nothing_else():
    panel = replace(PANEL, notes=("CLIP · s1 and CLIP · s10: CLIP · s1, xCLIP · s1",))
    drawn = chosen_panel(panel, FigureChoices(names="letters"), ["CLIP · s1", "CLIP · s10"])
    assert drawn.notes[-1] == "A and B: A, xCLIP · s1"
    drawn = chosen_panel(PANEL, FigureChoices(panels=("all",)), ["CLIP · s0", "CLOOB · s10"])
    assert [mark.title for mark in drawn.marks] == ["CLIP", "CLOOB", "Numbers"]
    assert drawn.marks[0].curves[0].name == "CLIP"
    assert drawn.marks[0].key == "cosines-0"
    assert drawn.marks[2].columns == ("CLIP",)


@pytest.mark.parametrize(("width", "millimetres"), [("1", 88.9), ("2", 182.9), ("slide", 279.4)])
@pytest.mark.parametrize("size", ["7", "9"])
def test_a_figure_has_its_width_and_its_smallest_text(width: str, millimetres: float, size: str):
    choices = FigureChoices(width=width, text_size=size)
    found = FigureSize.of(draw(PANEL, choices))
    assert found.width_mm == pytest.approx(millimetres, abs=0.1)
    assert found.smallest_pt == pytest.approx(float(size) * (2 if width == "slide" else 1), abs=0.05)


@pytest.mark.slow
def test_files_are_as_large_as_chosen(charted: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files = [tmp_path / f"f.{kind}" for kind in ("svg", "pdf", "png")]
    chosen = options(FigureChoices(width="1", text_size="9", names="letters"))
    command = ["export", "similarity", "--runs", "1", "2", "--workspace", str(charted.folder), *chosen, "--json"]
    assert main([*command, "--out", *map(str, files)]) == 0
    figure = json.loads(capsys.readouterr().out)["figure"]
    svg, pdf, png = files
    drawn = svg.read_text(encoding="utf-8")
    assert [drawn.count(name) for name in (">matched, mean ", " most similar<")] == [2, 2], "every curve has a name"
    assert drawn.count(" unmatched · Scenes") == 1, "noted once, below"
    opening = re.search(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"', drawn)
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf.read_bytes())
    with Image.open(png) as picture:
        pixels = picture.size
        written = picture.text["Description"]
    for points in ([float(opening[1]), float(opening[2])], [float(box[1]), float(box[2])]):
        assert points == pytest.approx([figure["width_mm"] / 25.4 * 72, figure["height_mm"] / 25.4 * 72], abs=0.2)
    assert pixels == pytest.approx([figure["width_mm"] / 25.4 * 300, figure["height_mm"] / 25.4 * 300], abs=1.5)
    assert all(word in written for word in ("--width 1", "--text-size 9", "--names letters"))


def test_the_command_has_an_option_for_every_choice():
    changed = FigureChoices(("all",), "slide", "9", "letters", "short", "column", notes=False)
    words = options(changed)
    assert all(
        f"--{field.name.replace('_', '-')}" in words for field in fields_of(FigureChoices) if field.kind != "flag"
    )
    assert "--no-notes" in words
    assert options(FigureChoices()) == []


@pytest.mark.slow
def test_previews_are_drawn_by_the_same_command_and_computed_once(
    charted: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from trainer.charts import registry
    from trainer.cli import _chart_kinds

    chart, computed = registry.load("similarity"), []
    compute = chart.compute
    counted = replace(chart, compute=lambda *args: computed.append(1) or compute(*args))
    monkeypatch.setattr(_chart_kinds, "load", lambda name: counted if name == "similarity" else registry.load(name))
    ask = [["export", "similarity", "--runs", "1", "2", "--width", width] for width in ("1", "2")]
    ask += [["export", "similarity", "--runs", "1", "--panels", "none"], ["runs", "delete", "1"]]
    lines = [json.dumps({"number": number, "command": command}) for number, command in enumerate(ask)]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*lines, "no JSON"])))
    assert main(["preview", "--workspace", str(charted.folder)]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["number"] for answer in answers] == [0, 1, 2, 3, None]
    assert [round(answer["figure"]["width_mm"]) for answer in answers[:2]] == [89, 183]
    assert answers[0]["figure"]["parts"][0]["name"] == "cosines"
    assert "Choose of: all, cosines" in answers[2]["problem"]
    assert "draws nothing" in answers[3]["problem"]
    assert "cannot be drawn" in answers[4]["problem"]
    assert len(computed) == 2, "one result for each request, whatever the figure looks like"
