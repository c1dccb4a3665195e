"""Metrics of other programs have our names where they are the same quantity, and only there."""

import pytest

from trainer.metrics import metric
from trainer.trackers.metric_names import Program, shared_names


@pytest.mark.parametrize(
    ("program", "theirs", "ours"),
    [
        ("open_clip", "Loss", "train/loss"),
        ("open_clip", "train/lr", "train/learning_rate"),
        ("open_clip", "Logit Scale", "train/inv_tau"),
        ("open_clip", "samples_per_second", "train/pairs_per_s"),
        ("open_clip", "clip_val_loss", "val/loss"),
        ("open_clip", "val/imagenet-zeroshot-val-top5", "val/zero_shot_acc5"),
        ("open_clip", "image_to_text_R@1", "val/paired_image_to_text_R@1"),
        ("open_clip", "val/text_to_image_median_rank", "val/paired_text_to_image_median_rank"),
        ("transformers", "loss", "train/loss"),
        ("transformers", "grad_norm", "train/gradient_norm"),
        ("transformers", "eval_loss", "val/loss"),
        ("transformers", "eval_image_to_text_R@1", "val/image_to_text_R@1"),
        ("lightning", "train/loss_step", "train/loss"),
        ("lightning", "train/loss_epoch", "train/loss_epoch"),
        ("lightning", "val_loss", "val/loss"),
        ("lightning", "lr-AdamW", "train/learning_rate"),
        ("lightning", "lr-AdamW/pg1", "lr-AdamW/pg1"),
        ("", "loss", "loss"),
        ("", "eval_loss", "eval_loss"),
    ],
)
def test_names_are_shared_where_the_quantity_is(program: Program, theirs: str, ours: str) -> None:
    assert shared_names({theirs: 1.0}, program) == {ours: 1.0}


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("open_clip", ["epoch", "num_samples", "data_time", "train/batch_time"]),
        ("transformers", ["epoch", "train_loss", "train_runtime", "eval_samples_per_second", "total_flos"]),
        ("lightning", ["epoch", "hp_metric"]),
    ],
)
def test_what_is_no_curve_is_left_out(program: Program, names: list[str]) -> None:
    assert shared_names(dict.fromkeys(names, 1.0), program) == {}


def test_retrieval_of_open_clip_is_ours_where_captions_differ() -> None:
    distinct = shared_names({"image_to_text_R@1": 0.5}, "open_clip", distinct_captions=True)
    assert distinct == {"val/image_to_text_R@1": 0.5}
    paired = metric("val/paired_image_to_text_R@1")
    assert (paired.percent, paired.label) == (True, "Image to text R@1, own caption only")
