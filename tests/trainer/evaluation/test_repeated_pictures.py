"""A picture is one item of a classification, however many captions it was written with."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer import config, models
from trainer.data import Pairs
from trainer.data.content import distinct_pictures
from trainer.data.pairs import Source
from trainer.data.streamed_images import StreamedImages
from trainer.data.tokenizer import train_tokenizer
from trainer.evaluation import Embedded, HeldOut, NeighborReference, measure, questions
from trainer.evaluation.benchmark import Evaluation, Stored, Subject
from trainer.evaluation.generative import GenerativeRequest, _labeled
from trainer.evaluation.task_data import OTHERS, TaskBatch, TaskData, sampled, snapshot_data
from trainer.methods import build
from trainer.prompt_suites import PromptSuite
from trainer.store.snapshot_files import Items, Snapshot

SUITE = PromptSuite("toy", ("disc", "ring", "star"), ("a {}",), "", "")
SIZES = config.TinyTowers(
    image_tower="vit", image_size=16, patch_size=8, image_width=16, image_layers=1, text_width=16, text_layers=1,
    text_heads=2, context_length=12, embed_dim=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def subject() -> Subject:
    tokenizer = train_tokenizer(["a disc", "a ring", "a star"], 300)
    torch.manual_seed(0)
    towers = models.build(SIZES, vocabulary=tokenizer.size, towers="both").eval()
    return Subject(towers, tokenizer, SIZES.context_length, torch.device("cpu"), 10.0)


def batch(pictures: range, times: int) -> TaskBatch:
    """Return pictures of their class's color and noise, each written with several captions."""
    rows = [picture for picture in pictures for _ in range(times)]
    images = np.stack([np.random.default_rng(row).integers(0, 120, (16, 16, 3), dtype=np.uint8) for row in rows])
    images[..., :] += np.array([[[[60 * (row % 3)]]] for row in rows], np.uint8)
    captions = [f"a {SUITE.classes[row % 3]}, said {k % times}" for k, row in enumerate(rows)]
    labels = [SUITE.classes[row % 3] for row in rows]
    return TaskBatch(images, captions, labels, [f"{row}.png" for row in rows], len(rows))


def data(times: int, source: str = "training pairs") -> TaskData:
    return TaskData("toy", "test", batch(range(30), times), batch(range(100, 136), times), SUITE, 0, source)


@pytest.mark.parametrize("task", ["zero_shot", "linear_probe", "few_shot", "knn", "robustness", "fine_tune"])
def test_a_picture_written_several_times_counts_once(subject, task, monkeypatch):
    monkeypatch.setattr("trainer.evaluation.tasks.SHOTS", (2,))
    monkeypatch.setattr("trainer.evaluation.tasks.DRAWS", 2)
    monkeypatch.setattr("trainer.analysis.linear_probe._MOST", 20)
    if task == "fine_tune":  # a head alone: one epoch of a tower says no more about what is counted
        monkeypatch.setattr("trainer.evaluation.tasks.SHARES", {0.5: 0})
        monkeypatch.setattr("trainer.evaluation.benchmark.SHARES", {0.5: 0})
    once, thrice = (Evaluation(subject, data(times)).run(task) for times in (1, 3))
    assert (once.n, thrice.n, thrice.whole) == (30, 30, 30)
    assert thrice.question == once.question
    assert thrice.metrics == pytest.approx(once.metrics, nan_ok=True, abs=1e-6)
    for name, values in once.arrays.items():
        assert thrice.arrays[name].tolist() == pytest.approx(values.tolist()) if values.dtype.kind == "f" else True
        assert thrice.arrays[name].shape == values.shape


def test_nothing_is_learned_of_a_tried_picture_where_both_are_of_one_split(subject):
    """The same pixels in two members of a tar are drawn apart by their names."""
    tried, train = batch(range(30), 1), batch(range(20, 80), 1)
    learned = TaskData("toy", "sample", tried, train, SUITE, 0, OTHERS)
    assert len(Evaluation(subject, learned).targets) == 50
    official = TaskData("toy", "test", tried, train, SUITE, 0, "training pairs")
    assert len(Evaluation(subject, official).targets) == 60, "an official split is that of the papers"


def snapshot(times: int) -> Snapshot:
    pictures = np.repeat(np.arange(60), times)
    rows = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32)
    rows += 2 * np.eye(6, dtype=np.float32)[np.arange(60) % 3]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = [SUITE.classes[row % 3] for row in pictures]
    captions = [f"a {label}, said {k % times}" for k, label in enumerate(labels)]
    n = len(pictures)
    items = Items(
        np.arange(n),
        [f"{k}.png" for k in range(n)],
        captions,
        labels,
        ["val"] * n,
        {},
        content=[f"{row:x}" for row in pictures + 1],
    )
    vectors = rows[pictures]
    return Snapshot(Path("x"), "toy", 1, "toy", "val", n, 6, vectors, vectors, items, sampled=False)


def test_a_snapshots_picture_is_tried_or_learned_from_whatever_its_rows_are_called(subject):
    _, parts, tried, train = snapshot_data(snapshot(3), run_suite=SUITE)
    assert not {*parts.tried.content} & {*parts.train.content}
    assert sorted([*tried, *train]) == list(range(180))
    rows = snapshot(3).image
    found = Stored(subject, parts, image=rows[tried], text=None, train=rows[train]).run("knn")
    assert found.n == len({*parts.tried.content})


def heldout(times: int, subject: Subject) -> HeldOut:
    some = batch(range(30), times)
    n = len(some)
    pairs = Pairs("toy", "val", some.images, some.captions, some.labels, some.paths, {}, "f")
    assert n == 30 * times
    return HeldOut(pairs, prefix="val", suite=SUITE, tokenizer=subject.tokenizer, context_length=SIZES.context_length)


def test_curves_count_a_picture_once(subject):
    """Zero-shot accuracy and nearest neighbors of a held-out split, and the question that is stored with them."""
    found = []
    for times in (1, 3):
        held = heldout(times, subject)
        embedded = held.embed(subject.towers, subject.device)
        assert isinstance(embedded, Embedded)
        train = batch(range(100, 136), times)
        pairs = Pairs("toy", "train", train.images, train.captions, train.labels, train.paths, {}, "f")
        reference = NeighborReference(pairs, tokenizer=subject.tokenizer, context_length=SIZES.context_length)
        stored = reference.embed(subject.towers, subject.device)
        assert len(stored) == reference.stored == 36
        near = reference.numbers(held, embedded, stored)
        numbers = measure(held, embedded, build(config.Clip()), batch_size=8)
        asked = questions.of_training(held, batch_size=8, both=True, masks=False, by="prompts")["zero_shot"]
        asked_near = questions.of_reference(reference, held, images=True)
        assert (asked.n, asked_near.n) == (30, 30)
        found.append((numbers["zero_shot_acc1"], numbers["zero_shot_acc5"], near["knn_acc1"]))
        assert ("pictures" in asked_near.protocol) == (times > 1)
    assert found[1] == pytest.approx(found[0], abs=1e-6)


def test_most_pairs_are_those_of_whole_pictures(tmp_path: Path):
    """`evaluate --most 20` of five captions a picture tries four pictures with all of them."""
    sources = [Source(tmp_path / f"{p}.png", f"{p}.png", f"caption {k} of {p}") for k in range(5) for p in range(30)]
    for most, pictures in ((20, 4), (22, 4), (19, 3)):
        kept = sampled(sources, most)
        assert len(kept) == 5 * pictures
        assert len({source.relative for source in kept}) == pictures
        assert kept == [source for source in sources if source in kept]
    assert len(sampled(sources, 3)) == 3, "of one picture"
    assert sampled(sources, 150) == sources


def test_pictures_that_are_drawn_or_generated_are_counted_once():
    once, thrice = batch(range(8), 1), batch(range(8), 3)
    pairs = [Pairs("toy", "val", b.images, b.captions, b.labels, b.paths, {}, "") for b in (once, thrice)]
    assert [len(distinct_pictures(one)) for one in pairs] == [8, 8]
    assert (distinct_pictures(pairs[1]).images == once.images).all()
    digests = [f"{int(path.split('.')[0]):08d}".encode() for path in pairs[1].paths]
    streamed = replace(pairs[1], images=StreamedImages(pairs[1].paths, 16, "", digests=digests))
    few = distinct_pictures(streamed)
    assert few.images.locations == few.paths == once.paths, "nothing is decoded"
    request = GenerativeRequest(updates=1, batch=4, size=8, width=8, most=6, most_training=5)
    labeled = [_labeled(distinct_pictures(one), distinct_pictures(one), request) for one in pairs]
    assert labeled[0].train.tolist() == labeled[1].train.tolist()
    assert len(labeled[1].label) == 8, "the n of the probe's interval"
