"""Class folder data sets: their names, and videos from which a frame is extracted."""

import csv
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.trainer.data.test_sources import png
from trainer import config
from trainer.data import DataError, DataSplits, load
from trainer.data.class_names import class_names
from trainer.format_detection import recognize
from trainer.prompt_suites import published_suite

SIZE = 32

with_ffmpeg = pytest.mark.skipif(
    importlib.util.find_spec("imageio_ffmpeg") is None, reason="the extra film (imageio-ffmpeg) is not installed"
)


def folders(root: Path, names: list[str], each: int = 3) -> Path:
    for shade, name in enumerate(names):
        (root / name).mkdir(parents=True)
        for number in range(each):
            (root / name / f"{number}.png").write_bytes(png(shade))
    return root


def read(data: config.Data, tmp_path: Path) -> DataSplits:
    return load(data, image_size=SIZE, workspace_folder=tmp_path / "workspace", progress=lambda share, note: None)


def labels(splits: DataSplits) -> dict[int, str]:
    """Return shade of the image -> label."""
    every = [splits.train, *splits.heldout.values()]
    return {int(part.images[row, 0, 0, 0]): label for part in every for row, label in enumerate(part.labels)}


@pytest.mark.slow
def test_some_of_imagenets_numbers_are_enough(tmp_path: Path) -> None:
    root = folders(tmp_path / "imagenette", ["n01440764", "n02102040", "n04254680", "n15075141"])
    splits = read(config.ClassFolder(path=str(root), heldout_share=0.3), tmp_path)
    assert labels(splits) == {0: "tench", 1: "English Springer Spaniel", 2: "soccer ball", 3: "toilet paper"}
    assert "a photo of a tench." in splits.train.captions
    assert splits.suite.name == "imagenet"
    assert len(splits.suite.classes) == 1000


def test_numbers_of_wordnet_beyond_imagenet_have_a_word(tmp_path: Path) -> None:
    assert class_names(["n01440764", "n00004475", "n99999999"], "mine") == {
        "n01440764": "tench",
        "n00004475": "organism",
        "n99999999": "n99999999",
    }


@pytest.mark.slow
def test_the_indices_of_imagenet_v2(tmp_path: Path) -> None:
    root = folders(tmp_path / "imagenetv2-matched-frequency-format-val", ["0", "1", "10", "999"])
    splits = read(config.ClassFolder(path=str(root)), tmp_path)
    assert labels(splits) == {0: "tench", 1: "goldfish", 2: "brambling", 3: "toilet paper"}
    assert splits.suite.name == "imagenet"
    # As text they are in another order, which must not matter.
    assert class_names(list(map(str, range(1000))), "somebody's")["10"] == "brambling"
    assert class_names(["0", "1", "2"], "somebody's") == {"0": "0", "1": "1", "2": "2"}
    assert class_names(["0", "1000"], "imagenet")["0"] == "0"


@pytest.mark.slow
def test_the_actions_of_ucf101(tmp_path: Path) -> None:
    root = folders(tmp_path / "UCF-101", ["ApplyEyeMakeup", "HandstandPushups", "TaiChi", "YoYo"])
    splits = read(config.ClassFolder(path=str(root), template="a photo of a person doing {}."), tmp_path)
    assert labels(splits) == {0: "Apply Eye Makeup", 1: "Hand Stand Pushups", 2: "Tai Chi", 3: "Yo Yo"}
    assert splits.suite.name == "ucf101"
    assert "a photo of a person doing Yo Yo." in splits.train.captions


@pytest.mark.slow
def test_the_birds_of_birdsnap_and_their_splits(tmp_path: Path) -> None:
    for split in ("train", "test"):
        folders(tmp_path / "birdsnap" / split, ["Acadian_Flycatcher", "Ash-throated_Flycatcher", "Brant"])
    splits = read(recognize(tmp_path / "birdsnap"), tmp_path)
    assert labels(splits) == {0: "Acadian Flycatcher", 1: "Ash throated Flycatcher", 2: "Brant"}
    assert (len(splits.train), len(splits.heldout["heldout"])) == (9, 9)
    assert splits.suite.name == "birdsnap"


def test_camel_case_is_spelled_only_where_all_folders_are() -> None:
    assert class_names(["HorseRiding", "Surfing", "TVSet"], "mine") == {
        "HorseRiding": "Horse Riding",
        "Surfing": "Surfing",
        "TVSet": "TV Set",
    }
    assert class_names(["McDonald", "sea_lion"], "mine") == {"McDonald": "McDonald", "sea_lion": "sea lion"}
    assert class_names(["Cat", "Dog"], "mine") == {"Cat": "Cat", "Dog": "Dog"}


def test_suites_are_known_by_how_a_name_begins() -> None:
    assert published_suite("CIFAR-100 (png)").name == "cifar100"
    assert published_suite("cifar10").name == "cifar10"
    assert published_suite("holiday pictures") is None


SIGNS = {0: "20 kph speed limit", 1: "30 kph speed limit", 12: "priority road", 13: "yield", 14: "stop"}
SIGNS |= {17: "no entry", 25: "road work", 33: "right turn", 38: "keep right", 40: "traffic circle"}
"""Words of signs whose meaning the data set's own table of `ClassId` gives."""


@pytest.mark.slow
def test_the_signs_of_gtsrb_are_in_torchvisions_order(tmp_path: Path) -> None:
    """The numbers of its folders and of `ClassId` are those of the data set's own table of signs."""
    root = tmp_path / "gtsrb"
    for number in range(43):
        place = root / "GTSRB" / "Training" / f"{number:05}"
        place.mkdir(parents=True)
        Image.new("RGB", (SIZE, SIZE), (number, 0, 0)).save(place / "00000_00000.ppm")
    images = root / "GTSRB" / "Final_Test" / "Images"
    images.mkdir(parents=True)
    with (root / "GT-final_test.csv").open("w", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["Filename", "Width", "ClassId"])
        for line, number in enumerate(reversed(range(43))):
            Image.new("RGB", (SIZE, SIZE), (number, 0, 0)).save(images / f"{line:05}.ppm")
            rows.writerow([f"{line:05}.ppm", SIZE, number])
    splits = read(config.Named(name="GTSRB", root=str(tmp_path)), tmp_path)
    for part in (splits.train, splits.heldout["heldout"]):
        found = {int(part.images[row, 0, 0, 0]): label for row, label in enumerate(part.labels)}
        assert all(words in found[number] for number, words in SIGNS.items())
        assert [found[number] for number in range(43)] == list(splits.suite.classes)
    # As a folder per class they have the same names.
    named = class_names([f"{number:05}" for number in range(43)], "gtsrb")
    assert [named[f"{number:05}"] for number in range(43)] == list(splits.suite.classes)


def film(path: Path, frames: int) -> None:
    import imageio_ffmpeg

    path.parent.mkdir(parents=True, exist_ok=True)
    writer = imageio_ffmpeg.write_frames(str(path), (64, 64), fps=10, codec="mjpeg", quality=9, pix_fmt_in="rgb24")
    writer.send(None)
    for number in range(frames):
        writer.send(np.full((64, 64, 3), 10 * number, np.uint8).tobytes())
    writer.close()


@with_ffmpeg
def test_of_a_film_the_middle_frame_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "UCF101"
    for name, frames in (("PlayingCello/a.avi", 11), ("PlayingCello/b.avi", 20), ("SkyDiving/c.avi", 5)):
        film(root / name, frames)
    (root / "SkyDiving" / "d.png").write_bytes(png(200))
    (root / "SkyDiving" / "broken.avi").write_bytes(b"RIFF no film")
    os.mkfifo(root / "SkyDiving" / "pipe.avi")
    (root / "SkyDiving" / "away.avi").symlink_to(tmp_path / "nowhere")
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(1))
    (root / "SkyDiving" / "list.avi").write_text(f"#EXTM3U\n#EXTINF:1,\nfile:{secret}\n")
    data = recognize(root)
    assert isinstance(data, config.ClassFolder)
    splits = read(data, tmp_path)
    found = {}
    for part in (splits.train, *splits.heldout.values()):
        found |= {label + str(int(part.images[row, 5, 5, 0])): None for row, label in enumerate(part.labels)}
    shades = sorted(found)
    assert len(shades) == 4
    wanted = [("playing cello", 50), ("playing cello", 100), ("sky diving", 200), ("sky diving", 20)]
    for label, shade in wanted:
        assert any(one.startswith(label) and abs(int(one.removeprefix(label)) - shade) <= 3 for one in shades)
    reasons = dict(splits.report.problems)
    for name in ("broken", "list"):
        assert reasons.pop(f"SkyDiving/{name}.avi") == "It is not a readable video, or has no frames."
    for name in ("pipe", "away"):
        assert reasons.pop(f"SkyDiving/{name}.avi").startswith("It cannot be read: ")
    assert reasons == {}
    assert splits.report.used == 4
    assert splits.suite.name == "ucf101"

    def never(*_: object) -> None:
        raise AssertionError("a frame was taken again")

    monkeypatch.setattr("trainer.data.videos._run", never)
    assert read(data, tmp_path).train.fingerprint == splits.train.fingerprint


def test_films_without_ffmpeg_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "films" / "Surfing").mkdir(parents=True)
    (tmp_path / "films" / "Surfing" / "a.avi").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(DataError, match=r"contains videos, and .*uv sync --extra film"):
        read(config.ClassFolder(path=str(tmp_path / "films")), tmp_path)
