"""Swaps of Scenes against the scenes that they are captions of; of free captions against what a person wrote."""

from dataclasses import replace

import pytest

from trainer.analysis.caption_swaps import swaps
from trainer.config import Scenes
from trainer.data.scenes import Thing, plan_scenes

OPPOSITE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}


def test_every_swap_of_scenes_is_exactly_another_scene():
    seen = {"color": 0, "relation": 0, "order": 0}
    for scene in plan_scenes(Scenes(train_pairs=3_000, heldout_pairs=64))["train"]:
        one, other = scene.subject, scene.object
        exchanged = Thing(other.color, one.shape), Thing(one.color, other.shape)
        wanted = {
            "color": replace(scene, subject=exchanged[0], object=exchanged[1]).caption,
            "relation": replace(scene, relation=OPPOSITE[scene.relation]).caption,
            "order": replace(scene, subject=other, object=one).caption,
        }
        wanted = {kind: caption for kind, caption in wanted.items() if caption != scene.caption}
        assert {swap.kind: swap.caption for swap in swaps(scene.caption)} == wanted
        for kind in wanted:
            seen[kind] += 1
    assert min(seen.values()) > 2_500


@pytest.mark.parametrize(
    ("caption", "wanted"),
    [
        (
            "A black dog is in front of a white cat.",
            {
                "color": "A white dog is in front of a black cat.",
                "relation": "A black dog is behind a white cat.",
                "order": "A white cat is in front of a black dog.",
            },
        ),
        ("An orange bus and a red car", {"color": "A red bus and an orange car"}),
        (
            "the man sits to the left of the woman in a red coat",
            {
                "relation": "the man sits to the right of the woman in a red coat",
                "order": "the woman sits to the left of the man in a red coat",
            },
        ),
        ("a photo of a cat", {}),
        ("a red car and a red bus", {}),
        ("", {}),
    ],
)
def test_free_captions_are_swapped_by_their_words(caption: str, wanted: dict[str, str]):
    assert {swap.kind: swap.caption for swap in swaps(caption)} == wanted
