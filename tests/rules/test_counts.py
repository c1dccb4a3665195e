"""The code keeps the shape measured by `counts`."""

import pytest

from tests.rules import counts

pytestmark = pytest.mark.slow


def test_packages_have_few_modules_outside_rooms() -> None:
    assert len(counts.loose_files("trainer")) <= 8
    assert len(counts.loose_files("explorer")) <= 5


def test_public_classes_share_a_name_only_as_configuration_and_method() -> None:
    """`config.objectives.two_views.TwoViews` configures `methods.two_views.TwoViews`."""
    for name, modules in counts.colliding_classes().items():
        rooms = [module.rpartition(".")[0] for module in modules]
        assert rooms == ["trainer.config.objectives", "trainer.methods"], f"{name} is defined in {modules}"


def test_texts_imports_and_blank_lines_are_not_code() -> None:
    head = '"""Doc."""\n\nimport os\n\nTEXT = """one\ntwo\nthree"""\n# why\n'
    source = head + 'X = os.sep\n\n\ndef f():\n    """Doc."""\n    return X\n'
    assert counts.code_lines(source) == 3


def test_a_chart_is_one_short_file() -> None:
    long = {name for name, lines in counts.chart_table().items() if lines[0] > counts.MOST_CODE}
    assert not long, "move what repeats to the layer, and what others use to a module of its own"


def test_what_a_chart_computes_has_its_name() -> None:
    assert counts.measures().keys() <= counts.charts().keys()
    for name, source in counts.measures().items():
        assert f"trainer.charts.measures.{name.replace('-', '_')}" in counts.charts()[name], f"{name} does not use it"
        assert "CHART" not in source
    assert counts.modules_of_one_chart() == PARTS, "call it trainer/charts/measures/NAME.py, as the chart"


PARTS = {
    "concept_effects": "concepts",
    "experiment_tables": "experiment_verdict",
    "outcome_by_field": "experiment_verdict",
    "similarity_tables": "similarity",
}
"""Module that draws a part of one chart -> the chart."""


MOST_PRIVATE = 74
"""Uses of private attributes in tests; it can only become less: give a class a public hook instead."""


def test_tests_use_ever_fewer_private_names() -> None:
    assert counts.private_names_in_tests() <= MOST_PRIVATE, "give the class a public hook instead"


MOST_SOURCE, MOST_CODE_OF_ALL, MOST_TESTS = 171_750, 105_574, 101_955
"""Lines of explorer and trainer, of these code (no documentation, imports, blank lines), and of tests.

They only fall, but for a new capability by what it needs; its commit says so.
"""


def test_the_code_gets_no_heavier() -> None:
    assert counts.source_lines("explorer", "trainer") <= MOST_SOURCE
    assert counts.code_in("explorer", "trainer") <= MOST_CODE_OF_ALL
    assert counts.source_lines("tests") <= MOST_TESTS
