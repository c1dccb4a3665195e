"""Layouts of published data sets are read as their own libraries read them, or asked about."""

import io
import json
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.trainer.data.test_stated_splits import counts, listed, numbered, pictures
from trainer import config
from trainer.data import DataError
from trainer.format_detection import open_question, propose
from trainer.images import Member


def coco(captions: dict[str, str]) -> str:
    images = [{"id": row, "file_name": name} for row, name in enumerate(captions)]
    annotations = [{"id": row, "image_id": row, "caption": text} for row, text in enumerate(captions.values())]
    return json.dumps({"images": images, "annotations": annotations})


def test_pictures_of_two_parts_with_equal_names_belong_to_the_captions_of_their_part(tmp_path: Path) -> None:
    pictures(tmp_path, [f"{part}/{row}.png" for part in ("train", "val") for row in range(4)], caption="")
    for part in ("train", "val"):
        texts = {f"{row}.png": f"{part} {row}" for row in range(4)}
        (tmp_path / f"captions_{part}.json").write_text(coco(texts), encoding="utf-8")
    splits = listed(propose(tmp_path).data, tmp_path).splits
    for split, part in (("train", "train"), ("heldout", "val")):
        pairs = {(Path(str(source.path)).relative_to(tmp_path).as_posix(), source.caption) for source in splits[split]}
        assert pairs == {(f"{part}/{row}.png", f"{part} {row}") for row in range(4)}


def test_what_only_the_list_of_a_third_part_names_is_of_another_part_and_no_problem(tmp_path: Path) -> None:
    names = [f"{row}.png" for row in range(12)]
    pictures(tmp_path / "images", names, caption="")
    (tmp_path / "captions.token.txt").write_text("".join(f"{name}#0\tthe picture {name}\n" for name in names))
    for part, rows in (("train", range(6)), ("dev", range(6, 8)), ("test", range(8, 11))):
        (tmp_path / f"set.{part}Images.txt").write_text("".join(f"{row}.png\n" for row in rows))
    index = listed(propose(tmp_path).data, tmp_path)
    assert counts(index) == {"train": 6, "heldout": 3}
    assert index.log.other_parts == [
        (name, "set.devImages.txt names it; what set.testImages.txt names is held out.") for name in names[6:8]
    ]
    assert index.problems == [("11.png", "The lists of the split do not name it.")]


def test_a_list_of_numbers_and_flags_states_the_split_as_in_cub(tmp_path: Path) -> None:
    names = numbered("001.Black_footed_Albatross", "002.Laysan_Albatross", each=6)
    pictures(tmp_path / "images", names, caption="")
    (tmp_path / "images.txt").write_text("".join(f"{row} {name}\n" for row, name in enumerate(names, 1)))
    flags = [row % 3 > 0 for row in range(len(names))]
    (tmp_path / "train_test_split.txt").write_text("".join(f"{row} {flag:d}\n" for row, flag in enumerate(flags, 1)))
    index = listed(propose(tmp_path).data, tmp_path)
    train = {source.relative.removeprefix("images/") for source in index.splits["train"]}
    assert train == {name for name, flag in zip(names, flags, strict=True) if flag}
    assert counts(index) == {"train": 8, "heldout": 4}
    assert index.log.split == "Lists name the split: train_test_split.txt."


def test_an_ending_that_a_table_of_ids_omits_is_added_and_told(tmp_path: Path) -> None:
    pictures(tmp_path / "train", [f"{row}.png" for row in range(5)], caption="")
    (tmp_path / "labels.csv").write_text("id,breed\n" + "".join(f"{row},breed {row % 2}\n" for row in range(5)))
    table = config.Table(path=str(tmp_path / "labels.csv"), image_column="id", caption_column="breed")
    index = listed(table, tmp_path)
    assert [source.path for source in index.splits["train"]] == [tmp_path / "train" / f"{row}.png" for row in range(5)]
    assert index.log.notes == ["The column 'id' names pictures without an ending; .png is added."]


@pytest.mark.parametrize(("text", "asks"), [("0 0.5 0.5 0.2 0.3\n2 0.1 1e-3 1 1", True), ("4 cats in 2 boxes", False)])
def test_objects_as_yolo_writes_them_are_no_captions_without_an_answer(tmp_path: Path, text: str, asks: bool) -> None:
    pictures(tmp_path, [f"{row}.png" for row in range(4)])
    for row in range(4):
        (tmp_path / f"{row}.txt").write_text(text)
    (tmp_path / "0.txt").write_text("" if asks else text)  # a picture without objects
    question = open_question(propose(tmp_path), [])
    assert ("as YOLO writes objects" in question) == asks
    assert open_question(propose(tmp_path), ["data=folder"]) == ""


def picture(row: int) -> Image.Image:
    return Image.fromarray(np.full((8, 8, 3), row * 7 % 256, np.uint8))


def test_a_saved_data_set_of_one_part_with_lists_of_captions_and_a_column_split(tmp_path: Path) -> None:
    import datasets

    parts = [("train", "val", "test", "restval")[row % 4] for row in range(12)]
    texts = [[f"picture {row}", f"number {row}", f"the {row}"][: 1 + row % 3] for row in range(12)]
    features = datasets.Features(
        {
            "picture": datasets.Image(),
            "caption": datasets.Sequence(datasets.Value("string")),
            "split": datasets.Value("string"),
        }
    )
    columns = {"picture": [picture(row) for row in range(12)], "caption": texts, "split": parts}
    made = datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns, features=features)})
    made.save_to_disk(str(tmp_path / "saved"))
    index = listed(propose(tmp_path / "saved").data, tmp_path)
    rows = datasets.load_from_disk(str(tmp_path / "saved"))["test"]
    by_peer = Counter((row["split"], text) for row in rows for text in row["caption"])
    of_part = {"train": {"train", "restval"}, "heldout": {"test"}}
    for split, named in of_part.items():
        captions = Counter(source.caption for source in index.splits[split])
        assert captions == Counter({text: n for (part, text), n in by_peer.items() if part in named})
    with pytest.raises(DataError, match="has no split 'none'; it has 'test'"):
        listed(config.HubDataset(name=str(tmp_path / "saved"), split="none"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [("caption",), ("caption_0", "caption_1", "caption_2")])
def test_all_captions_of_a_row_of_parquet_are_those_that_datasets_reads(tmp_path: Path, columns: tuple[str]) -> None:
    import datasets

    several = [[f"picture {row}", f"number {row}", f"the {row}"][: 1 + row % 3] for row in range(6)]
    texts = {"caption": several}
    if len(columns) > 1:
        texts = {name: [[*row, "", ""][number] for row in several] for number, name in enumerate(columns)}
    kind = datasets.Value("string")
    features = {name: kind if len(columns) > 1 else datasets.Sequence(kind) for name in columns}
    table = datasets.Dataset.from_dict(
        {"image": [picture(row) for row in range(6)], **texts},
        features=datasets.Features({"image": datasets.Image(), **features}),
    )
    table.to_parquet(str(tmp_path / "set" / "data" / "train-00000-of-00001.parquet"))
    (rows,) = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache")).values()
    cells = [row[name] for row in rows for name in columns]
    by_peer = Counter(text for cell in cells for text in ([cell] if isinstance(cell, str) else cell) if text)
    (sources,) = listed(propose(tmp_path / "set").data, tmp_path).splits.values()
    assert Counter(source.caption for source in sources) == by_peer


@pytest.mark.slow
def test_numbers_of_classes_under_any_name_have_the_names_of_datasets(tmp_path: Path) -> None:
    import datasets

    features = {"img": datasets.Image(), "fine_label": datasets.ClassLabel(names=["maple tree", "sea otter"])}
    table = datasets.Dataset.from_dict(
        {"img": [picture(row) for row in range(6)], "fine_label": [row % 2 for row in range(6)]},
        features=datasets.Features(features),
    )
    table.to_parquet(str(tmp_path / "set" / "train-00000-of-00001.parquet"))
    (sources,) = listed(propose(tmp_path / "set").data, tmp_path).splits.values()
    assert [source.caption for source in sources] == ["maple tree", "sea otter"] * 3


def test_pictures_of_the_same_names_in_another_folder_are_told(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(3):
            picture(number).save(tmp_path / folder / f"{number}.png")
    (tmp_path / "list.csv").write_text("image,caption\n0.png,zero\n1.png,one\n2.png,two\n")
    index = listed(propose(tmp_path).data, tmp_path)
    (note,) = index.log.notes
    assert note == (
        f"Pictures of these names also lie in {tmp_path / 'b'}; those in {tmp_path / 'a'} are read. "
        "Set data.image_folder to choose."
    )


@pytest.mark.slow
def test_the_default_of_several_configurations_is_that_of_the_readme_else_a_question(tmp_path: Path) -> None:
    import datasets

    root = tmp_path / "hub"
    for name in ("de", "en"):
        (root / name).mkdir(parents=True)
        for part, n in (("train", 5), ("validation", 2)):
            rows = {"image": [picture(row) for row in range(n)], "text": [f"{name} {part} {row}" for row in range(n)]}
            datasets.Dataset.from_dict(rows).to_parquet(str(root / name / f"{part}-00000-of-00001.parquet"))
    assert "each of which is a data set of its own: 'de', 'en'" in (question := open_question(propose(root), []))
    assert f"--data {root / 'en'}" in question
    lines = ["---", "configs:"]
    for name, stated in (("de", []), ("en", ["  default: true"])):
        files = [f"  - split: {part}\n    path: {name}/{part}-*" for part in ("train", "validation")]
        lines += [f"- config_name: {name}", *stated, "  data_files:", *files]
    (root / "README.md").write_text("\n".join([*lines, "---", ""]))
    index = listed(propose(root).data, tmp_path)
    peer = datasets.load_dataset(str(root), cache_dir=str(tmp_path / "cache"))
    for split, part in (("train", "train"), ("heldout", "validation")):
        assert [source.caption for source in index.splits[split]] == peer[part]["text"]


def idx(folder: Path, seed: int) -> None:
    """Write MNIST's files with random images."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for name, n in (("train", 12), ("t10k", 4)):
        images, labels = random.integers(0, 256, (n, 28, 28), np.uint8), random.integers(0, 10, n, np.uint8)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, n, 28, 28) + images.tobytes())
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, n) + labels.tobytes())


@pytest.mark.parametrize("below", ["", "MNIST", "MNIST/raw"])
def test_the_files_of_torchvision_are_told_wherever_one_points_to(tmp_path: Path, below: str) -> None:
    idx(tmp_path / "MNIST" / "raw", 0)
    assert propose(tmp_path / below).data == config.Named(name="MNIST", root=str(tmp_path))


def test_two_folders_of_one_name_are_two_data_sets_as_torchvision_reads_them(tmp_path: Path) -> None:
    from torchvision.datasets import MNIST

    for number in (1, 2):
        root = tmp_path / f"{number}"
        idx(root / "MNIST" / "raw", number)
        index = listed(propose(root).data, tmp_path)
        for split, train in (("train", True), ("heldout", False)):
            peer = MNIST(str(root), train=train)
            assert [source.caption for source in index.splits[split]] == [f"a photo of a {n}." for n in peer.targets]
            (first, *_) = index.splits[split]
            at = first.path
            assert isinstance(at, Member)
            content = at.file.read_bytes()[at.offset : at.offset + at.size]
            assert (np.asarray(Image.open(io.BytesIO(content))) == peer.data[0].numpy()).all()


def test_files_that_are_not_as_published_are_told_and_never_replaced(tmp_path: Path) -> None:
    file = tmp_path / "cifar-10-batches-py" / "data_batch_1"
    file.parent.mkdir()
    file.write_bytes(b"mine")
    with pytest.raises(DataError, match="incomplete or not the published ones"):
        listed(propose(file.parent).data, tmp_path)
    assert file.read_bytes() == b"mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["cifar-10-batches-py"]
