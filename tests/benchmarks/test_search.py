"""Exact search is timed against the bare product, on vectors with close neighbors."""

from __future__ import annotations

import json

import numpy as np

from tests.benchmarks.__main__ import main
from tests.benchmarks.search import made_up


def test_both_ways_are_timed(capsys):
    assert main(["search", "--rows", "2000", "--dimension", "32", "--questions", "5", "--json"]) == 0
    bare, exact = json.loads(capsys.readouterr().out)
    assert (bare["way"], exact["way"], exact["rows"], exact["dimension"]) == ("bare product", "exact", 2000, 32)
    assert bare["times_bare"] == 1
    assert min(exact["milliseconds"], exact["p95_ms"]) > 0
    assert main(["search", "--rows", "500", "--dimension", "8", "--questions", "3"]) == 0
    assert "times bare" in capsys.readouterr().out


def test_made_up_vectors_have_neighbors():
    vectors, asked = made_up(3_000, 64, seed=0), made_up(20, 64, seed=0, draw=1)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    nearest = (asked @ vectors.T).max(axis=1)
    evenly = np.random.default_rng(0).standard_normal((3_000, 64))
    evenly /= np.linalg.norm(evenly, axis=1, keepdims=True)
    assert nearest.mean() > (asked @ evenly.T).max(axis=1).mean() + 0.2
