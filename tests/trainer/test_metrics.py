import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from trainer import config
from trainer.metrics import (
    HEADLINE,
    METRICS,
    best_value,
    headline,
    headline_name,
    is_loss,
    judge_of,
    logged_name,
    main_first,
    metric,
    noted_n,
    recall_name,
)


def test_the_catalog_names_every_logged_number_of_both_heldout_splits():
    held = [
        *(f"{way}_R@{k}" for way in ("image_to_text", "text_to_image") for k in (1, 5, 10)),
        *(f"{way}_median_rank" for way in ("image_to_text", "text_to_image")),
        *("loss", "zero_shot_acc1", "zero_shot_acc5", "matched_cosine", "modality_gap"),
        *("unmatched_cosine_hard10", "auc_hard10"),
        *("effective_rank_image", "effective_rank_text", "own_image_weight", "text_gradient_main3"),
        *("knn_acc1", "knn_words"),
        *("mean_picture_r2", "mean_picture_mse", "denoising_loss", "denoising_loss_dropped"),
        *(f"velocity_error_{share}pct" for share in (10, 30, 50, 70, 90)),
        *("prior_cosine", "text_cosine"),
    ]
    expected = {f"{split}/{name}" for split in ("val", "combinations") for name in held}
    expected |= {
        f"train/{n}" for n in ("loss", "learning_rate", "inv_tau", "gradient_norm", "pairs_per_s", "data_wait")
    }
    expected |= {f"system/{n}" for n in ("cpu_percent", "memory_mib", "gpu_percent", "gpu_memory_mib", "energy_wh")}
    assert set(METRICS) == expected
    assert HEADLINE in METRICS
    assert len({m.label for m in METRICS.values()}) == len(METRICS)


def test_numbers_against_fewer_captions_than_ten_say_how_many():
    assert metric("val/auc_hard4").label == "AUC, matched over 4 most similar unmatched"
    assert metric("combinations/auc_hard4").label.endswith("over 4 most similar unmatched, unseen combinations")
    assert (metric("auc_hard1").better, metric("auc_hard1").digits) == ("up", 4)


def test_n_of_a_recall_is_its_distinct_questions_and_where_none_is_noted_its_pairs():
    facts = {"heldout_pairs": {"heldout": 172}}
    assert noted_n(HEADLINE, "heldout", facts) == 172
    asked = {"image_to_text": 44, "text_to_image": 160}
    facts |= {"heldout_questions": {"heldout": asked}}
    named = ("val/image_to_text_R@5", "text_to_image_R@1", "val/modality_gap")
    assert [noted_n(name, "heldout", facts) for name in named] == [44, 160, 172]
    assert headline_name(HEADLINE, facts) == "Image to text R@1, held-out, n = 44"
    assert noted_n(HEADLINE, "heldout", {"heldout_questions": {"heldout": {"image_to_text": "44"}}}) is None


def test_losses_and_nothing_else_keep_an_axis_of_their_own():
    apart = {name for name, m in METRICS.items() if not m.shared_axis}
    assert apart == {"train/loss", "val/loss", "combinations/loss"}


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("train/loss", "down"),
        ("val/image_to_text_R@1", "up"),
        ("val/text_to_image_median_rank", "down"),
        ("val/modality_gap", "none"),
        ("combinations/auc_hard10", "up"),
    ],
)
def test_the_good_direction(name, better):
    assert metric(name).better == better


@pytest.mark.parametrize(
    ("name", "label"), [("image_to_text", "Image to text mAP"), ("text_to_image", "Text to image mAP")]
)
def test_mean_average_precision_is_a_share_and_up_is_good(name, label):
    found = metric(f"val/{name}_mAP")
    assert (found.label, found.better, found.percent, found.group) == (label, "up", True, "Evaluation")
    assert found.text(0.4321) == "43.2 %"


def test_a_name_of_the_persons_own_is_shown_as_it_is_and_a_loss_is_better_lower():
    neutral, loss = metric("val/my_score"), metric("Loss/train")
    assert (neutral.label, neutral.better, neutral.shared_axis) == ("val/my_score", "none", True)
    assert (loss.label, loss.better, loss.shared_axis) == ("Loss/train", "down", False)
    assert [name for name in ("lossless", "epoch_loss", "train.loss", "glossary", "Loss_G") if is_loss(name)] == [
        *("epoch_loss", "train.loss", "Loss_G")
    ]


def test_a_training_of_another_program_is_judged_by_what_it_logs():
    assert judge_of(["lr", "Loss/train", "loss/val", HEADLINE]) == HEADLINE
    assert judge_of(["lr", "Loss/train", "loss/val", "train/loss"]) == "train/loss"
    assert judge_of(["lr", "Loss/train", "loss/val"]) == "loss/val"
    assert judge_of(["lr", "acc"]) == ""
    assert (best_value("Loss/train", [2.0, 1.0, math.nan]), best_value("acc", [2.0, 1.0])) == (1.0, 2.0)
    names = ["lr", "acc", "val/acc", "Loss/train", "loss/val"]
    assert main_first(names) == ["loss/val", "Loss/train", "val/acc", "acc", "lr"]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("val/image_to_text_R@1", 0.7634, "76.3 %"),
        ("train/pairs_per_s", 12345.6, "12,346 pairs/s"),
        ("val/auc_hard10", 0.98765, "0.9877"),
        ("train/loss", math.nan, "nan"),
        ("train/loss", None, "–"),
        ("system/cpu_percent", 51.2, "51 %"),
    ],
)
def test_values_as_people_read_them(name, value, text):
    assert metric(name).text(value) == text


def test_the_headline_of_a_run_is_recall_or_what_its_neighbors_know():
    run = config.Run()
    assert headline(run) == HEADLINE
    assert headline(replace(run, objective=config.SimClr())) == "val/knn_acc1"
    assert headline(replace(run, objective=config.SimClr(), data=config.Folder(path="x"))) == "val/knn_words"
    assert headline(replace(run, objective=config.Triplet(), data=config.Table(path="x"))) == "val/knn_acc1"


def test_every_attribute_has_an_accuracy_of_its_own():
    found = metric("combinations/knn_subject_color")
    assert found.label == "kNN accuracy of subject color, unseen combinations"
    assert (found.better, found.percent) == ("up", True)


def test_a_recall_is_named_with_direction_split_and_n_in_one_format():
    name = "Image to text R@1, unseen renderings, n = 1,024"
    assert recall_name("image_to_text", split="renderings", n=1024) == name
    assert metric("val/image_to_text_R@1").on("renderings", 1024) == name
    assert headline_name(HEADLINE, {"heldout_pairs": {"renderings": 1024, "combinations": 512}}) == name
    assert recall_name("text_to_image", 5, split=["a", "b"], n=[20, 30]) == "Text to image R@5, a / b, n = 20 / 30"
    assert recall_name("both", split=["a", "a"], n=[20, 20]) == "R@1 both ways, a, n = 20"
    assert logged_name("val/image_to_text_R@1", 463) == "Image to text R@1, held-out, n = 463"
    assert logged_name("combinations/image_to_text_R@1", 9) == "Image to text R@1, unseen combinations, n = 9"
    assert headline_name("val/knn_acc1", {}) == "kNN accuracy of class"


def test_no_other_place_writes_the_name_of_a_recall():
    """Names of logged metrics (`..._R@1`) and explanations (METHOD, docstrings) are no names of a value."""
    root, found = Path(__file__).parents[2], []
    for file in sorted([*root.glob("trainer/**/*.py"), *root.glob("explorer/**/*.py")]):
        if file.name in ("metrics.py", "method.py"):
            continue
        text = re.sub(r'"""(?s:.*?)"""', "", file.read_text(encoding="utf-8"))
        found += [
            f"{file.relative_to(root)}: {line.strip()}" for line in text.splitlines() if re.search("(?<!_)R@", line)
        ]
    assert not found
