"""The code keeps the shape measured by `counts`."""

from __future__ import annotations

import pytest

from tests.rules import counts

pytestmark = pytest.mark.slow


def test_packages_have_few_modules_outside_rooms() -> None:
    assert len(counts.loose_files("trainer")) <= 8
    assert len(counts.loose_files("explorer")) <= 4


def test_public_classes_share_a_name_only_as_configuration_and_method() -> None:
    """`config.objectives.two_views.TwoViews` configures `methods.two_views.TwoViews`."""
    for name, modules in counts.colliding_classes().items():
        rooms = [module.rpartition(".")[0] for module in modules]
        assert rooms == ["trainer.config.objectives", "trainer.methods"], f"{name} is defined in {modules}"


def test_texts_imports_and_blank_lines_are_not_code() -> None:
    head = '"""Doc."""\n\nimport os\n\nTEXT = """one\ntwo\nthree"""\n# why\n'
    source = head + 'X = os.sep\n\n\ndef f():\n    """Doc."""\n    return X\n'
    assert counts.code_lines(source) == 3


def test_the_readme_is_short() -> None:
    assert counts.counts()["lines of the README"] <= 160  # type: ignore[operator]
