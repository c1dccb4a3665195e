from __future__ import annotations

from trainer.bench import losses


def test_measures_each_form_in_a_process_of_its_own():
    rows = list(losses.measure([64], dimension=16, objectives=("cloob",)))
    assert [(r.objective, r.form, r.pairs, r.note) for r in rows] == [
        ("cloob", "dense", 64, ""),
        ("cloob", "tiled", 64, ""),
    ]
    assert all(r.seconds > 0 for r in rows)


def test_dense_beyond_memory_is_not_run_and_says_why():
    (row,) = losses.measure([1_000_000], objectives=("open_clip",))
    assert row.seconds is None
    assert "not run: needs about" in row.note
