"""Every chart on a snapshot whose pictures are written k times with k captions, and on one whose captions are.

A pair is not an independent item: numbers of pictures must be those of each picture once, no n of pictures may grow,
and no interval may become narrower. All numbers that a chart prints are compared; what may differ is named, with its
reason.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from trainer import cli, config
from trainer.analysis.units import units_of_numbers
from trainer.charts import registry, small_multiples
from trainer.charts.class_task import ClassTexts, write_class_texts
from trainer.charts.measures import separated_groups
from trainer.charts.mispairs import mispairs
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.projection.fitting import PointPlacement, fit
from trainer.projection.layouts import unit_rows as unit_rows_of
from trainer.store import Items, RunLog, Workspace, read_snapshot, snapshot_name, write_snapshot

pytestmark = pytest.mark.slow

N, WIDTH, CLASSES, COPIES = 60, 12, 3, 3
ELSEWHERE: Final = {
    "curves": "logged numbers",
    "experiment-verdict": "logged numbers",
    "experiment-curves": "logged numbers",
    "config-difference": "configurations",
    "parallel-coordinates": "logged numbers",
    "field-importance": "logged numbers",
    "field-grid": "logged numbers",
    "effective-robustness": "logged numbers",
    "accuracy-by-size": "logged numbers",
    "probe-by-set": "evaluated numbers",
    "published-table": "evaluated numbers",
    "retrieval-share": "runs of several seeds; ranks by `matching_of`, as `snapshot-curves`",
    "replayed-step": "records of a replay",
    "generative-classes": "records of `generative`, of distinct pictures",
    "word-map": "words that the text towers embed",
    "toy-batch": "settings alone",
    "loss-saturation": "settings alone",
    "loss-margins": "settings alone",
    "loss-views": "settings alone",
    "augmentations": "settings alone",
    "diffusion": "settings alone",
    "pixel-cnn": "settings alone",
    "skip-gram": "settings alone",
    "bad-clustering": "logged numbers",
    "sampling-variance": "settings alone",
    "softmax-cost": "settings alone",
    "hopfield-temperature": "settings alone",
    "evaluation-scores": "stored evaluations",
    "confusion": "stored evaluations",
    "protocol": "stored evaluations",
    "caption-choice": "stored evaluations",
    "evaluation-curves": "stored evaluations",
    "comparison": "stored evaluations",
    "matrix": "draws each pair on purpose: a cell is the cosine of one row's image and another's text",
    "groups": "stored evaluations",
    "data-efficiency": "stored evaluations",
}
"""Charts that read no snapshot, or show each pair -> what they read."""
ALWAYS: Final = r"\.(run|name|column|run_[ab]|name_[ab]|pairs|n_pairs)$|(^|\.)n$"
"""Facts of runs, and n of pairs: the number of pictures is asked for by `INDEPENDENT`."""
OTHER_CAPTIONS: Final = "there are more captions to be taken for the right one"
MAY_DIFFER: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("similarity", "picture"): (r"hard10|ks_|d_prime", "the hardest ten are of more captions"),
    ("similarity", "caption"): (r"hard10|n_unmatched|pictures", "as many pictures ask"),
    ("words", "picture"): (r"rank|deviation", "among more captions"),
    ("words", "caption"): (r"rank|deviation", "among more pictures"),
    ("probe-strip", "caption"): (r"", "images are found"),
    ("separated-groups", "caption"): (r"", "more pictures are grouped, each by its own vector"),
    ("forgetting", "caption"): (r"from|to", "more pictures ask"),
    ("hubness", "picture"): (r"", "texts ask, and there are more of them"),
    ("hubness", "caption"): (r"", "of more images each is found by fewer texts"),
    ("representation-similarity", "picture"): (r"^[23]\.(rsa|neighbors|n)", "2 and 3 are of texts"),
    ("representation-similarity", "caption"): (r"^[01]\.(rsa|neighbors|n)", "0 and 1 are of images"),
    ("map-of-models", "picture"): (r"n_text|x$|y$|stress|distances|mean|unusual", "images and texts are averaged"),
    ("map-of-models", "caption"): (r"n_image|x$|y$|stress|distances|mean|unusual", "images and texts are averaged"),
    ("geometry", "picture"): (r"_text", "of texts"),
    ("geometry", "caption"): (r"_image", "of images"),
    ("changes", "picture"): (r"captions|text_rank|margin|image_rank|_median|bad", OTHER_CAPTIONS),
    ("changes", "caption"): (r"pictures|rank|margin|overlap|residual|verdict|bad", "neighbors are of more images"),
    ("small-multiples", "picture"): (r"unmatched|plane_share", "both modalities, with more captions"),
    ("small-multiples", "caption"): (r"unmatched|plane_share|effective_rank|spectrum", "of images"),
    ("concepts", "picture"): (r"", "one dictionary of images and texts; `test_concepts_hold_whole_pictures_out`"),
    ("concepts", "caption"): (r"", "one dictionary of images and texts"),
    ("embedding-spectrum", "picture"): (r"^[13]\.", "of texts"),
    ("embedding-spectrum", "caption"): (r"^[02]\.", "of images"),
    ("snapshot-curves", "caption"): (r"images|Image to text", "of images"),
    ("prototypes", "caption"): (r"", "of images"),
    ("gradient-saturation", "picture"): (r"", "batches are of pairs, whose captions push each other without a mask"),
    ("gradient-saturation", "caption"): (r"", "the same"),
    ("batch-negatives", "picture"): (r"", "batches are of pairs"),
    ("batch-negatives", "caption"): (r"", "batches are of pairs"),
    ("attribute-probes", "picture"): (r"^[25]\.", "of texts"),
    ("attribute-probes", "caption"): (r"", "`test_probes_try_whole_units`"),
    ("hopfield-retrieval", "caption"): (r"", "images are stored"),
    ("hopfield-batch-size", "caption"): (r"", "images are stored"),
    ("hopfield-spectrum", "caption"): (r"", "images are stored"),
    ("search", "caption"): (r"", "images are found"),
    ("gap", "caption"): (r"image_to_text|text_to_image|matched", "more pictures ask"),
    ("calibration", "caption"): (r"", "images are classified"),
    ("prompts", "caption"): (r"", "images are classified"),
}
"""Chart, and what is copied -> numbers that may differ, and why: those of the other modality."""


def unit_rows(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def write_copies(workspace: Workspace, copied: str, k: int) -> None:
    """Add runs A and B: `copied` is what k pairs have in common; the other one differs, with an equal embedding."""
    rng = np.random.default_rng(0)
    kind, number = rng.integers(0, CLASSES, N), np.repeat(np.arange(N), k)
    meant = rng.standard_normal((N, WIDTH)) + 0.8 * rng.standard_normal((CLASSES, WIDTH))[kind]
    same, apart = [f"{i}" for i in number], [f"{i}-{copy}" for copy, i in zip(np.tile(np.arange(k), N), number)]
    picture, caption = (same, apart) if copied == "picture" else (apart, same)
    items = Items(
        np.array(apart),
        [f"{one}.png" for one in picture],
        [f"word{kind[i]} thing{i % 7} number {one}" for i, one in zip(number, caption, strict=True)],
        [f"k{kind[i]}" for i in number],
        ["val"] * len(number),
        {"kind": [f"k{kind[i]}" for i in number]},
        content=[f"{hash_of(one):016x}" for one in picture],
    )
    for name, objective in (("A", config.Clip()), ("B", config.Cloob())):
        turn = rng.standard_normal((WIDTH, WIDTH))
        with RunLog.claim(workspace, workspace.runs.create(config.Run(name=f"{name}{k}", objective=objective))) as log:
            for step in (4, 8):
                image, text = (
                    unit_rows(meant @ turn * step / 8 + 2.0 * rng.standard_normal((N, WIDTH)) + shift)[number]
                    for shift in (0.5, -0.5)
                )
                folder = log.folder / "snapshots" / snapshot_name(dataset="toys", split="val", step=step)
                where: dict[str, Any] = {"step": step, "dataset": "toys", "split": "val"}
                write_snapshot(folder, image=image, text=text, items=items, model=name, **where)
                log.snapshot(step, "toys", "val", folder, len(number), WIDTH)
            log.status("finished")


def hash_of(word: str) -> int:
    first, _, copy = word.partition("-")
    return 10_000 * (int(copy or 0) + 1) + int(first)


@pytest.fixture(scope="module", params=["picture", "caption"])
def copies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Workspace]:
    """Return what is copied, and a workspace with runs A1 and B1 and the same with copies, A3 and B3."""
    workspace = Workspace(tmp_path_factory.mktemp("copies"))
    for k in (1, COPIES):
        write_copies(workspace, request.param, k)
    return request.param, workspace


def flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from flat(one, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for place, one in enumerate(value):
            yield from flat(one, f"{key}.{place}" if key else str(place))
    else:
        yield key, value


@cache
def vectors(count: int) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, unit_rows(np.random.default_rng(5).standard_normal((count, WIDTH))).tolist()))


@cache
def computed(workspace: Workspace, name: str, k: int) -> tuple[Any, Any, Any]:
    """Return the chart, its settings and its data, with texts that no tower needs to embed."""
    chart = registry.load(name)
    given: dict[str, Any] = {"search": {"query_text": "a"}, "probe-strip": {"text": ("a",)}}
    given["concepts"] = {"concepts": 12, "seeds": 1}
    settings = chart.settings(**given.get(name, {}))
    targets = tuple(Target(f"{run}{k}", 8) for run in ("AB" if chart.needs != "one_run" else "A"))
    request = chart.with_targets(workspace, Request(targets), settings)
    targets = request.targets
    if name in ("calibration", "prompts"):
        request = Request(targets, class_texts=tuple(_class_texts(workspace, target) for target in targets))
    else:
        outside = chart.outside(workspace, request, settings)
        many = max(len(outside.texts) + len(outside.files), 1)
        placed = tuple(tuple(row[:2] for row in vectors(many)) for _ in targets) if outside.placement else ()
        request = Request(targets, vectors=tuple(vectors(many) for _ in targets), places=placed)
    return chart, settings, chart.result(workspace, request, settings, lambda share, note: None)


def _class_texts(workspace: Workspace, target: Target) -> str:
    labels = tuple(f"k{kind}" for kind in range(CLASSES))
    rows = np.array(vectors(CLASSES), np.float32)[None]
    file = Path(workspace.folder) / f"texts-{target.run}.npy"
    run = workspace.runs.get(target.run).id
    write_class_texts(file, ClassTexts(run, target.step or 0, 10.0, labels, ("{}",), rows))
    return str(file)


def of_snapshots() -> list[str]:
    return [name for group in registry.BUILT_IN.values() for name in group if name not in ELSEWHERE]


def test_every_chart_is_in_one_of_the_lists():
    names = {name for group in registry.BUILT_IN.values() for name in group}
    assert set(ELSEWHERE) <= names
    assert {name for name, _ in MAY_DIFFER} <= set(of_snapshots())


@pytest.mark.parametrize("name", of_snapshots())
def test_copies_change_no_number_of_what_is_copied_and_make_nothing_surer(copies: tuple[str, Workspace], name: str):
    copied, workspace = copies
    chart, settings, data = computed(workspace, name, 1)
    numbers = {}
    for k, (one, own, found) in {1: (chart, settings, data), COPIES: computed(workspace, name, COPIES)}.items():
        numbers[k] = dict(_named(one.numbers(found, own), k))
        panel = one.panel(found, own)
    if numbers[1] and any("counted" in key or "pairs" in key for key in numbers[1]):
        words = " ".join((*panel.notes, *panel.head))
        assert f"{N:,} pictures" in words or f"{N:,} captions" in words, "the page says what was counted once"
    free = MAY_DIFFER.get((name, copied), ("^$", ""))[0]
    differ = {
        key: (numbers[1].get(key), numbers[COPIES].get(key))
        for key in numbers[1] | numbers[COPIES]
        if not (re.search(ALWAYS, key) or re.search(free, key) or _equal(numbers[1].get(key), numbers[COPIES].get(key)))
    }
    assert not differ
    # Of one caption each or of three that say the same, an interval is as wide; over pairs it would be .58 times that.
    for key in [key for key in numbers[1] if key.endswith("_low") and copied == "picture"]:
        width = {k: of[key.removesuffix("low") + "high"] - of[key] for k, of in numbers.items()}
        assert width[COPIES] >= 0.75 * width[1], key


def _named(numbers: Any, k: int) -> Iterator[tuple[str, Any]]:
    """Yield numbers by names without those of the runs and without n; a row of the snapshot as the place of a copy."""
    for key, value in flat(numbers):
        row = isinstance(value, int) and re.search(r"\brows?\b", key)
        name = re.sub(r", n = \d[\d,]*", "", key)  # of pairs, which may differ as a number does that is called n
        yield re.sub(r"\b([AB])[13]\b", r"\1", name), value // k if row else value


COMMANDS: Final = {
    "evaluate": "`test_repeated_pictures`: every task, of pictures and of a snapshot",
    "compare": "stored evaluations, whose n are of questions",
    "data quality": "pairs are judged on purpose, each by its own caption; near duplicates and outliers are files",
    "export map": "draws each pair on purpose; its axes: `test_axes_of_the_map_are_those_of_each_picture_once`",
    "generative": "`test_pictures_that_are_drawn_or_generated_are_counted_once`",
    "decode": "`test_pictures_that_are_drawn_or_generated_are_counted_once`",
}
"""Commands that print numbers of pairs and are no charts -> what counts, or why pairs do."""


def test_axes_of_the_map_are_those_of_each_picture_once(copies: tuple[str, Workspace]):
    _, workspace = copies
    places = {}
    for k in (1, COPIES):
        snapshot = read_snapshot(choose_snapshot(workspace, workspace.runs.get(f"A{k}"), step=8).folder)
        places[k] = fit(unit_rows_of(snapshot), PointPlacement(), lambda share, note: None).points[::k]
    assert places[1].shape == (2 * N, 2)
    flip = np.sign((places[1] * places[COPIES]).sum(0))
    # Sums of 360 rows in float64 of float32 vectors.
    np.testing.assert_allclose(places[COPIES] * flip, places[1], atol=1e-5)


def test_commands_of_the_list_are_there():
    modules = {path.stem for path in Path(cli.__file__).parent.iterdir()}
    assert {name.split()[0] for name in COMMANDS} <= modules


def test_probes_try_whole_units(copies: tuple[str, Workspace]):
    copied, workspace = copies
    once, often = (computed(workspace, "attribute-probes", k)[2].found for k in (1, COPIES))
    for one, many in zip(once, often, strict=True):
        for of_one, of_many in ((one.images, many.images), (one.texts, many.texts)):
            for name, probe in of_one.items():
                assert of_many[name].tried <= probe.tried * (COPIES if copied == "caption" else 1)
        if copied == "picture":
            assert {n: (p.accuracy, p.low, p.high) for n, p in one.images.items()} == {
                n: (p.accuracy, p.low, p.high) for n, p in many.images.items()
            }


def test_concepts_hold_whole_pictures_out(copies: tuple[str, Workspace]):
    _, workspace = copies
    data = computed(workspace, "concepts", COPIES)[2]
    of, items = data.of, data.items
    learned = np.setdiff1d(np.arange(len(of.rows)), of.held)
    for column in (items.content, items.caption):
        assert not {column[row] for row in of.rows[learned]} & {column[row] for row in of.rows[of.held]}
    assert data.apart == "group"
    assert data.held == COPIES * N // 5


def test_of_many_pictures_whole_ones_are_drawn_and_charts_say_so(
    copies: tuple[str, Workspace], monkeypatch: pytest.MonkeyPatch
):
    copied, workspace = copies
    monkeypatch.setattr(small_multiples, "MOST_PICTURES", 20)
    monkeypatch.setattr(separated_groups, "MOST_ROWS", 20)
    chart, settings, data = computed.__wrapped__(workspace, "small-multiples", COPIES)
    assert (data.n, data.whole) == (20 * COPIES if copied == "picture" else 20, N * COPIES)
    assert f"{data.n} of {data.whole} pairs" in chart.draw(data, settings).notes[0]
    chart, settings, data = computed.__wrapped__(workspace, "separated-groups", COPIES)
    assert f"n = 20 of {N if copied == 'picture' else N * COPIES} pictures" in chart.draw(data, settings).head[0]


def test_low_ranked_pairs_are_counted_by_picture(copies: tuple[str, Workspace]):
    _, workspace = copies
    one = computed(workspace, "changes", 1)[2].found[0]
    rows, copied = np.repeat(np.arange(one.n), COPIES), np.arange(COPIES * one.n)
    units = units_of_numbers(one.units.picture[rows], copied)
    many = replace(one, rows=copied, values={key: of[rows] for key, of in one.values.items()}, units=units)
    for share in (0.1, 0.3):
        once, often = mispairs(one, share=share), mispairs(many, share=share)
        assert sum(once.pictures.values()) > 0
        assert often.pictures == once.pictures
        assert often.expected == pytest.approx(once.expected)
        assert len(often.both) == COPIES * len(once.both), "all pairs are listed"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        # A cell, or a text with an n or a name of a run in it.
        return re.sub(r"\b[AB][13]\b|[\d,]+", "", one) == re.sub(r"\b[AB][13]\b|[\d,]+", "", other)
    if isinstance(one, float | int) and isinstance(other, float | int):
        # Sums in another order: some thousand terms in single precision.
        return math.isclose(one, other, rel_tol=2e-4, abs_tol=2e-5) or (one != one and other != other)
    return bool(one == other)
