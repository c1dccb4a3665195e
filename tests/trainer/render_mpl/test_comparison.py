"""The comparison table in all of its formats."""

import dataclasses
import json

from trainer.charts.comparison import draw, records
from trainer.charts.measures.comparison import as_values, comparison
from trainer.charts.panel_tables import as_markdown, as_text
from trainer.render_mpl.files import json_text


def test_text_lines_up_and_marks_the_best(charted):
    table = comparison(charted, [1, 2])
    lines = as_text(draw(table, None)).splitlines()
    assert lines[0].startswith("One seed each (seed 0)")
    assert ["CLIP", "·", "s0", "CLOOB", "·", "s0"] in [line.split() for line in lines]
    recall = next(line for line in lines if "Image to text R@1" in line)
    assert recall.count("*") == 1
    assert f"{100 * charted.results.last_values(2)['val/image_to_text_R@1']:.1f} %" in recall
    assert "Scenes, unseen renderings, retrieval, n = 240" in lines
    ends = {len(line.removesuffix("*").rstrip()) for line in lines if "R@" in line}
    assert len(ends) == 1, "numbers end in one column"


def test_markdown_escapes_names(charted):
    table = comparison(charted, [1, 2])
    named = dataclasses.replace(table.runs[0], name="a|b\n`c`")
    text = as_markdown(draw(dataclasses.replace(table, runs=(named, table.runs[1])), None))
    assert "| | a\\|b \\`c\\` | CLOOB · s0 |" in text.splitlines()
    assert {line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")} == {4}


def test_rows_and_values_tell_the_same(charted):
    table = comparison(charted, [1, 2])
    values = json.loads(json_text(as_values(table)))
    header, rows = records(table, None)
    assert len(rows) == 2 * len(values["rows"])
    value, best = header.index("value"), header.index("best")
    assert [row[value] for row in rows] == [v for row in values["rows"] for v in row["values"]]
    assert sum(row[best] for row in rows) == sum(len(row["best"]) for row in values["rows"])
