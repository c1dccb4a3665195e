"""Each intent has one taker: a view that there is, or the window."""

import ast
from pathlib import Path
from typing import get_args

import pytest

from explorer import intents, views
from explorer.views import VIEWS
from explorer.window.intent_router import VIEW_OF


def test_every_intent_of_a_view_has_a_view_and_no_other_has_one() -> None:
    assert set(VIEW_OF) == set(get_args(intents.ViewIntent))


def test_the_window_takes_every_other_intent(window_of, tmp_path) -> None:
    window = window_of(tmp_path, VIEWS[:1], ready=False)
    assert set(window.takers()) == set(get_args(intents.WindowIntent))


@pytest.mark.parametrize("intent", VIEW_OF, ids=lambda intent: intent.__name__)
def test_the_view_of_an_intent_has_a_case_for_it(intent: type) -> None:
    folder, name = Path(views.__file__).parent, VIEW_OF[intent]
    (source,) = (path for path in (folder / name / "view.py", folder / f"{name}.py") if path.exists())
    tree = ast.parse(source.read_text(encoding="utf-8"))
    classes = {ast.unparse(node.cls) for node in ast.walk(tree) if isinstance(node, ast.MatchClass)}
    assert intent.__name__ in classes
