"""Maps pair points with their items and refuse layouts of other snapshots."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from trainer.charts import ChartError
from trainer.charts import map as map_chart
from trainer.charts.map import colour_columns, embedding_map
from trainer.charts.snapshots import choose_snapshot
from trainer.store import read_snapshot


@pytest.fixture
def folder(charted):
    return choose_snapshot(charted, charted.run(1)).folder


def test_images_come_first_then_texts(charted, folder):
    layout = np.arange(960, dtype=np.float32).reshape(480, 2)
    chart = embedding_map(charted, folder, layout)
    assert (chart.run, chart.name, chart.step, chart.n) == (1, "clip-scenes", 240, 240)
    assert chart.images[0].tolist() == [0, 1]
    assert chart.texts[0].tolist() == [480, 481]
    assert len(chart.captions) == len(chart.paths) == 240
    assert chart.classes == ()


def test_columns_colour_pairs(charted, folder):
    layout = np.zeros((480, 2), dtype=np.float32)
    items = read_snapshot(folder).items
    for column, values in (("label", items.label), ("subject_colour", items.metadata["subject_colour"])):
        chart = embedding_map(charted, folder, layout, colour=column)
        assert [chart.classes[i] for i in chart.class_of] == values
        assert list(chart.classes) == sorted(set(values))
    # Every item has one split and one relation: nothing to tell apart.
    assert colour_columns(items) == ("label", "subject_colour", "caption")


def test_numbers_are_coloured_along_a_scale(charted, folder, monkeypatch):
    items = read_snapshot(folder).items
    areas = [None, *(i / 2 for i in range(1, 240))]
    metadata = {**items.metadata, "area": areas, "few": [i % 3 for i in range(240)]}
    numbered = dataclasses.replace(items, metadata=metadata)
    snapshot = dataclasses.replace(read_snapshot(folder), items=numbered)
    monkeypatch.setattr(map_chart, "read_snapshot", lambda _: snapshot)
    layout = np.zeros((480, 2), dtype=np.float32)
    chart = embedding_map(charted, folder, layout, colour="area")
    assert chart.classes == ()
    assert np.isnan(chart.numbers[0])
    assert chart.numbers[1:].tolist() == areas[1:]
    assert "area" in colour_columns(numbered)
    # Few different numbers are classes.
    assert embedding_map(charted, folder, layout, colour="few").classes == ("0", "1", "2")


def test_wrong_layouts_and_columns_are_refused(charted, folder):
    with pytest.raises(ChartError, match="do not belong together"):
        embedding_map(charted, folder, np.zeros((10, 2), dtype=np.float32))
    with pytest.raises(ChartError, match="no column 'taste' to colour by; choose one of modality, label"):
        embedding_map(charted, folder, np.zeros((480, 2), dtype=np.float32), colour="taste")
