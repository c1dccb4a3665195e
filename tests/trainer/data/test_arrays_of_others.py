"""Pictures and classes in arrays are read by torchvision, or refused with a command that makes them readable."""

import contextlib
import csv
import io
import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from explorer.widgets.wrapped_label import unbroken
from tests.nightly import few_plain
from tests.trainer.data.test_stated_splits import listed
from tests.trainer.test_format_detection import pictures, write
from trainer import config
from trainer.data import DataError
from trainer.format_detection import propose
from trainer.images import Member
from trainer.prompt_suites import prompt_suites

pytestmark = [pytest.mark.slow]

RANDOM = np.random.default_rng(0)


def pixels_of(sources: Sequence[Any]) -> list[Any]:
    """Return the pixels of pictures that are kept in a tar."""
    locations = [source.path for source in sources]
    assert all(isinstance(at, Member) for at in locations)
    contents = [at.file.read_bytes()[at.offset : at.offset + at.size] for at in locations]
    return [np.asarray(Image.open(io.BytesIO(content))) for content in contents]


def run_command(sentence: str, folder: Path, file: str = "FILE") -> None:
    """Run the command that a refusal names, in the folder of the files: here, where its libraries are imported."""
    (command,) = re.findall(r'python -c ".*"(?: > (?:val_)?labels\.txt)?', sentence)
    assert not set("$`!") & set(command), "a shell would replace something"
    _, _, code, *output = shlex.split(command.replace("FILE", file))
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(code, {})
    if output:
        (folder / output[-1]).write_text(printed.getvalue())


def refusal(path: Path) -> str:
    with pytest.raises(config.ConfigError) as error:
        propose(path)
    return str(error.value)


def test_arrays_of_stl10_are_what_torchvision_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import STL10, stl10

    top = tmp_path / "stl10_binary"
    top.mkdir()
    for part, count in (("train", 6), ("test", 4)):
        (top / f"{part}_X.bin").write_bytes(RANDOM.integers(0, 256, count * 3 * 96 * 96, np.uint8).tobytes())
        (top / f"{part}_y.bin").write_bytes(bytes(range(1, count + 1)))
    write(top / "fold_indices.txt", "0 1 2\n")
    write(top / "class_names.txt", "".join(f"{name}\n" for name in prompt_suites()["stl10"].classes))
    assert propose(tmp_path).data == propose(top).data == config.Named(name="STL10", root=str(tmp_path))
    with pytest.raises(DataError, match="incomplete or not the published ones"):
        listed(propose(tmp_path).data, tmp_path)
    monkeypatch.setattr(stl10, "check_integrity", lambda *_: True)
    index = listed(propose(tmp_path).data, tmp_path)
    for split, part in (("train", "train"), ("heldout", "test")):
        peer = list(STL10(str(tmp_path), split=part))
        suite = prompt_suites()["stl10"].classes
        assert [source.label for source in index.splits[split]] == [suite[kind] for _, kind in peer]
        for pixels, (picture, _) in zip(pixels_of(index.splits[split]), peer, strict=True):
            assert (pixels == np.asarray(picture)).all()


def test_flowers_beside_their_arrays_are_what_torchvision_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision.datasets import Flowers102, flowers102

    top = tmp_path / "flowers-102"
    pictures(top / "jpg", [f"image_{row:05}.jpg" for row in range(1, 13)])
    kinds = [1 + 33 * (row % 4) for row in range(12)]
    savemat(top / "imagelabels.mat", {"labels": np.array([kinds], np.uint8)})
    savemat(top / "setid.mat", {"trnid": [[1, 2, 3, 4]], "valid": [[5, 6, 7, 8]], "tstid": [[9, 10, 11, 12]]})
    assert propose(tmp_path).data == config.Named(name="Flowers102", root=str(tmp_path))
    monkeypatch.setattr(flowers102, "check_integrity", lambda *_: True)
    index = listed(propose(tmp_path).data, tmp_path)
    for split, part in (("train", "train"), ("heldout", "test")):
        peer = Flowers102(str(tmp_path), split=part)
        shown = [(picture.getpixel((0, 0)), peer.classes[kind]) for picture, kind in peer]
        read = [(Image.open(str(pair.path)).getpixel((0, 0)), pair.label) for pair in index.splits[split]]
        assert sorted(read) == sorted(shown)
    # Under another name, the command of the question makes a list of the same classes.
    top.rename(tmp_path / "oxford-flowers")
    run_command(propose(tmp_path / "oxford-flowers").question, tmp_path / "oxford-flowers")
    pairs = listed(propose(tmp_path / "oxford-flowers").data, tmp_path).splits["train"]
    assert [pair.label for pair in sorted(pairs, key=lambda pair: pair.relative)] == [f"{kind - 1}" for kind in kinds]


def test_the_command_for_cars_lists_the_classes_of_torchvision(tmp_path: Path) -> None:
    from torchvision.datasets import StanfordCars

    top = tmp_path / "stanford_cars"
    fields = [(name, object) for name in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]
    rows = np.empty((1, 8), dtype=fields)
    for row in range(8):
        rows[0, row] = (*(np.array([[1]]),) * 4, np.array([[1 + row % 2]]), f"{row + 1:05}.jpg")
    pictures(top, [f"cars_{part}/{row:05}.jpg" for part in ("train", "test") for row in range(1, 9)])
    (top / "devkit").mkdir()
    savemat(top / "devkit" / "cars_train_annos.mat", {"annotations": rows})
    savemat(top / "cars_test_annos_withlabels.mat", {"annotations": rows})
    names = np.array([[*prompt_suites()["stanfordcars"].classes]], dtype=object)
    savemat(top / "devkit" / "cars_meta.mat", {"class_names": names})
    index = listed(propose(tmp_path).data, tmp_path)
    peer = StanfordCars(str(tmp_path), split="train")
    labels = [peer.classes[kind] for _, kind in peer]
    assert [pair.label for pair in index.splits["train"]] == labels
    run_command(refusal(top / "devkit" / "cars_train_annos.mat"), top / "devkit")
    listed_rows = (top / "devkit" / "labels.txt").read_text().splitlines()
    assert [line.split()[1] for line in listed_rows] == [f"{kind}" for _, kind in peer]


def test_the_command_for_svhn_makes_what_torchvision_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import SVHN, svhn

    for part, count in (("train", 8), ("test", 4)):
        images = RANDOM.integers(0, 256, (32, 32, 3, count), np.uint8)
        savemat(tmp_path / f"{part}_32x32.mat", {"X": images, "y": [[1 + 3 * row % 10] for row in range(count)]})
    run_command(refusal(tmp_path), tmp_path)
    index = listed(propose(tmp_path / "svhn.npz").data, tmp_path)
    monkeypatch.setattr(svhn, "check_integrity", lambda *_: True)
    for split, part in (("train", "train"), ("heldout", "test")):
        peer = list(SVHN(str(tmp_path), split=part))
        assert [pair.label for pair in index.splits[split]] == [f"{kind}" for _, kind in peer]
        for pixels, (picture, _) in zip(pixels_of(index.splits[split]), peer, strict=True):
            assert (pixels == np.asarray(picture)).all()


def test_the_command_for_pcam_writes_what_torchvision_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """h5py is a stand-in: its files are those of numpy."""
    from torchvision.datasets import PCAM

    write(tmp_path / "h5py.py", "import numpy\nFile = numpy.load\n")
    monkeypatch.syspath_prepend(tmp_path)
    root = tmp_path / "pcam"
    root.mkdir()
    for part, count in (("train", 6), ("valid", 2), ("test", 4)):
        images = RANDOM.integers(0, 256, (count, 8, 8, 3), np.uint8)
        kinds = (np.arange(count) % 2).reshape(count, 1, 1, 1)
        for name, arrays in (("x", {"x": images}), ("y", {"y": kinds})):
            with (root / f"camelyonpatch_level_2_split_{part}_{name}.h5").open("wb") as file:
                np.savez(file, **arrays)
    run_command(refusal(root).replace("FOLDER", str(tmp_path)), root)
    index = listed(propose(root).data, tmp_path)
    classes = prompt_suites()["pcam"].classes
    for split, part in (("train", "train"), ("heldout", "test")):
        shown = sorted((classes[kind], np.asarray(picture).tobytes()) for picture, kind in PCAM(str(tmp_path), part))
        pairs = ((pair.label, np.asarray(Image.open(str(pair.path))).tobytes()) for pair in index.splits[split])
        assert sorted(pairs) == shown


@few_plain(1, "form", ["txt", "csv"])
def test_the_command_for_celeba_lists_the_classes_of_an_attribute(tmp_path: Path, form: str) -> None:
    names = [f"{row:06}.jpg" for row in range(1, 9)]
    # Kaggle's archive has the folder twice, and its tables above.
    pictures(tmp_path / ("img_align_celeba/" * (1 + (form == "csv"))), names)
    cells = [[name, "-1", "1" if row % 3 else "-1"] for row, name in enumerate(names)]
    table = {
        "csv": ["image_id,Bald,Smiling", *map(",".join, cells)],
        "txt": ["8", "Bald Smiling ", *map(" ".join, cells)],
    }
    write(tmp_path / f"list_attr_celeba.{form}", "".join(f"{line}\n" for line in table[form]))
    write(tmp_path / "list_eval_partition.txt", "".join(f"{name} {row // 6}\n" for row, name in enumerate(names)))
    run_command(propose(tmp_path).question, tmp_path)
    splits = listed(propose(tmp_path).data, tmp_path.parent).splits
    assert {Path(str(pair.path)).name: pair.label for pairs in splits.values() for pair in pairs} == {
        name: "smiling" if row % 3 else "not smiling" for row, name in enumerate(names)
    }
    # The partition states the split: 0 is what torchvision trains on.
    assert [Path(str(pair.path)).name for pair in splits["heldout"]] == names[6:]


def test_the_command_for_the_devkit_of_imagenet_lists_the_classes(tmp_path: Path) -> None:
    root = tmp_path / "imagenet"
    kinds = ["n01440764", "n01443537"]
    pictures(root, [f"train/{kind}/{kind}_{row}.JPEG" for kind in kinds for row in range(4)])
    pictures(root / "val", [f"ILSVRC2012_val_{row:08}.JPEG" for row in range(1, 7)])
    devkit = root / "ILSVRC2012_devkit_t12"
    truth = [1, 2, 2, 1, 2, 1]
    write(devkit / "data" / "ILSVRC2012_validation_ground_truth.txt", "".join(f"{kind}\n" for kind in truth))
    fields = [(name, object) for name in ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children")]
    synsets = np.empty((2, 1), dtype=fields)
    for row, kind in enumerate(kinds):
        synsets[row, 0] = (row + 1, kind, f"fish {row}", "", 0)
    savemat(devkit / "data" / "meta.mat", {"synsets": synsets})
    index = listed(propose(root).data, tmp_path)
    (note,) = index.log.notes
    assert len(index.problems) == 6
    run_command(note, root)
    read = listed(propose(root).data, tmp_path)
    assert [pair.label for pair in read.splits["heldout"]] == [("tench", "goldfish")[kind - 1] for kind in truth]


def test_a_table_of_runs_is_refused_as_one(tmp_path: Path) -> None:
    write(tmp_path / "runs.csv", "Name,State,lr,loss\na,finished,1,2\n")
    assert "is a table of runs: a row is a run" in refusal(tmp_path / "runs.csv")


@few_plain(1, "header", ["emotion, Usage, pixels", "emotion,pixels", "label"])
def test_the_command_for_pixels_in_cells_makes_their_pictures(tmp_path: Path, header: str) -> None:
    images = RANDOM.integers(0, 256, (6, 10, 10), np.uint8)
    rows = [header.split(",")] if "pixels" in header else [["label", *(f"pixel{n}" for n in range(100))]]
    for row, image in enumerate(images):
        cells = image.ravel().tolist()
        usage = [("Training", "PublicTest", "PrivateTest")[row // 3 + row // 5]] * ("Usage" in header)
        rows.append([f"{row % 3}", *usage, " ".join(map(str, cells))] if "pixels" in header else [f"{row % 3}", *cells])
    (tmp_path / "set").mkdir()
    with (tmp_path / "set" / "a $(touch b).csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    sentence = refusal(tmp_path)
    assert (
        sentence.split(". Its cells are pixels.")[1]
        == refusal(tmp_path / "set" / "a $(touch b).csv").split(". Its cells are pixels.")[1]
    )
    assert "$" not in sentence.partition("python -c")[2]
    assert unbroken(sentence) == sentence, "a window shows it with other spaces, which Python does not read"
    (tmp_path / "set" / "a $(touch b).csv").rename(tmp_path / "set" / "FILE")
    run_command(sentence, tmp_path / "set")
    index = listed(propose(tmp_path / "set" / "FILE.npz").data, tmp_path)
    parts = {"train": range(3), "heldout": [5]} if "Usage" in header else {"train": range(6)}
    assert index.splits.keys() == parts.keys()
    assert len(index.log.other_parts) == 2 * ("Usage" in header)
    for part, rows in parts.items():
        assert [pair.label for pair in index.splits[part]] == [f"{row % 3}" for row in rows]
        for pixels, row in zip(pixels_of(index.splits[part]), rows, strict=True):
            assert (pixels == images[row]).all()


@pytest.mark.parametrize("below", ["", "data/fashion"])
def test_files_called_as_those_of_mnist_are_not_taken_for_it(tmp_path: Path, below: str) -> None:
    for name in ("train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"):
        write(tmp_path / "sets" / below / name, "x")
    assert "have files of the same names. Unpack them" in refusal(tmp_path)


def test_lines_of_captions_without_names_are_refused_with_the_command_that_joins_them(tmp_path: Path) -> None:
    pictures(tmp_path / "images", [f"{row}.jpg" for row in range(4)])
    write(tmp_path / "train.en", "".join(f"A man and {row} dogs.\n" for row in range(4)))
    write(tmp_path / "train.txt", "".join(f"{row}.jpg\n" for row in range(4)))
    (command,) = re.findall(r"paste NAMES.txt FILE > captions.txt", refusal(tmp_path / "train.en"))
    command = command.replace("NAMES", "train").replace("FILE", "train.en")
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    pairs = listed(propose(tmp_path / "captions.txt").data, tmp_path).splits["train"]
    assert [(pair.relative, pair.caption) for pair in pairs] == [
        (f"{row}.jpg", f"A man and {row} dogs.") for row in range(4)
    ]


@pytest.mark.parametrize("name", ["captions.csv", "captions.txt", "metadata.jsonl", "lists"])
def test_lines_that_end_by_a_carriage_return_alone_are_lines(tmp_path: Path, name: str) -> None:
    root = tmp_path / "field"
    names = pictures(root, [f"{row}.png" for row in range(6)])
    if name == "lists":
        for row, file in enumerate(names):
            write(root / f"{Path(file).stem}.txt", f"a dog {row}")
        (root / "train.txt").write_bytes("\r".join(names[:4]).encode())
        (root / "test.txt").write_bytes("\r".join(names[4:]).encode())
    else:
        made = {
            "captions.csv": ["image,caption", *(f"{file},a dog {row}" for row, file in enumerate(names))],
            "captions.txt": [f"{file}\ta dog {row}" for row, file in enumerate(names)],
            "metadata.jsonl": [
                json.dumps({"file_name": file, "text": f"a dog {row}"}) for row, file in enumerate(names)
            ],
        }
        (root / name).write_bytes("".join(f"{line}\r" for line in made[name]).encode())
    index = listed(propose(root).data, tmp_path)
    assert index.problems == []
    assert {split: len(pairs) for split, pairs in index.splits.items()} == (
        {"train": 4, "heldout": 2} if name == "lists" else {"train": 6}
    )
    assert [pair.caption for pairs in index.splits.values() for pair in pairs] == [f"a dog {row}" for row in range(6)]


TURNS = [{"role": "user", "content": "<image>Who?"}, {"role": "assistant", "content": "a pug {}"}]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": TURNS, "images": ["images/{}.jpg"]},
        {
            "conversations": [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "a pug {}"}],
            "image": "{}.jpg",
        },
        {"query": "<image>Describe", "response": "a pug {}", "images": ["{}.jpg"]},
        {"images": [{"path": "images/{}.jpg", "bytes": None}], "caption": "<image>a pug {}"},
    ],
)
def test_lists_of_conversations_have_a_picture_and_an_answer(tmp_path: Path, row: dict[str, Any]) -> None:
    root = tmp_path / "field"
    pictures(root / "images", [f"{number}.jpg" for number in range(4)])
    rows = [json.loads(json.dumps(row).replace("{}", f"{number}")) for number in range(4)]
    if "images" in row:
        rows.append(rows[0] | {"images": [*rows[0]["images"], *rows[1]["images"]]})
    write(root / "train.json", json.dumps(rows))
    index = listed(propose(root).data, tmp_path)
    assert [(Path(str(pair.path)).name, pair.caption) for pair in index.splits["train"]] == [
        (f"{number}.jpg", f"a pug {number}") for number in range(4)
    ]
    assert index.problems == ([("record 5", "It names 2 images; a pair has one.")] if "images" in row else [])


def test_files_that_img2dataset_wrote_are_read_by_the_texts_beside_them(tmp_path: Path) -> None:
    """Its tables hold the addresses, and of each shard the pictures lie in another folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = tmp_path / "field"
    for shard in range(3):
        keys = [f"{shard:05}{row:04}" for row in range(4)]
        pictures(root, [f"{shard:05}/{key}.jpg" for key in keys[1:]])
        for key in keys[1:]:
            write(root / f"{shard:05}" / f"{key}.txt", f"a dog {key}")
        rows = [{"url": f"http://e.x/{key}.jpg", "caption": f"a dog {key}", "key": key} for key in keys]
        status = ["failed_to_download", *["success"] * 3]
        rows = [
            row | {"status": said, "error_message": "HTTP Error 404"} for row, said in zip(rows, status, strict=True)
        ]
        pq.write_table(pa.Table.from_pylist(rows), root / f"{shard:05}.parquet")
        write(root / f"{shard:05}_stats.json", json.dumps({"count": 4, "successes": 3}))
    expected = [
        (f"{shard:05}/{shard:05}{row:04}.jpg", f"a dog {shard:05}{row:04}") for shard in range(3) for row in range(1, 4)
    ]
    pairs = listed(propose(root).data, tmp_path).splits["train"]
    assert sorted((pair.relative, pair.caption) for pair in pairs) == expected
    index = listed(propose(root / "00001.parquet").data, tmp_path)
    assert [pair.caption for pair in index.splits["train"]] == [caption for _, caption in expected[3:6]]
    assert index.problems == [("row 1", "img2dataset did not write it (failed_to_download): HTTP Error 404.")]


def test_tables_in_folders_of_parts_state_the_split_as_in_roco(tmp_path: Path) -> None:
    root = tmp_path / "roco"
    for part in ("train", "validation", "test"):
        top = root / "data" / part / "radiology"
        pictures(top / "images", [f"PMC{part}{row}.jpg" for row in range(3)])
        rows = (f'ROCO_{row},PMC{part}{row}.jpg," CT, {part} {row}."' for row in range(3))
        write(top / f"{part}data.csv", "".join(f"{line}\n" for line in ("id,name,caption", *rows)))
        write(top / "captions.txt", "".join(f"ROCO_{row}\t CT, {part} {row}.\n" for row in range(3)))
    index = listed(propose(root).data, tmp_path)
    assert {split: [pair.caption for pair in pairs] for split, pairs in index.splits.items()} == {
        split: [f"CT, {part} {row}." for row in range(3)] for split, part in (("train", "train"), ("heldout", "test"))
    }
    assert len(index.log.other_parts) == 3
