"""Zoomable maps as data for a browser, and as a section of a page that needs no server."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int, UInt8

from trainer.analysis.separation import bar_count
from trainer.charts import objective_label
from trainer.charts.colored_points import ColoredPoints
from trainer.charts.map import MapChart
from trainer.charts.marks import FEW_LIT, HUE_KEPT
from trainer.charts.measures.similarity import SimilaritySettings
from trainer.charts.pair_colors import MODALITY, words
from trainer.errors import UserError
from trainer.metrics import data_label
from trainer.render_mpl.pair_map import colors_of_pairs, colors_of_table
from trainer.render_mpl.style import IMAGE_COLOR, TEXT_COLOR, run_color

MOST_POINTS: Final = 200_000
"""Points of all maps of a page; of more pairs some are drawn at random."""
MOST_PICTURES: Final = 1_500
"""Pairs of a page that show their picture."""
_SIDE: Final = 96
_MOST_CAPTION: Final = 160
_MARGIN: Final = 0.03
_MOST_LEGEND: Final = 24
Thumbnails = Callable[[Sequence[str], int], Sequence[UInt8[np.ndarray, "s s 3"] | None]]
"""Decodes pictures to squares of so many pixels; None for one that cannot be shown."""


@dataclass(frozen=True)
class LiveMapInput:
    """One map."""

    chart: MapChart  # Places and colors.
    # Of each pair's image with its own text; None where one of them is missing.
    cosines: Float[np.ndarray, " n"] | None


def live_map(maps: Sequence[LiveMapInput], thumbnails: Thumbnails) -> dict[str, Any]:
    """Return plain values from which `live_map.js` draws the maps side by side.

    Places are kept to 1/65,535 of a map's side, cosines to 1/32,767.

    Raises:
        UserError: The maps show different pairs.
    """
    first = maps[0].chart
    if any(live.chart.n != first.n or live.chart.captions != first.captions for live in maps):
        raise UserError("One page shows maps of the same pairs. Choose runs with the same held-out data.")
    rows = _drawn(maps)
    cosines = [live.cosines[rows] for live in maps if live.cosines is not None]
    together = np.concatenate(cosines) if cosines else np.array([0.0, 1.0])
    pictures = _pictures([first.paths[row] for row in rows], thumbnails)
    sampled = f" {len(rows):,} of {first.n:,} pairs, drawn at random." if len(rows) < first.n else ""
    pictured = sum(1 for picture in pictures if picture)
    some = f" Pictures of {pictured:,} pairs, drawn at random." if 0 < pictured < len(rows) else ""
    ends = [float(np.floor(together.min() * 1000) / 1000), float(np.ceil(together.max() * 1000) / 1000)]
    return {
        "maps": [_map(live, name, index, rows) for index, (live, name) in enumerate(zip(maps, _names(maps)))],
        "captions": [first.captions[row][:_MOST_CAPTION] for row in rows],
        "classes": [_class(first.colors, row) for row in rows],
        "pictures": pictures,
        "ends": ends,
        "bars": min(bar_count(each, (ends[0], ends[1]), SimilaritySettings().bins) for each in cosines or [together]),
        "size": 6 if len(rows) < 3_000 else 3 if len(rows) < 30_000 else 1,
        "few": FEW_LIT,
        "hue_kept": HUE_KEPT,
        "legend": _legend(first.colors),
        "note": f"Color: {words(first.colors.by)}. Images are discs, texts diamonds.{sampled}{some}",
    }


def section(data: dict[str, Any]) -> str:
    """Return the part of a page that draws the maps; `style` and `policy` belong to the page's head."""
    packed = base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 6, mtime=0)).decode()
    return (
        '<h2>Maps</h2><p class="quiet">Wheel or + and - zoom, drag or arrow keys move, a double click or 0 shows all; '
        'point at a pair to see it in every map.</p><div id="live-maps"></div><noscript><p>The maps need '
        f'scripts.</p></noscript><script type="text/plain" id="live-data">{packed}</script><script>{_script()}</script>'
    )


def style() -> str:
    """Return the style sheet of the maps."""
    return _beside("live_map.css")


def policy() -> str:
    """Return what the page may run: this script alone, by its hash."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
    return f"script-src 'sha256-{digest}'"


@cache
def _beside(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    start = 'unpacked(document.getElementById("live-data").textContent).then((data) => {\n'
    start += '  window.liveMaps = new LiveMaps(document.getElementById("live-maps"), data);\n});\n'
    return _beside("live_map.js") + start


def widget_module() -> str:
    """Return the module that anywidget runs: `render` draws the maps and tells which pair is pointed at."""
    return (
        _beside("live_map.js")
        + """
export default {
  async render({ model, el }) {
    const data = await unpacked(model.get("packed"));
    new LiveMaps(el, data, (pair) => { model.set("pair", pair); model.save_changes(); });
  },
};
"""
    )


def packed(data: dict[str, Any]) -> str:
    """Return the data as the widget takes it."""
    return base64.b64encode(gzip.compress(json.dumps(data).encode(), 6, mtime=0)).decode()


def _drawn(maps: Sequence[LiveMapInput]) -> Int[np.ndarray, " k"]:
    """Return the pairs that are drawn, ascending: all, or as many at random as fit, the same every time."""
    each = sum((live.chart.images is not None) + (live.chart.texts is not None) for live in maps)
    most, n = MOST_POINTS // each, maps[0].chart.n
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def _names(maps: Sequence[LiveMapInput]) -> list[str]:
    """Return what maps are called: the steps, too, where one run is shown at several."""
    names = [live.chart.name for live in maps]
    steps = ["" if live.chart.step is None else f", step {live.chart.step:,}" for live in maps]
    return [name + step if names.count(name) > 1 else name for name, step in zip(names, steps, strict=True)]


def _map(live: LiveMapInput, name: str, index: int, rows: Int[np.ndarray, " k"]) -> dict[str, Any]:
    chart = live.chart
    sides = [points[rows] for points in (chart.images, chart.texts) if points is not None]
    points = _fitted(np.concatenate(sides))
    images = len(rows) if chart.images is not None else 0
    plain = [IMAGE_COLOR] * (chart.images is not None) + [TEXT_COLOR] * (chart.texts is not None)
    colors = np.concatenate([_colors(chart.colors, color, rows) for color in plain])
    step = f"step {chart.step:,}" if chart.step is not None else ""
    facts = (objective_label(chart.objective), step, data_label(chart), f"n = {chart.n:,} pairs")
    method = {"pca": "PCA of images and texts together", "umap": "UMAP; distances between clusters mean nothing"}
    method["umap-learn"] = method["umap"]
    return {
        "name": name,
        "title": name,
        "question": ", ".join(fact for fact in facts if fact.strip()) + f". {method.get(chart.method, chart.method)}",
        "pairs": len(rows),
        "count": f"{len(rows):,}",
        "images": images,
        "color": run_color(index),
        "x": _text(points[:, 0]),
        "y": _text(65_535 - points[:, 1]),
        "colors": _text(colors),
        "cosines": "" if live.cosines is None else _text(np.round(live.cosines[rows] * 32_767).astype("<i2")),
    }


def _fitted(points: Float[np.ndarray, "m 2"]) -> Int[np.ndarray, "m 2"]:
    """Return the points as integers up to 65,535 within a square, their proportions kept."""
    low, high = points.min(axis=0), points.max(axis=0)
    side = float((high - low).max()) or 1.0
    unit = (points - (low + high) / 2) / side * (1 - 2 * _MARGIN) + 0.5
    return np.round(unit * 65_535).astype("<u2")


def _colors(points: ColoredPoints, plain: str, rows: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
    """Return a color of four bytes for each pair: red, green, blue, opaque."""
    from matplotlib.colors import to_rgba_array

    colors = colors_of_pairs(points, plain)
    values = to_rgba_array([plain] * len(rows) if isinstance(colors, str) else colors[rows])
    parts = np.round(values * 255).astype(np.uint32)
    return (255 << 24 | parts[:, 2] << 16 | parts[:, 1] << 8 | parts[:, 0]).astype("<u4")


def _legend(points: ColoredPoints) -> list[tuple[str, str]]:
    if points.by == MODALITY:
        return [("images", IMAGE_COLOR), ("texts", TEXT_COLOR)]
    if not points.names:
        return []
    some = [(name[:_MOST_CAPTION], color) for name, color in zip(points.names, colors_of_table(points))][:_MOST_LEGEND]
    more = len(points.names) - len(some)
    return some if not more else [*some, (f"and {more} more", "transparent")]


def _class(points: ColoredPoints, row: int) -> str:
    if points.numbers is not None:
        return f"{words(points.by)} {points.numbers[row]:.4g}"
    return (
        points.names[points.place[row]][:_MOST_CAPTION] if points.place is not None and points.place[row] >= 0 else ""
    )


def _pictures(paths: Sequence[str], thumbnails: Thumbnails) -> list[str]:
    """Return JPEG files as base64 in the order of the pairs; empty where there is no picture."""
    from PIL import Image

    n = len(paths)
    chosen = np.arange(n) if n <= MOST_PICTURES else np.sort(np.random.default_rng(1).permutation(n)[:MOST_PICTURES])
    chosen = np.array([row for row in chosen if paths[row]], np.int64)
    encoded = [""] * n
    for row, pixels in zip(chosen, thumbnails([paths[row] for row in chosen], _SIDE), strict=True):
        if pixels is not None:
            content = io.BytesIO()
            Image.fromarray(pixels).save(content, "JPEG", quality=72)
            encoded[row] = base64.b64encode(content.getvalue()).decode()
    return encoded


def _text(numbers: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode()
