"""Rows of snapshots are drawn, permuted and drawn again by `trainer.analysis.units` alone: a pair is no unit."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.rules.sources import nodes

ROOT = Path(__file__).resolve().parents[2]
WHERE: Final = ("trainer/charts", "trainer/analysis", "trainer/evaluation")
PAIRS: Final = "trainer/evaluation"
DRAWS: Final = frozenset({"permutation", "permuted", "shuffle", "choice", "multinomial", "resample"})
ELSEWHERE: Final = {
    "trainer/analysis/units.py": "the place for it",
    "trainer/analysis/sampling.py": "`at_most`, of units",
    "trainer/analysis/separation.py": "draws the groups of `Units.bootstrap_groups`",
    "trainer/analysis/significance.py": "draws stored answers, one a question",
    "trainer/analysis/shuffled.py": "the level of shuffled pairs is of shuffled pairs",
    "trainer/analysis/linear_probe.py": "draws rows of an evaluation, which are given by group",
    "trainer/analysis/label_shares.py": "draws labels of a training",
    "trainer/analysis/hopfield.py": "draws stored patterns, which are distinct",
    "trainer/analysis/neighbor_cells.py": "draws first centers, and rows on which the recall of a search is measured",
    "trainer/analysis/tiled_ranks.py": "orders distinct questions, all of which ask",
    "trainer/analysis/skip_gram_pairs.py": "draws negatives among the words of a vocabulary",
    "trainer/analysis/cluster_words.py": "draws rows that k-means is fitted on, and captions that are read",
    "trainer/analysis/separated_groups.py": "draws landmarks among rows that are distinct pictures",
    "trainer/analysis/sparse_dictionary.py": "draws its batches and first concepts",
    "trainer/analysis/similarity_matrix.py": "k-means draws its first centers, to order a matrix",
    "trainer/analysis/effective_robustness.py": "draws runs",
    "trainer/charts/field_importance.py": "permutes a field of runs",
    "trainer/analysis/margins.py": "draws negatives of a picture of a loss",
    "trainer/evaluation/tasks.py": "halves the rows that a temperature is fitted on; they are distinct pictures",
    "trainer/evaluation/fine_tuning.py": "orders training batches of the distinct pictures that it is given",
    "trainer/evaluation/picture_judge.py": "orders training batches of the judge of a decoder",
    "trainer/evaluation/generative.py": "orders and holds out rows of `distinct_pictures`",
    "trainer/evaluation/decode_measures.py": "counts the answers on `distinct_pictures`",
    "trainer/evaluation/data_quality.py": "judges pairs, each by its own caption; pictures by their path once",
    "trainer/evaluation/neighbors.py": "draws pairs of which no pixels are read yet, and stores each picture once",
}
"""Files that draw something else -> what."""
ROWS: Final = frozenset({"n", "pairs"})
"""What `at_most` may not be given: the number of rows of a snapshot."""


def draws(source: str, *, pairs: bool = False) -> Iterator[tuple[int, str]]:
    """Yield calls that permute or draw, samples of the rows of a snapshot, and n of rows that an interval is given.

    In `trainer.evaluation`, which has `pairs` at hand, samples and n of `len(...)` too: charts count units by then.
    """
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        if name in DRAWS and isinstance(node.func, ast.Attribute):
            yield node.lineno, name
        if name == "integers" and first is not None and any(_counts(one) for one in node.args):
            yield node.lineno, "integers(len(rows))"
        if name == "at_most" and isinstance(first, ast.Attribute) and first.attr in ROWS:
            yield node.lineno, f"at_most(.{first.attr})"
        if pairs and name == "at_most" and first is not None and _counts(first):
            yield node.lineno, "at_most(len(rows))"
        if name == "wilson" and any(isinstance(one, ast.Attribute) and one.attr in ROWS for one in node.args[1:]):
            yield node.lineno, "wilson(share, .n)"
        if pairs and name == "wilson" and any(_counts(one) for one in node.args[1:]):
            yield node.lineno, "wilson(share, len(rows))"


def _counts(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len"


def test_only_units_draw_rows_of_snapshots():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for folder in WHERE
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.relative_to(ROOT).as_posix() not in ELSEWHERE
        for line, what in draws(path.read_text(encoding="utf-8"), pairs=folder == PAIRS)
    ]
    assert wrong == []


def test_what_draws_elsewhere_is_still_there():
    for name in ELSEWHERE:
        source = (ROOT / name).read_text(encoding="utf-8")
        assert list(draws(source, pairs=name.startswith(PAIRS))) or "default_rng" in source, (
            f"{name} draws nothing any more: take it off the list"
        )


def test_planted_draws_of_rows_are_found():
    planted = """
order = np.random.default_rng(0).permutation(snapshot.n)
rows = at_most(snapshot.n, 4_000)
again = rng.integers(0, len(rows), len(rows))
some = rng.choice(rows, 5)
low, high = wilson(share, found.n)
held = pairs.part(at_most(len(pairs), 200), split="test")
low, high = wilson(share, len(pairs))
"""
    assert [what for _, what in sorted(draws(planted, pairs=True))] == [
        "permutation", "at_most(.n)", "integers(len(rows))", "choice", "wilson(share, .n)",
        "at_most(len(rows))", "wilson(share, len(rows))",
    ]  # fmt: skip
    assert len(list(draws(planted))) == 5
    assert not list(draws("rows = units.rows('picture', 9)\ndrawn = at_most(units.rows('pair'), 9)\nrng.integers(5)"))
