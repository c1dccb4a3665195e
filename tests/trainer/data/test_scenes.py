"""Scenes: reproducible, with separate held-out pairs, and captions that match the images."""

import collections
import hashlib
import itertools
from pathlib import Path

import numpy as np
import pytest

from trainer import config
from trainer.data import DataError, scenes
from trainer.data.scenes.picture import SIZE, draw
from trainer.data.scenes.plan import random
from trainer.data.scenes.words import COLORS, FAVORITE_COLORS, FAVORITE_GROUNDS, GROUNDS, RELATIONS, SHAPES
from trainer.prompt_suites import prompt_suites

pytestmark = pytest.mark.slow

TINY = config.Scenes(train_pairs=64, heldout_pairs=16)
USUAL = config.Scenes(train_pairs=3000, heldout_pairs=300)


def quiet(share: float, note: str) -> None:
    assert 0 <= share <= 1
    assert note


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def usual() -> dict[str, list[scenes.Scene]]:
    return scenes.plan_scenes(USUAL)


def test_two_writings_are_the_same_bytes(tmp_path: Path) -> None:
    one = scenes.write(TINY, tmp_path / "one", quiet, processes=1)
    two = scenes.write(TINY, tmp_path / "two", quiet, processes=1)
    assert contents(one) == contents(two)
    assert len(contents(one)) == 2 * (64 + 16 + 16) + 3 + 1


def test_the_pixels_are_those_that_were_drawn_ever_since() -> None:
    """All shapes, colors and grounds look as before drawing was made faster."""
    settings = config.Scenes(seed=3, train_pairs=96, heldout_pairs=16)
    planned, digest = scenes.plan_scenes(settings), hashlib.blake2b(digest_size=16)
    for split in ("train", "combinations"):
        for index, scene in enumerate(planned[split]):
            digest.update(np.asarray(draw(scene, random(3, split, index, "drawing"))).tobytes())
    assert {scene.subject.shape for scene in planned["train"]} == set(SHAPES)
    assert digest.hexdigest() == "86b8c383ca3bb400969d12688e860293"


def test_the_number_of_processes_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.data.scenes.writing._CHUNK", 8)
    alone = scenes.write(TINY, tmp_path / "alone", quiet, processes=1)
    spread = scenes.write(TINY, tmp_path / "spread", quiet, processes=2)
    assert contents(alone) == contents(spread)


def test_more_pairs_leave_the_first_as_they_were(usual: dict[str, list[scenes.Scene]]) -> None:
    assert scenes.plan_scenes(TINY)["train"] == usual["train"][:64]


def test_another_seed_is_another_set(usual: dict[str, list[scenes.Scene]]) -> None:
    other = scenes.plan_scenes(config.Scenes(seed=1, train_pairs=3000, heldout_pairs=300))
    assert sum(a == b for a, b in zip(usual["train"], other["train"], strict=True)) < 10
    assert scenes.unseen_things(1) != scenes.unseen_things(0)


def test_unseen_things_are_a_tenth_and_leave_every_word_seen() -> None:
    for seed in range(20):
        unseen = scenes.unseen_things(seed)
        assert len(unseen) == len(COLORS) * len(SHAPES) // 10
        assert {thing.shape for thing in unseen} == set(SHAPES)
        assert max(collections.Counter(thing.color for thing in unseen).values()) == 1


@pytest.mark.parametrize("cooccurrence", [0.0, 0.6, 1.0])
def test_unseen_things_never_occur_in_training_in_either_role(cooccurrence: float) -> None:
    planned = scenes.plan_scenes(config.Scenes(train_pairs=3000, heldout_pairs=300, cooccurrence=cooccurrence))
    unseen = scenes.unseen_things(0)
    for scene in planned["train"] + planned["renderings"]:
        assert not {scene.subject, scene.object} & unseen
    seen = {scene.subject for scene in planned["train"]} | {scene.object for scene in planned["train"]}
    assert {thing.color for thing in seen} == set(COLORS)
    assert {thing.shape for thing in seen} == set(SHAPES)
    assert all(scene.subject in unseen and scene.object not in unseen for scene in planned["combinations"])


def test_heldout_captions_are_distinct_and_of_the_right_kind(usual: dict[str, list[scenes.Scene]]) -> None:
    captions = {split: [scene.caption for scene in members] for split, members in usual.items()}
    assert [len(captions[split]) for split in scenes.SPLITS] == [3000, 300, 300]
    for split in ("renderings", "combinations"):
        assert len(set(captions[split])) == 300
    assert set(captions["renderings"]) <= set(captions["train"])
    assert not set(captions["combinations"]) & set(captions["train"])


def test_renderings_are_other_drawings_of_the_same_caption(usual: dict[str, list[scenes.Scene]]) -> None:
    scene = usual["renderings"][0]
    first = usual["train"].index(scene)
    trained, heldout = draw(scene, random(0, "train", first, "drawing")), draw(scene, random(0, "renderings", 0))
    assert np.abs(np.asarray(trained, float) - np.asarray(heldout, float)).mean() > 5


def test_a_caption_belongs_to_one_scene() -> None:
    things = [scenes.Thing(color, shape) for color in ("red", "blue") for shape in SHAPES]
    pairs = itertools.permutations(things, 2)
    everything = [scenes.Scene(s, o, r, g) for s, o in pairs for r in RELATIONS for g in GROUNDS]
    assert len({scene.caption for scene in everything}) == len(everything)
    orange = scenes.Scene(scenes.Thing("orange", "moon"), scenes.Thing("red", "ring"), "above", "night sky")
    assert orange.caption == "an orange moon above a red ring in the night sky"


def test_cooccurrence_decides_how_often_favorites_are_drawn() -> None:
    def share_of_favorites(cooccurrence: float) -> tuple[float, float]:
        train = scenes.plan_scenes(config.Scenes(train_pairs=2000, heldout_pairs=16, cooccurrence=cooccurrence))[
            "train"
        ]
        colors = np.mean([scene.subject.color in FAVORITE_COLORS[scene.subject.shape] for scene in train])
        grounds = np.mean([scene.ground in FAVORITE_GROUNDS[scene.subject.shape] for scene in train])
        return float(colors), float(grounds)

    # Of 9 seen colors 3 are favorites, of 6 grounds 2. Five standard errors of a share of 2,000 are 0.053.
    assert share_of_favorites(0.0) == pytest.approx((1 / 3, 1 / 3), abs=0.053)
    half = share_of_favorites(0.5)
    assert half[1] == pytest.approx(2 / 3, abs=0.053)
    assert share_of_favorites(1.0) == (1.0, 1.0)


def test_too_few_captions_are_refused_with_the_way_out() -> None:
    with pytest.raises(DataError, match=r"1,024 held-out pairs.*64 training pairs have.*Raise the training pairs"):
        scenes.plan_scenes(config.Scenes(train_pairs=64, heldout_pairs=1024))
    with pytest.raises(DataError, match="only 13,824 different captions of unseen combinations"):
        scenes.plan_scenes(config.Scenes(train_pairs=20_000, heldout_pairs=14_000))


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_larger_shape_is_where_the_caption_says(relation: str) -> None:
    scene = scenes.Scene(scenes.Thing("red", "circle"), scenes.Thing("blue", "square"), relation, "night sky")
    for index in range(8):
        red, green, blue = np.moveaxis(np.asarray(draw(scene, random(0, "test", index)), int), -1, 0)
        subject, other = np.argwhere((red > 150) & (green < 100)), np.argwhere((blue > 150) & (red < 110))
        (down, across), (other_down, other_across) = np.median(subject, axis=0), np.median(other, axis=0)
        assert len(subject) > 1.5 * len(other) > 300
        ahead = {
            "left of": other_across - across,
            "right of": across - other_across,
            "above": other_down - down,
            "below": down - other_down,
        }
        assert ahead[relation] == max(ahead.values())
        assert ahead[relation] > SIZE / 4


def test_a_half_written_set_is_drawn_again(tmp_path: Path) -> None:
    folder = scenes.folder_of(TINY, tmp_path)

    def stop(share: float, note: str) -> None:
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scenes.write(TINY, folder, stop, processes=1)
    assert [split for split in scenes.SPLITS if scenes.is_drawn(folder, split)] == ["renderings", "combinations"]
    leftover = folder / ".train.unfinished"
    leftover.mkdir()
    (leftover / "99999.jpg").write_bytes(b"cut off")
    scenes.write(TINY, folder, quiet, processes=1)
    assert len(list((folder / "train").glob("*.jpg"))) == 64
    assert not (folder / "train" / "99999.jpg").exists()


def test_pictures_without_their_table_are_drawn_again(tmp_path: Path) -> None:
    folder = scenes.folder_of(TINY, tmp_path)
    thinned = folder / "renderings" / "00002.jpg"
    thinned.parent.mkdir(parents=True)
    thinned.write_bytes(b"one of a sample, compressed more")
    scenes.write(TINY, folder, quiet, processes=1)
    assert len(scenes.sources(folder, "renderings")) == len(list(thinned.parent.glob("*.jpg")))
    assert thinned.read_bytes()[:2] == b"\xff\xd8"


def test_the_folder_explains_itself_and_lists_its_words(tmp_path: Path) -> None:
    folder = scenes.write(TINY, tmp_path / "scenes", quiet, processes=1)
    assert "Drop any of the images onto the window" in (folder / "README.txt").read_text(encoding="utf-8")
    for source in scenes.sources(folder, "combinations"):
        assert source.path.is_file()
        assert source.path.stat().st_size < 12_000
        assert source.path.with_suffix(".txt").read_text(encoding="utf-8").strip() == source.caption
        assert source.label == source.metadata["subject_color"]
        assert f"{source.label} {source.metadata['subject_shape']} {source.metadata['relation']}" in source.caption


@pytest.mark.parametrize(
    ("name", "classes", "one"),
    [
        ("scenes", tuple(COLORS), "red"),
        ("scenes-shapes", SHAPES, "star"),
        ("scenes-grounds", tuple(GROUNDS.values()), "on sand"),
    ],
)
def test_the_suites_ask_in_captions_that_may_occur(name: str, classes: tuple[str, ...], one: str) -> None:
    suite = prompt_suites()[name]
    assert suite.classes == classes
    assert len(suite.templates) == len(set(suite.templates)) >= 20
    things = [scenes.Thing(color, shape) for color in COLORS for shape in SHAPES]
    possible = {
        scenes.Scene(subject, other, relation, ground).caption
        for subject in things
        for other in things
        for relation in RELATIONS
        for ground in GROUNDS
    }
    for template in suite.templates:
        assert template.format(one) in possible
