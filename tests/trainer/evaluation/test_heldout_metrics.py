import dataclasses
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from trainer import config
from trainer.analysis import losses
from trainer.analysis.distinct import matching
from trainer.charts.matching import matching_of
from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.evaluation import Embedded, HeldOut, measure
from trainer.evaluation.questions import of_training, sparing
from trainer.evaluation.tasks import retrieval
from trainer.methods import build
from trainer.prompt_suites import PromptSuite
from trainer.store import read_snapshot, write_snapshot

CAPTIONS = ["a red ring", "a blue star", "a red ring", "a green moon"]
LABELS = ["ring", "star", "ring", ""]
SUITE = PromptSuite("toy", ("moon", "ring", "star"), ("a {}", "one {}"), "", "")


def heldout(suite: PromptSuite | None = SUITE, times: int = 1) -> HeldOut:
    images = np.zeros((4 * times, 8, 8, 3), np.uint8) + np.arange(4 * times, dtype=np.uint8)[:, None, None, None]
    captions, labels = CAPTIONS * times, LABELS * times
    pairs = Pairs("toy", "held", images, captions, labels, captions, {}, "f")
    return HeldOut(pairs, prefix="val", suite=suite, tokenizer=train_tokenizer(CAPTIONS, 300), context_length=8)


def numbers(image, text, prompts=None, **kwargs) -> dict[str, float]:
    embedded = Embedded(np.float32(image), np.float32(text), None if prompts is None else np.float32(prompts))
    return measure(heldout(**kwargs), embedded, build(config.Clip(inv_tau=1.0)), batch_size=4)


def test_numbers_of_pictures_do_not_change_with_captions_written_twice():
    rng = np.random.default_rng(0)
    image, text = (rows / np.linalg.norm(rows, axis=1)[:, None] for rows in rng.standard_normal((2, 4, 5)))
    once = numbers(image, text[[0, 1, 0, 3]])
    images = np.repeat(np.arange(4, dtype=np.uint8), 3)[:, None, None, None] + np.zeros((12, 8, 8, 3), np.uint8)
    words = np.repeat(CAPTIONS, 3).tolist()
    pairs = Pairs("toy", "held", images, words, [""] * 12, words, {}, "f")
    held = HeldOut(pairs, prefix="val", suite=None, tokenizer=train_tokenizer(CAPTIONS, 300), context_length=8)
    rows = Embedded(*(np.float32(np.repeat(side, 3, axis=0)) for side in (image, text[[0, 1, 0, 3]])), None)
    thrice = measure(held, rows, build(config.Clip(inv_tau=1.0)), batch_size=4)
    for name in (
        "matched_cosine",
        "auc_hard2",
        "unmatched_cosine_hard2",
        "effective_rank_image",
        "effective_rank_text",
    ):
        assert thrice[name] == pytest.approx(once[name], rel=1e-5), name


def test_a_perfect_model_has_perfect_numbers():
    """Pairs 0 and 2 share a caption, so each is a right answer to the other."""
    rows = np.eye(4)[[0, 1, 0, 2]]
    prompts = np.repeat(np.eye(4)[[2, 0, 1]][:, None], 2, axis=1)
    found = numbers(rows, rows, prompts)
    for name in ("image_to_text_R@1", "text_to_image_R@1", "zero_shot_acc1", "auc_hard2", "matched_cosine"):
        assert found[name] == pytest.approx(1.0)
    assert found["image_to_text_median_rank"] == 1
    assert found["unmatched_cosine_hard2"] == pytest.approx(0.0)
    assert found["modality_gap"] == pytest.approx(0.0)


def test_pictures_of_equal_pixels_and_equal_captions_are_one_and_the_snapshot_keeps_which(tmp_path):
    pairs = Pairs("toy", "held", np.zeros((4, 8, 8, 3), np.uint8), CAPTIONS, LABELS, CAPTIONS, {}, "f")
    pairs.images[3] = 1
    held = HeldOut(pairs, prefix="val", suite=None, tokenizer=train_tokenizer(CAPTIONS, 300), context_length=8)
    assert (len(held.matching.texts), len(held.matching.images)) == (len(set(CAPTIONS)), 2)
    rows = np.eye(4, dtype=np.float32)
    write_snapshot(
        tmp_path / "s", image=rows, text=rows, items=held.items(), step=1, dataset="toy", split="held", model="m"
    )
    found = matching_of(read_snapshot(tmp_path / "s"))
    for mine, kept in ((held.matching.texts, found.texts), (held.matching.images, found.images)):
        assert mine.place.tolist() == kept.place.tolist()
        assert mine.right.tolist() == kept.right.tolist()
    # Without what the pixels are, a file is a picture only as long as its embedding is the same.
    items = dataclasses.replace(held.items(), content=(), path=["a.png"] * 4)
    same = rows[[0, 0, 1, 2]]
    write_snapshot(tmp_path / "t", image=same, text=same, items=items, step=1, dataset="t", split="h", model="m")
    assert matching_of(read_snapshot(tmp_path / "t")).images.place.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("objective", [config.Clip(), config.Cloob(), config.Cloob(retrieval_share=0.5)])
def test_why_a_run_is_slow_equals_a_naive_computation(objective):
    """Ranks by singular values, weights by a double loop, the gradient by finite differences of numpy losses."""
    generator = np.random.default_rng(0)
    image, text = (rows / np.linalg.norm(rows, axis=1)[:, None] for rows in generator.standard_normal((2, 8, 5)) + 0.5)
    image, text = image.astype(np.float32), text.astype(np.float32)
    held = heldout(None, times=2)
    found = measure(held, Embedded(image, text, None), build(objective), batch_size=4)

    # Eight pictures, of three captions the first row each.
    for side, rows in (("image", image), ("text", text[[0, 1, 3]])):
        variance = np.linalg.svd(np.float64(rows) - rows.mean(0), compute_uv=False) ** 2
        shares = variance / variance.sum()
        assert found[f"effective_rank_{side}"] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-5)

    weights = []
    for start in (0, 4):
        for i in range(start, start + 4):
            raw = [math.exp(8 * float(np.float64(text[i]) @ image[j])) for j in range(start, start + 4)]
            weights.append(raw[i - start] / sum(raw))
    assert found["own_image_weight"] == pytest.approx(np.mean(weights), rel=1e-6)

    def loss(x, y):
        if objective.kind == "clip":
            return losses.info_nce(x, y, 1 / 0.07)
        return losses.cloob(x, y, 30.0, 8.0, retrieval_share=objective.retrieval_share)

    expected = []
    for start in (0, 4):
        x, y = np.float64(image[start : start + 4]), np.float64(text[start : start + 4])
        gradient = np.zeros_like(y)
        for at in np.ndindex(y.shape):
            step = np.zeros_like(y)
            step[at] = 1e-6
            gradient[at] = (loss(x, y + step) - loss(x, y - step)) / 2e-6
        gradient -= (gradient * y).sum(1)[:, None] * y
        main = np.linalg.svd(x - x.mean(0))[2][:3]
        expected.append(((gradient @ main.T) ** 2).sum() / (gradient**2).sum())
    assert found["text_gradient_main3"] == pytest.approx(np.mean(expected), rel=1e-4)


def test_a_class_folder_is_measured_by_retrieval_over_its_classes():
    """With 12 images of 3 classes and captions made of class names, 3 captions are ranked."""
    caption = np.repeat([0, 1, 2], 4)
    text = np.eye(3)[caption]
    image = np.roll(text, 1, axis=0)  # the first picture of every class is taken for another class
    metrics, details, ranks = retrieval(image, text, matching(caption))
    assert details.items() >= {"captions": 3, "images": 12}.items()
    assert metrics["image_to_text_R@1"] == pytest.approx(9 / 12)
    assert metrics["image_to_text_R@5"] == 1.0, "there are only three captions"
    assert ranks["image_to_text"].max() == 3
    assert metrics["image_to_text_mAP"] == pytest.approx((9 + 3 / 3) / 12)


def test_a_picture_with_several_captions_asks_once_and_so_does_a_caption():
    """Three pictures with 5, 1 and 2 captions, one of which two pictures share; the first picture finds none."""
    picture = np.array([0, 0, 0, 0, 0, 1, 2, 2])
    caption = np.array([0, 1, 2, 3, 4, 5, 6, 4])
    image, text = np.eye(8)[[6] * 5 + [5, 6, 6]], np.eye(8)[caption]
    metrics, details, arrays = retrieval(image, text, matching(caption, picture))
    assert details.items() >= {"captions": 7, "images": 3}.items()
    assert metrics["image_to_text_R@1"] == pytest.approx(2 / 3), "of pairs it would be 3 / 8"
    assert metrics["text_to_image_R@1"] == pytest.approx(1 / 7), "ties stand before the right picture"
    assert [len(places) for places in arrays.values()] == [8] * 4
    assert arrays["image_to_text"].tolist() == [3, 3, 3, 3, 3, 1, 1, 1]
    assert metrics["image_to_text_median_rank"] == 1


def recall_at_k(scores: torch.Tensor, positive_pairs: torch.Tensor, k: int) -> torch.Tensor:
    """Return what CLIP_benchmark's function of this name does, as its `zeroshot_retrieval.py` states it in words."""
    first = torch.topk(scores, k, dim=1)[1]
    return torch.gather(positive_pairs, 1, first).sum(1) / positive_pairs.sum(1)


def test_recalls_of_clip_benchmark_are_by_its_definition_and_ours_have_other_names():
    """Eight pictures with two or three captions, of which six are equal: an equal caption of another is wrong there."""
    rng = np.random.default_rng(0)
    pictures = np.repeat(np.arange(8), [2, 3, 2, 2, 3, 2, 2, 3])
    captions = np.arange(19)
    captions[[0, 3, 6, 8, 10, 14]] = 0
    words, seen = rng.normal(size=(19, 6)), rng.normal(size=(8, 6))
    text = np.float32(words + 0.3 * seen[pictures])
    image = np.float32(seen)[pictures]
    text, image = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (text, image))
    metrics, details, _ = retrieval(image, text, matching(captions, pictures))
    first = np.unique(pictures, return_index=True)[1]
    scores = torch.from_numpy(text @ image[first].T)
    positive = torch.zeros(scores.shape, dtype=torch.bool)
    positive[torch.arange(19), torch.from_numpy(pictures)] = True
    for k in (1, 5):
        found = (recall_at_k(scores, positive, k) > 0).float().mean().item()
        assert details["clip_benchmark"][f"image_retrieval_recall@{k}"] == pytest.approx(found)
        found = (recall_at_k(scores.T, positive.T, k) > 0).float().mean().item()
        assert details["clip_benchmark"][f"text_retrieval_recall@{k}"] == pytest.approx(found)
    assert not set(metrics) & set(details["clip_benchmark"])
    assert metrics["text_to_image_R@1"] != details["clip_benchmark"]["image_retrieval_recall@1"]


def test_what_has_no_unmatched_caption_has_no_number_against_any():
    pairs = Pairs("toy", "held", np.zeros((4, 8, 8, 3), np.uint8), ["a"] * 4, [""] * 4, list("abcd"), {}, "f")
    held = HeldOut(pairs, prefix="val", suite=None, tokenizer=train_tokenizer(["a"], 300), context_length=8)
    rows = np.eye(4, dtype=np.float32)
    found = measure(held, Embedded(rows, rows, None), build(config.Clip(inv_tau=1.0)), batch_size=4)
    assert not [name for name in found if "hard" in name]


def test_a_collapsed_model_is_not_flattered():
    rows = np.ones((4, 3)) / math.sqrt(3)
    found = numbers(rows, rows)
    assert found["image_to_text_R@1"] == 0.0
    assert found["auc_hard2"] == pytest.approx(0.5)
    assert found["loss"] == pytest.approx(math.log(4), abs=1e-6)


def test_pairs_without_a_class_do_not_count_for_zero_shot():
    rows = np.eye(4)[[0, 1, 0, 2]]
    wrong = np.repeat(np.eye(4)[[0, 3, 1]][:, None], 2, axis=1)  # star right, both rings wrong, the moon not asked
    assert numbers(rows, rows, wrong)["zero_shot_acc1"] == pytest.approx(1 / 3)


def test_without_a_suite_there_is_no_zero_shot():
    rows = np.eye(4)
    assert "zero_shot_acc1" not in numbers(rows, rows, suite=None)


@pytest.mark.parametrize(
    ("classes", "templates", "kept"), [(10, 24, (0, 6, 12, 18)), (2, 3, (0, 1, 2)), (100, 8, (0,))]
)
def test_a_decoder_is_asked_few_prompts_while_it_trains(classes: int, templates: int, kept: tuple[int, ...]):
    suite = PromptSuite("s", tuple(map(str, range(classes))), tuple(f"{k} {{}}" for k in range(templates)), "", "")
    assert sparing(suite).templates == tuple(f"{k} {{}}" for k in kept)
    assert sparing(suite).classes == suite.classes


@pytest.mark.parametrize("masks", [False, True])
def test_the_validation_loss_and_its_gradient_have_the_mask_of_the_training(masks):
    """Pictures of two captions each, one caption on two pictures: by a double loop over all pairs of the split."""
    picture = [0, 0, 1, 1, 2, 0, 2, 1]
    caption = ["a ring", "a star", "a ring", "a moon", "a moon", "a sun", "a star", "a sea"]
    images = np.zeros((8, 8, 8, 3), np.uint8) + np.array(picture, np.uint8)[:, None, None, None]
    pairs = Pairs("toy", "held", images, caption, [""] * 8, caption, {}, "f")
    held = HeldOut(pairs, prefix="val", suite=None, tokenizer=train_tokenizer(caption, 300), context_length=8)
    draw = torch.Generator().manual_seed(0)
    image, text = (F.normalize(rows, dim=1) for rows in torch.randn(2, 8, 5, generator=draw))
    method = build(config.Clip(inv_tau=3.0, mask_duplicates=masks))
    found = measure(held, Embedded(image.numpy(), text.numpy(), None), method, batch_size=4)
    shown = set(zip(picture, caption, strict=True))
    values, shares = [], []
    for start in (0, 4):
        x, y = image[start : start + 4].double(), text[start : start + 4].double().requires_grad_()
        terms = []
        for i in range(4):
            sums = [[3 * x[i] @ y[i]], [3 * x[i] @ y[i]]]
            for j in range(4):
                for way, (a, b) in enumerate(((i, j), (j, i))):
                    if a != b and not (masks and (picture[start + a], caption[start + b]) in shown):
                        sums[way].append(3 * x[a] @ y[b])
            terms += [torch.stack(one).logsumexp(0) - 3 * x[i] @ y[i] for one in sums]
        loss = torch.stack(terms).mean()
        values.append(loss.item())
        (gradient,) = torch.autograd.grad(loss, y)
        gradient = (gradient - (gradient * y).sum(1, keepdim=True) * y).detach().numpy()
        main = np.linalg.svd(x.numpy() - x.numpy().mean(0))[2][:3]
        shares.append(((gradient @ main.T) ** 2).sum() / (gradient**2).sum())
    assert found["loss"] == pytest.approx(np.mean(values), rel=1e-5)
    assert found["text_gradient_main3"] == pytest.approx(np.mean(shares), rel=1e-5)
    asked = of_training(held, batch_size=4, both=True, masks=masks, by="captions")
    assert ("right answers no negatives" in asked["loss"].protocol) == masks
