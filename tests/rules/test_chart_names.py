"""One name per chart: its file, tab, kind of export, kind of analysis, test id and test; no aliases."""

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from explorer.views import VIEWS
from tests.rules.sources import nodes
from trainer.charts import registry
from trainer.cli._chart_kinds import analyze_kinds, export_kinds

ROOT = Path(__file__).parents[2]
VERBS = {"classify", "decode", "saliency"}
"""Commands that stand next to `export` in a list of those that draw."""
SPECIAL = {"map": "map", "timeline": "timeline"}
"""Kind of `trainer export` that is a map or a film -> view that it is in."""


def wrong_names(chart: SimpleNamespace, name: str, view: str) -> Iterator[str]:
    """Yield how a chart of the registry has another name somewhere."""
    if chart.name != name:
        yield f"{name}: the chart calls itself {chart.name}"
    if chart.view != view:
        yield f"{name}: is listed under {view}, and says {chart.view}"
    if not (ROOT / "trainer" / "charts" / f"{name.replace('-', '_')}.py").is_file():
        yield f"{name}: has no file of its name"
    if view not in {entry.name for entry in VIEWS}:
        yield f"{name}: {view} is not a view"


def exported_kinds(source: str) -> Iterator[str]:
    """Yield the kinds in literal commands such as ["export", "map", ...] and ("trainer", "analyze", "gap")."""
    for node in nodes(source):
        if isinstance(node, ast.List | ast.Tuple):
            words = [one.value if isinstance(one, ast.Constant) else None for one in node.elts]
            for verb, kind in itertools.pairwise(words):
                if (
                    verb in ("export", "analyze")
                    and isinstance(kind, str)
                    and not kind.startswith("-")
                    and kind not in VERBS
                ):
                    yield kind


def imports_drawing(source: str) -> set[str]:
    """Return the plotting libraries that a module imports."""
    found = set()
    for node in nodes(source):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {name.split(".")[0] for name in names} & {"pyqtgraph", "matplotlib"}
    return found


@pytest.mark.parametrize("name", registry.names())
def test_a_chart_has_one_name(name: str):
    view = next(view for view, charts in registry.BUILT_IN.items() if name in charts)
    assert list(wrong_names(registry.load(name), name, view)) == []
    assert set(export_kinds(name)) == set(analyze_kinds(name)) == {name}


def test_names_and_labels_are_unique():
    assert len({*registry.names()}) == len(registry.names())
    for view in registry.BUILT_IN:
        labels = [chart.label for chart in registry.charts_of(view)]
        assert len({*labels}) == len(labels), view


def test_a_planted_alias_is_found():
    chart = SimpleNamespace(name="hubs", view="hub")
    assert len(list(wrong_names(chart, "k-occurrence", "search"))) == 3
    assert list(exported_kinds('x = ["export", "hubs", "--runs", "1"]')) == ["hubs"]


def test_the_window_names_charts_as_the_commands_do():
    known = {*registry.names(), *SPECIAL, "pair", "pairs"}
    named = {
        (path.relative_to(ROOT).as_posix(), kind)
        for path in (ROOT / "explorer").rglob("*.py")
        for kind in exported_kinds(path.read_text(encoding="utf-8"))
    }
    assert {kind for _, kind in named} >= {*SPECIAL, "search", "curves"}
    assert [one for one in named if one[1] not in known] == []


def test_kinds_outside_of_the_registry_are_the_special_views():
    own = {path.stem for path in (ROOT / "trainer" / "cli" / "export").glob("*.py")} - {"__init__"}
    assert own == {*SPECIAL}
    assert {*SPECIAL.values()} <= {entry.name for entry in VIEWS}


ALLOWED = {"map/coloring.py"}
"""Of `explorer/views`: takes the colors of points from pyqtgraph."""


def test_views_draw_charts_from_panels_only():
    views = ROOT / "explorer" / "views"
    drawing = {
        path.relative_to(views).as_posix()
        for path in views.rglob("*.py")
        if imports_drawing(path.read_text(encoding="utf-8"))
    }
    assert drawing == ALLOWED
    assert imports_drawing("import pyqtgraph as pg") == {"pyqtgraph"}, "a planted one is found"
