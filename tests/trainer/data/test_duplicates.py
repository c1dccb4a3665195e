"""Near-duplicate images are found and reported; others are not."""

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageFilter

from trainer.__main__ import main
from trainer.analysis.near_duplicates import groups_of_near, perceptual_hashes, small_versions


def _picture(seed: int, edge: int = 96) -> Image.Image:
    """Return smooth colored blots, as distinct as photographs and robust to JPEG."""
    noise = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((edge, edge), Image.Resampling.BICUBIC)


def _pixels(pictures: list[Image.Image]) -> np.ndarray:
    return np.stack([np.asarray(picture.resize((64, 64), Image.Resampling.BICUBIC)) for picture in pictures])


def test_the_hash_is_that_of_a_plain_loop():
    images = _pixels([_picture(seed) for seed in range(6)])
    for image, found in zip(images.astype(float), perceptual_hashes(images).tolist(), strict=True):
        cuts = [column * 64 // 9 for column in range(9)] + [64]
        bits = ""
        for y in range(0, 64, 8):
            means = [image[y : y + 8, a:b].mean((0, 1)) @ [0.299, 0.587, 0.114] for a, b in itertools.pairwise(cuts)]
            bits += "".join("1" if after > before else "0" for before, after in itertools.pairwise(means))
        assert found == int(bits, 2)


@pytest.mark.parametrize("bits", [0, 3, 4, 9])
def test_the_groups_are_those_of_comparing_every_two(bits: int):
    rng = np.random.default_rng(bits)
    hashes = rng.integers(0, 2**63, 40, dtype=np.uint64)
    for row in range(20, 40):  # neighbors of earlier ones, with up to ten other signs
        hashes[row] = hashes[row - 20] ^ np.uint64(sum(1 << int(k) for k in rng.choice(64, row % 11, replace=False)))
    small = np.zeros((40, 192), np.float32)
    small[rng.random(40) < 0.2] += 50
    near = np.array([[int(a ^ b).bit_count() <= bits for b in hashes.tolist()] for a in hashes.tolist()])
    near &= np.sqrt(((small[:, None] - small[None]) ** 2).mean(2)) <= 8
    for _ in range(6):
        near = near @ near  # reached over others
    assert groups_of_near(hashes, small, bits=bits).tolist() == near.argmax(1).tolist()


def test_saved_again_scaled_or_brightened_is_the_same_and_another_color_is_not():
    one = _picture(1)
    turned = Image.fromarray(np.asarray(one)[:, :, ::-1].copy())
    gray = Image.new("RGB", (96, 96), (90, 90, 90))
    red = Image.new("RGB", (96, 96), (160, 60, 60))
    brighter = one.point(lambda value: min(255, value + 6))
    others = [_picture(seed) for seed in range(2, 60)]
    images = _pixels(
        [one, one.resize((50, 50)), one.filter(ImageFilter.GaussianBlur(1)), brighter, turned, gray, red, *others]
    )
    found = groups_of_near(perceptual_hashes(images), small_versions(images))
    assert found.tolist() == [0, 0, 0, 0, *range(4, len(images))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "photos"
    place.mkdir()
    rows = []
    for seed in range(60):
        _picture(seed).save(place / f"{seed}.png")
        rows.append(f"{seed}.png,picture {seed}")
    for seed in range(0, 60, 2):
        _picture(seed, 80).save(place / f"copy{seed}.jpg", quality=80)
        rows.append(f"copy{seed}.jpg,copy of picture {seed}")
    (place / "captions.csv").write_text("filepath,title\n" + "\n".join(rows))
    return place


@pytest.mark.slow
def test_copies_on_both_sides_of_the_split_are_named_and_the_cleaned_list_has_none(
    folder: Path, tmp_path: Path, capsys
):
    out = tmp_path / "clean.csv"
    words = ["data", "duplicates", "--data", str(folder), "--json", "--workspace", str(tmp_path / "w")]
    assert main([*words, "--out", str(out)]) == 1
    groups = json.loads(capsys.readouterr().out)["groups"]
    named = {frozenset(Path(path).stem for path in [*group["train"], *group["heldout"]]) for group in groups}
    assert named == {frozenset({f"{seed}", f"copy{seed}"}) for seed in range(0, 60, 2)}
    assert any(group["train"] and group["heldout"] for group in groups)
    heldout = tmp_path / "clean-heldout.csv"
    lost = sum(len(group["train"]) - (not group["heldout"]) for group in groups if group["train"])
    assert len(out.read_text().splitlines()) + len(heldout.read_text().splitlines()) == 2 + 90 - lost
    again = ["data", "duplicates", "--table", str(out), "--set", f"data.heldout_path={heldout}", *words[4:]]
    assert main(again) == 0
    left = json.loads(capsys.readouterr().out)["groups"]
    assert all(not group["train"] for group in left), "two held-out pictures may be near: both stay"


@pytest.mark.slow
def test_captions_that_a_csv_would_change_are_kept_in_parquet(tmp_path: Path, capsys):
    rows = ["filepath,title"]
    for seed in range(20):
        _picture(seed).save(tmp_path / f"{seed}.png")
        rows.append(f"{tmp_path / f'{seed}.png'},=caption {seed}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    words = ["data", "duplicates", "--table", str(tmp_path / "t.csv"), "--workspace", str(tmp_path / "w"), "--out"]
    assert main([*words, str(tmp_path / "clean.csv")]) == 2
    assert "20 texts would be changed in a CSV" in capsys.readouterr().err
    assert not (tmp_path / "clean.csv").exists()
    assert main([*words, str(tmp_path / "clean.parquet")]) == 0
    files = [tmp_path / "clean.parquet", tmp_path / "clean-heldout.parquet"]
    captions = [text for file in files for text in pq.read_table(file).column("title").to_pylist()]
    assert sorted(captions) == sorted(f"=caption {seed}" for seed in range(20))
