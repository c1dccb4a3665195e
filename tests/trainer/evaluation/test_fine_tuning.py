"""Fine-tuning on few labels: above chance, reproducible, with every class, and without side effects."""

import numpy as np
import pytest
import torch

from trainer import config
from trainer.evaluation import tasks
from trainer.evaluation.fine_tuning import FineTuned, Some, fine_tune
from trainer.models import TwoTowers, build

CLASSES = 3


def stripes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy 16 px images classified by stripe direction, which a random tower hardly separates."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:16, 0:16]
    waves = np.stack([np.sin(1.6 * x), np.sin(1.6 * y), np.sin(1.1 * (x + y))])
    targets = rng.integers(0, CLASSES, n)
    shift = rng.normal(0, 40, (n, 1, 1, 3))
    images = 128 + 45 * waves[targets][..., None] + shift + rng.normal(0, 30, (n, 16, 16, 3))
    return images.clip(0, 255).astype(np.uint8), targets


@pytest.fixture(scope="module")
def towers() -> TwoTowers:
    torch.manual_seed(1)
    sizes = {"image_size": 16, "image_width": 24, "text_width": 16, "text_heads": 2, "text_layers": 1}
    model = config.TinyTowers(image_tower="vit", patch_size=4, image_layers=1, context_length=8, embed_dim=8, **sizes)
    return build(model, vocabulary=300).eval()


def tuned(towers: TwoTowers, *, seed: int = 0, epochs: int = 12, **kwargs) -> tuple[FineTuned, np.ndarray]:
    images, targets = stripes(150, 0)
    tried, label = stripes(120, 1)
    found = fine_tune(
        towers,
        Some(images, np.arange(150)),
        targets,
        Some(tried, np.arange(120)),
        CLASSES,
        where=torch.device("cpu"),
        epochs=epochs,
        seed=seed,
        **kwargs,
    )
    return found, label


@pytest.mark.slow
def test_the_tower_learns_what_the_probe_cannot_read_and_stays_as_it_was(towers: TwoTowers):
    before = {name: value.clone() for name, value in towers.state_dict().items()}
    state = torch.get_rng_state()
    found, label = tuned(towers)
    probe = float(np.mean(found.linear.argmax(1) == label))
    after = float(np.mean(found.tuned.argmax(1) == label))
    assert after > 1 / CLASSES + 0.25
    assert after > probe
    assert (found.labels, found.epochs) == (150, 12)
    assert all(torch.equal(value, before[name]) for name, value in towers.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answers_and_without_epochs_the_head_is_the_probe(towers: TwoTowers):
    first, second = (tuned(towers, seed=3, epochs=2)[0] for _ in range(2))
    assert (first.tuned == second.tuned).all()
    assert not (first.tuned == tuned(towers, seed=4, epochs=2)[0].tuned).all()
    found = tuned(towers, epochs=0)[0]
    assert found.tuned == pytest.approx(found.linear, abs=1e-3)


def test_progress_is_told_and_ends_it(towers: TwoTowers):
    told: list[tuple[float, str]] = []

    def listen(share: float, note: str) -> None:
        told.append((share, note))
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(towers, epochs=4, progress=listen)
    assert told[-1][1] == "Fine-tuning on 150 labels, epoch 2 of 4"
    assert [share for share, _ in told] == sorted(share for share, _ in told)


def test_frozen_towers_learn_here_too(towers: TwoTowers):
    towers.visual.requires_grad_(False)
    try:
        found, _ = tuned(towers, epochs=1)
    finally:
        towers.visual.requires_grad_(True)
    assert not np.allclose(found.tuned, found.linear, atol=1e-3)


def test_the_task_takes_a_share_of_the_whole_split_of_every_class():
    """The rows are a fifth of the split: 1 % of the split is 5 % of them; 10 % of it is half of them."""
    rng = np.random.default_rng(0)
    targets = rng.permutation(np.repeat([0, 1, 2], [100, 60, 40]))
    label = np.array([0, 1, 2, 0])
    asked: list[np.ndarray] = []

    def learn(rows: np.ndarray, epochs: int) -> FineTuned:
        asked.append(rows)
        sure = 3.0 * np.eye(CLASSES)[label]
        return FineTuned(sure, -sure, len(rows), epochs)

    metrics, details, arrays = tasks.fine_tuning(learn, targets, label, n_labels=1000)
    assert [np.bincount(targets[rows]).tolist() for rows in asked] == [[5, 3, 2], [50, 30, 20]]
    assert metrics["fine_tune_1pct_acc1"] == 1.0
    assert metrics["fine_tune_linear_10pct_acc1"] == 0.0
    assert metrics["fine_tune_linear_10pct_acc5"] == 1.0
    assert [one["labels"] for one in details["shares"]] == [10, 100]
    assert (arrays["fine_tune_1pct"] == 1).all()
    # Of a split ten times as large 10 % are more than there are: this is said, not rounded away.
    metrics, details, _ = tasks.fine_tuning(learn, targets, label, n_labels=10_000)
    assert "fine_tune_10pct_acc1" not in metrics
    assert details["left_out"]["10pct"] == "10 % of 10,000 labels are more than the 200 that were read."
