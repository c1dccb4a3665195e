"""Files appear atomically, contain their command, and cannot run as formulas."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from trainer.errors import UserError
from trainer.render_mpl.files import NumberRows, check_suffixes, json_text, write_csv, write_figure
from trainer.render_mpl.style import in_style, new_figure

pytestmark = pytest.mark.slow


@in_style
def figure():
    drawn = new_figure(2, 1)
    drawn.subplots().set_title("costs $5 and $6")
    return drawn


def numbers() -> NumberRows:
    return NumberRows(("text", "value"), [("=1+1", -2.5), ("plain", float("nan")), (None, 3)])


def test_every_format_is_written_with_its_command(tmp_path):
    files = [tmp_path / "deep" / f"x.{kind}" for kind in ("svg", "pdf", "png", "csv")]
    write_figure(files, figure=figure, rows=numbers, command="trainer export <x>", title="T")
    svg, pdf, png, table = files
    assert "trainer export &lt;x&gt;" in svg.read_text(encoding="utf-8")
    assert "costs $5 and $6" in svg.read_text(encoding="utf-8"), "text stays text, and is no formula"
    assert pdf.read_bytes().startswith(b"%PDF")
    assert b"(trainer export <x>)" in pdf.read_bytes()
    with Image.open(png) as picture:
        assert picture.size == (600, 300)
        assert picture.text["Description"] == "trainer export <x>"
    assert table.read_text(encoding="utf-8") == "text,value\n'=1+1,-2.5\nplain,\n,3\n"
    assert [p.name for p in sorted(svg.parent.iterdir())] == ["x.csv", "x.pdf", "x.png", "x.svg"]


def test_equal_figures_give_equal_files(tmp_path):
    for name in ("a", "b"):
        write_figure([tmp_path / f"{name}.svg", tmp_path / f"{name}.pdf"], figure=figure, rows=numbers, command="c")
    for kind in ("svg", "pdf"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_nothing_is_drawn_for_a_csv(tmp_path):
    write_figure([tmp_path / "x.csv"], figure=lambda: pytest.fail("drawn"), rows=numbers, command="")


def test_unknown_endings_and_bad_places_are_named(tmp_path):
    with pytest.raises(UserError, match=r"x\.gif: choose a name that ends in \.svg"):
        check_suffixes([tmp_path / "x.gif"])
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        write_figure([tmp_path / "file" / "x.csv"], figure=figure, rows=numbers, command="")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=5))
def test_no_text_cell_begins_like_a_formula(tmp_path_factory, texts: list[str]):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    write_csv(path, NumberRows(tuple("abcde"[: len(texts)]), [texts]))
    with path.open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file))[1]
    for text, cell in zip(texts, read):
        assert cell in (text, f"'{text}") if "\r" not in text else "\r" not in cell
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_json_is_strict():
    assert json.loads(json_text({1: [float("nan"), 1.5], "b": (float("inf"), None)})) == {
        "1": [None, 1.5],
        "b": [None, None],
    }
    assert np.isfinite(json.loads(json_text(0.1)))
