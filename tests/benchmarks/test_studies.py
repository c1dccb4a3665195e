"""The studies that are experiments can be read, and their arms differ in what they say alone."""

from pathlib import Path

import pytest

from tests.benchmarks import explaining_away
from tests.lazily import lazily
from trainer.experiments.experiment import check_measured, read

stats = lazily("scipy.stats")
STUDIES = sorted((Path(__file__).parent / "studies").glob("*.toml"))
SHARES = [file for file in STUDIES if file.stem.startswith("shares")]
VARIED = {
    "efficiency_scenes": {"objective"},
    "pcl_scenes": {"objective"},
    "binding_scenes_short": {"objective"},
    "simclr_projector": {"objective.projector"},
    "simclr_grid": {"objective.smallest_crop", "objective.color"},
    "simclr_lars": {f"optimizer.{name}" for name in ("algorithm", "batch_size", "learning_rate", "weight_decay")},
    "two_views_scenes": {"objective"},
    "word2vec_softmax": {"objective.softmax"},
    "convirt_scenes": {"objective", "model.projection", "optimizer.crop_scale"},
    "convirt_scenes_short": {"objective", "model.projection", "optimizer.crop_scale"},
}


@pytest.mark.parametrize("file", [file for file in STUDIES if file not in SHARES], ids=lambda file: file.stem)
def test_the_arms_of_a_study_differ_in_what_it_is_about_alone(file: Path):
    study = read(file)
    check_measured(study)
    assert {*study.fields} == VARIED[file.stem]


@pytest.mark.parametrize("file", SHARES, ids=lambda file: file.stem)
def test_a_study_has_clip_and_four_shares(file: Path):
    study = read(file)
    objectives = [arm.run.objective for arm in study.arms]
    assert [getattr(one, "retrieval_share", None) for one in objectives] == [None, 0, 0.25, 0.5, 1]
    first = study.arms[0].run
    assert all((arm.run.data, arm.run.model, arm.run.optimizer) == (first.data, first.model, first.optimizer)
               for arm in study.arms)  # fmt: skip


def test_the_claim_is_tested_on_the_seeds_that_have_all_four_cells():
    rows = []
    for seed, (clip, cloob) in enumerate([(10, 6), (12, 7), (11, 8), (9, 9)]):
        for arm, fall in (("clip", clip), ("1", cloob)):
            for repeated, value in ((0.0, 90), (0.95, 90 - fall)):
                rows.append({"arm": arm, "repeated": repeated, "seed": seed, "accuracy": [1, value / 100]})
    rows.pop()
    told = explaining_away.claim(rows)
    assert "falls by 11.0 points for CLIP, 7.0 for share 1: CLIP's fall minus that is +4.0 points" in told
    assert "Holm 0.020, 3 seeds" in told
    assert "Share 0.5 is not tested: 0 seeds." in told
    assert "Share 1 is not tested: 1 seeds." in explaining_away.claim(rows[:4])


def test_four_claims_are_adjusted_together():
    """Two shares with equal falls: the smaller p is doubled."""
    rows = []
    for seed, falls in enumerate([(10, 6, 9), (12, 7, 11), (11, 8, 11), (9, 6, 9)]):
        for arm, fall in zip(("clip", "0.5", "1"), falls, strict=True):
            for repeated, value in ((0.0, 90), (0.95, 90 - fall)):
                rows.append({"arm": arm, "repeated": repeated, "seed": seed, "accuracy": [1, value / 100]})
    told = explaining_away.claim(rows).splitlines()
    alone = [stats.ttest_rel([10, 12, 11, 9], own).pvalue for own in ([6, 7, 8, 6], [9, 11, 11, 9])]
    assert f"p {alone[0]:.3f}, Holm {2 * alone[0]:.3f}, 4 seeds" in told[-2]
    assert f"p {alone[1]:.3f}, Holm {max(alone[1], 2 * alone[0]):.3f}, 4 seeds" in told[-1]


def test_an_attribute_repeats_as_often_as_asked_and_is_read_off():
    import numpy as np

    rng = np.random.default_rng(0)
    values = explaining_away.drawn(rng, 20_000, 0.6)
    assert (values[:, 0] == values[:, 1]).mean() == pytest.approx(0.6 + 0.4 / 6, abs=0.02)
    image, text = explaining_away.Mixer(3)(values, rng)
    assert text.sum(axis=1).tolist() == [5] * 20_000
    accuracy = explaining_away.read_off(text[:2000], values[:2000, 2], text[2000:], values[2000:, 2])
    assert accuracy == 1
    assert image.shape == (20_000, 64)
