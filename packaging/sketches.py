"""Writes the small pictures of all charts: `uv run python packaging/sketches.py WORKSPACE`.

The workspace needs a run of CLIP and one of CLOOB with checkpoints (`uv run trainer demo` makes them): each chart is
computed of the first of each. What needs many runs, an experiment or evaluations is drawn by hand.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trainer.charts import registry
from trainer.charts.settings import parse
from trainer.charts.sketch import Shape, Sketch, SketchFrame, sketch_of, to_json
from trainer.charts.spec import Chart, Request, Target
from trainer.errors import UserError
from trainer.inference.chart_query import with_vectors
from trainer.store import Workspace

FILE = Path(__file__).resolve().parent.parent / "assets" / "reference" / "chart-sketches.json"
OPTIONS: dict[str, list[str]] = {
    "axes": ["x=a red ring", "y=a star"],
    "search": ["query_text=a red ring"],
    "probe-strip": ["text=a red ring"],
}
QUIET, A, B = "quiet", "run_a", "run_b"


def drawings() -> dict[str, Sketch]:
    """Return what is drawn and not computed: charts of many runs, experiments and evaluations, and tables of a view."""
    x = np.linspace(0, 1, 32)
    rising = [0.92 * (1 - np.exp(-k * x)) for k in (4.5, 2.8)]
    noise = np.random.default_rng(0)
    cells = noise.uniform(0, 0.45, (12, 12)) + 0.55 * np.eye(12)
    return {
        "curves": lines((A, x, rising[0]), (B, x, rising[1])),
        "forgetting": lines((A, x, 0.1 + 0.8 * rising[0]), (B, x, 0.9 - 0.7 * rising[1])),
        "experiment-curves": (
            SketchFrame(
                (*bands(A, x, rising[0]), *bands(B, x, rising[1]), line(A, x, rising[0]), line(B, x, rising[1]))
            ),
        ),
        "protocol": intervals((A, 0.8, 0.04), (A, 0.7, 0.12), (A, 0.52, 0.1), (A, 0.45, 0.16), (A, 0.4, 0.06)),
        "generative-classes": (SketchFrame((*squares(A, 0.56), *squares(B, 0.06)), axes=False),),
        "caption-choice": intervals((A, 0.52, 0.1), (B, 0.7, 0.1), (A, 0.48, 0.1), (B, 0.82, 0.08)),
        "separated-groups": dots((A, np.array([[0.6, 0.2], [0.8, 0.3], [0.7, 0.1]])), (B, np.array([[0.2, 0.7]]))),
        "experiment-verdict": intervals((A, 0.72, 0.12), (B, 0.46, 0.2), (B, 0.3, 0.24)),
        "map-of-models": dots((A, noise.normal(0.3, 0.07, (7, 2))), (B, noise.normal(0.68, 0.08, (7, 2)))),
        "config-difference": (SketchFrame(tuple(rows_of_table(5, 3)), axes=False),),
        "parallel-coordinates": (
            SketchFrame(
                tuple(line(A if at % 2 else B, np.linspace(0, 1, 4), noise.uniform(0.1, 0.9, 4)) for at in range(9)),
                axes=False,
            ),
        ),
        "field-importance": bars(A, (0.9, 0.62, 0.41, 0.2, 0.1)),
        "field-grid": (
            SketchFrame((Shape("cells", A, tuple(map(tuple, np.add.outer(x[::6], x[::5]) / 2))),), axes=False),
        ),
        "effective-robustness": (
            SketchFrame((line(QUIET, x, 0.1 + 0.75 * x), *dots((A, noise.uniform(0.3, 0.8, (5, 2))))[0].shapes)),
        ),
        "evaluation-scores": (
            SketchFrame(tuple(paired_bars((0.92, 0.84), (0.71, 0.77), (0.6, 0.52), (0.4, 0.44))), axes=False),
        ),
        "comparison": (SketchFrame(tuple(rows_of_table(6, 4)), axes=False),),
        "confusion": (SketchFrame((Shape("cells", A, tuple(map(tuple, cells))),), axes=False),) * 2,
        "evaluation-curves": lines((QUIET, x, x), (A, x, x**1.5), (B, x, x**0.8)),
        "groups": intervals((A, 0.74, 0.08), (A, 0.6, 0.1), (B, 0.56, 0.12), (B, 0.4, 0.1)),
        "data-efficiency": lines((A, x, x**0.5 * 0.9), (B, x, x**0.8 * 0.86)),
        "pairs": (SketchFrame(tuple(paired_bars((0.9, 0.3), (0.25, 0.8), (0.7, 0.35), (0.2, 0.6))), axes=False),),
        "probe-strip": (SketchFrame((*squares(A, 0.56), *squares(B, 0.06)), axes=False),),
        "accuracy-by-size": dots((A, np.column_stack([x[4::6], x[4::6] ** 0.6 * 0.8])), (B, np.array([[0.5, 0.82]]))),
        "probe-by-set": (
            SketchFrame((line(QUIET, x, x), *dots((A, np.column_stack([x[4::4], x[4::4] * 0.8 + 0.06])))[0].shapes)),
        ),
        "published-table": (SketchFrame(tuple(rows_of_table(6, 5)), axes=False),),
        "mispairs": dots((QUIET, noise.normal(0.55, 0.12, (60, 2))), ("bad", noise.uniform(0.05, 0.3, (6, 2)))),
        "matrix": tuple(
            SketchFrame(
                (Shape("cells", tone, tuple(map(tuple, noise.uniform(0, 0.5, (14, 14)) + 0.5 * np.eye(14)))),),
                axes=False,
            )
            for tone in (A, B)
        ),
    }


def line(tone: str, x: np.ndarray, y: np.ndarray, kind: str = "line") -> Shape:
    """Return a line, or the outline of an area."""
    return Shape(kind, tone, tuple(zip(map(float, x), map(float, y), strict=True)))  # type: ignore[arg-type]


def lines(*curves: tuple[str, np.ndarray, np.ndarray]) -> Sketch:
    """Return one plot of these curves."""
    return (SketchFrame(tuple(line(*curve) for curve in curves)),)


def bands(tone: str, x: np.ndarray, y: np.ndarray) -> tuple[Shape, ...]:
    """Return the range of seeds around a curve."""
    return (line(tone, [*x, *x[::-1]], [*(y + 0.06), *(y[::-1] - 0.06)], "area"),)  # type: ignore[arg-type]


def dots(*clouds: tuple[str, np.ndarray]) -> Sketch:
    """Return one plot of these points."""
    return (SketchFrame(tuple(Shape("dots", tone, tuple(map(tuple, cloud))) for tone, cloud in clouds)),)


def bars(tone: str, lengths: tuple[float, ...]) -> Sketch:
    """Return bars that lie."""
    step = 1 / len(lengths)
    return (
        SketchFrame(
            (Shape("bars", tone, tuple((0.0, 1 - (i + 0.8) * step, v, 0.6 * step) for i, v in enumerate(lengths))),)
        ),
    )


def intervals(*means: tuple[str, float, float]) -> Sketch:
    """Return means with intervals, one row each."""
    shapes = []
    for at, (tone, mean, half) in enumerate(means):
        y = 1 - (at + 0.5) / len(means)
        shapes += [line(tone, [mean - half, mean + half], [y, y]), Shape("dots", tone, ((mean, y),))]  # type: ignore[arg-type]
    return (SketchFrame(tuple(shapes)),)


def paired_bars(*rows: tuple[float, float]) -> Iterator[Shape]:
    """Yield rows of a name, a bar of A and a bar of B."""
    step = 1 / len(rows)
    yield Shape("bars", QUIET, tuple((0.0, 1 - (i + 0.6) * step, 0.2 + 0.03 * (i % 3), 0.05) for i in range(len(rows))))
    for at, tone in enumerate((A, B)):
        tops = [1 - (i + 0.2 + 0.3 * (at + 1)) * step for i in range(len(rows))]
        yield Shape(
            "bars", tone, tuple((0.3, top, 0.7 * row[at], 0.24 * step) for top, row in zip(tops, rows, strict=True))
        )


def squares(tone: str, bottom: float) -> Iterator[Shape]:
    """Yield a row of pictures, some of them found."""
    for color, slots in ((tone, (0, 2, 3)), (QUIET, (1, 4, 5))):
        yield Shape("bars", color, tuple((0.04 + 0.16 * at, bottom, 0.12, 0.38) for at in slots))


def rows_of_table(rows: int, columns: int) -> Iterator[Shape]:
    """Yield a table of stubs of words."""
    step, wide = 1 / rows, 1 / (columns + 1)
    for column in range(columns + 1):
        tone = QUIET if column in (0, columns) else (A, B)[column % 2]
        widths = [wide * (0.45 + 0.35 * ((3 * row + 2 * column) % 4) / 3) for row in range(rows)]
        yield Shape("bars", tone, tuple((column * wide, 1 - (r + 0.6) * step, w, 0.05) for r, w in enumerate(widths)))


def sketch(workspace: Workspace, chart: Chart[Any, Any], runs: tuple[int, ...]) -> list[Any]:
    """Return the sketch of a chart of these runs."""
    settings = parse(chart.settings, OPTIONS.get(chart.name, []))
    request = Request(tuple(map(Target, runs[:1] if chart.needs == "one_run" else runs)))
    request = Request() if chart.needs == "none" else request
    request = with_vectors(workspace, chart, request, settings, lambda *_: None)
    return to_json(sketch_of(chart.panel(chart.result(workspace, request, settings, lambda *_: None), settings)))


def main(folder: Path, only: list[str]) -> None:
    """Write the sketches of all charts, or of some."""
    workspace = Workspace(folder)
    rows = workspace.runs.all()
    runs = tuple(next(row.id for row in rows if row.objective == kind) for kind in ("clip", "cloob"))
    sketches = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    drawn_by_hand = {name: to_json(frames) for name, frames in drawings().items()}
    charts = [name for group in registry.BUILT_IN.values() for name in group if name not in drawn_by_hand]
    for name in only or charts:
        try:
            drawn = sketch(workspace, registry.load(name), runs)
        except (UserError, ValueError) as problem:
            print(f"{name}: {problem}")
            continue
        sketches[name] = drawn or sketches.get(name, [])
        print(f"{name}: {len(json.dumps(drawn)):,} bytes")
    sketches |= drawn_by_hand
    text = ",\n".join(f"{json.dumps(name)}: {json.dumps(sketches[name])}" for name in sorted(sketches))
    FILE.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("charts", nargs="*", help="only these")
    args = parser.parse_args()
    main(args.workspace, args.charts)
