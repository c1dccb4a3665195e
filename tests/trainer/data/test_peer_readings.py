"""What strangers' data mean is what their own tools read from them: both read the same files here."""

import base64
import gzip
import json
import re
import tarfile
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.builders import add_members
from tests.trainer.data.test_stated_splits import listed
from tests.trainer.test_format_detection import Pairs, pairs, pictures, png, write
from trainer import config
from trainer.data import DataError
from trainer.format_detection import propose

pytestmark = [pytest.mark.slow]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "field").mkdir()
    return tmp_path / "field"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def read(root: Path, path: Path | None = None) -> dict[str, Pairs]:
    """Return the pairs of each split as a run would read them, sorted."""
    proposal = propose(path or root)
    assert not proposal.question
    splits = listed(proposal.data, root.parent).splits
    return {split: sorted(pairs(proposal.data, root, split)) for split in splits}


def notes(root: Path) -> str:
    return " ".join(listed(propose(root).data, root.parent).log.notes)


def of_folders(root: Path, above: str = "", names: Mapping[str, str] = {}) -> list[tuple[str, str]]:
    """Return pictures and captions by the classes that torchvision gives them in a folder, called by `names`."""
    from torchvision.datasets import ImageFolder

    seen = ImageFolder(root / above)
    labels = [names.get(label, label) for label in seen.classes]
    return sorted((Path(file).relative_to(root).as_posix(), f"a photo of a {labels[k]}.") for file, k in seen.samples)


def tar(file: Path, members: Sequence[tuple[str, bytes]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w") as archive:
        add_members(archive, members)


def test_pictures_of_coco_lie_in_the_folders_that_karpathys_list_names(root: Path) -> None:
    names = pictures(
        root, [f"{part}2014/COCO_{part}2014_{number:012}.jpg" for part in ("val", "train") for number in range(6)]
    )
    records: list[dict[str, Any]] = [
        {"filepath": name.split("/")[0], "filename": name.split("/")[1], "split": "test" if n < 3 else "restval"}
        | {"sentences": [{"raw": f"{k} of {n} here", "tokens": []} for k in range(5)], "cocoid": n}
        for n, name in enumerate(names)
    ]
    write(root / "dataset_coco.json", json.dumps({"images": records, "dataset": "coco"}))

    def of(split: str) -> Pairs:
        chosen = [record for record in records if record["split"] == split]
        rows = ((f"{r['filepath']}/{r['filename']}", text["raw"]) for r in chosen for text in r["sentences"])
        return sorted(rows)

    assert read(root) == {"train": of("restval"), "heldout": of("test")}


def test_the_column_of_pictures_among_several_is_that_of_datasets_called_image(root: Path, offline: None) -> None:
    import datasets

    names = [f"images/{number}.png" for number in range(4)]
    masks = [f"masks/{number}.png" for number in range(4)]
    pictures(root, [*names, *masks])
    rows = [
        {"mask_file_name": mask, "image_file_name": name, "text": f"picture {name} here"}
        for mask, name in zip(masks, names, strict=True)
    ]
    write(root / "metadata.jsonl", "\n".join(map(json.dumps, rows)))
    peer = datasets.load_dataset("imagefolder", data_dir=str(root), split="train")
    peer = peer.cast_column("image", datasets.Image(decode=False))
    told = [(Path(row["image"]["path"]).relative_to(root).as_posix(), row["text"]) for row in peer]
    assert read(root) == {"train": sorted(told)}
    assert "several columns of pictures: 'image_file_name', 'mask_file_name'" in notes(root)


@pytest.mark.parametrize("spell", [json.dumps, str])
def test_cells_that_spell_lists_hold_several_captions(root: Path, spell: Any) -> None:
    import ast

    import pandas as pd

    names = pictures(root, [f"flickr30k-images/{number}.jpg" for number in range(6)])
    texts = [spell([f'"{number}" isn\'t red.', f"{number}, a dog."]) for number in range(6)]
    split = ["train"] * 4 + ["test"] * 2
    table = pd.DataFrame({"raw": texts, "split": split, "filename": [Path(name).name for name in names]})
    table.to_csv(root / "flickr_annotations_30k.csv")
    peer = pd.read_csv(root / "flickr_annotations_30k.csv").assign(raw=lambda rows: rows["raw"].map(ast.literal_eval))
    rows = peer.explode("raw")
    told = {
        mine: sorted((f"flickr30k-images/{row.filename}", row.raw) for row in rows[rows["split"] == its].itertuples())
        for mine, its in (("train", "train"), ("heldout", "test"))
    }
    assert read(root) == told


def nfd(name: str) -> str:
    return unicodedata.normalize("NFD", name)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("images/my cat {}.jpg", "images/my%20cat%20{}.jpg"),
        (nfd("images/größe {}.jpg"), "images/größe {}.jpg"),
        ("images/größe {}.jpg", nfd("images/größe {}.jpg")),
    ],
)
def test_names_that_are_spelled_otherwise_are_found_and_told(root: Path, name: str, cell: str) -> None:
    names = [name.format(number) for number in range(4)]
    pictures(root, [*names, "images/else 0.jpg"])
    rows = "".join(f"{cell.format(number)},words {number} here\n" for number in range(4))
    write(root / "captions.csv", f"image,caption\n{rows}images/else 0.jpg,other words\n")
    told = [(name, f"words {number} here") for number, name in enumerate(names)]
    assert read(root) == {"train": sorted([*told, ("images/else 0.jpg", "other words")])}
    assert "4 names of pictures are spelled otherwise than the files: " in notes(root)


def test_addresses_of_files_of_this_computer_are_their_paths(root: Path) -> None:
    pictures(root, names := [f"images/my {number}.jpg" for number in range(4)])
    rows = [f"{(root / name).as_uri()},words of {name} here" for name in names]
    write(root / "captions.csv", "\n".join(["image,caption", *rows]))
    assert read(root) == {"train": [(name, f"words of {name} here") for name in names]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("sign", [";", "|"])
def test_a_line_of_excel_says_what_separates_the_cells(root: Path, encoding: str, sign: str) -> None:
    import pandas as pd

    pictures(root, [f"images/{number}.jpg" for number in range(4)])
    text = [f"sep={sign}", f"image{sign}caption", *(f"{n}.jpg{sign}größe {n}, rot, alt" for n in range(4))]
    (root / "captions.csv").write_bytes("\r\n".join(text).encode(encoding))
    peer = pd.read_csv(root / "captions.csv", sep=sign, skiprows=1, encoding=encoding)
    assert read(root) == {"train": [(f"images/{name}", caption) for name, caption in peer.itertuples(index=False)]}


def test_of_cocos_lists_the_one_whose_pictures_are_there_is_read(root: Path) -> None:
    pictures(root, names := [f"val2017/{number:012}.jpg" for number in range(4)])
    for part in ("train", "val"):
        images = [{"id": n, "file_name": f"{n + 10 * (part == 'train'):012}.jpg"} for n in range(4)]
        texts = [{"id": n, "image_id": n, "caption": f"{part} {n} here"} for n in range(4)]
        write(root / f"annotations/captions_{part}2017.json", json.dumps({"images": images, "annotations": texts}))
    assert read(root) == {"train": [(name, f"val {number} here") for number, name in enumerate(names)]}
    assert "Not read: captions_train2017.json" in notes(root)


def test_the_classes_of_tiny_imagenet_are_those_of_torchvision_and_its_other_pictures_are_told(root: Path) -> None:
    kinds = {"n01443537": "goldfish", "n02999410": "chain"}
    train = [f"train/{kind}/images/{kind}_{number}.JPEG" for kind in kinds for number in range(3)]
    pictures(root, [*train, *(f"val/images/val_{number}.JPEG" for number in range(3))])
    assert read(root) == {"train": of_folders(root, "train", kinds)}
    problems = listed(propose(root).data, root.parent).problems
    assert [name for name, _ in problems] == [f"val/images/val_{number}.JPEG" for number in range(3)]


@pytest.mark.parametrize("lines", ["joined", "each"])
def test_lines_of_texts_in_tars_are_what_webdataset_reads_or_clip_benchmark(root: Path, lines: Any) -> None:
    import webdataset as wds

    texts = [f"a {number}\nb {number}\n" for number in range(4)]
    members = [(f"{n}.{kind}", data) for n in range(4) for kind, data in (("jpg", png(n)), ("txt", texts[n].encode()))]
    tar(root / "0.tar", members)
    peer = [text for (text,) in wds.WebDataset(str(root / "0.tar"), shardshuffle=False).decode().to_tuple("txt")]
    found = listed(config.Shards(path=str(root), lines=lines), root.parent)
    told = [line for text in peer for line in (text.splitlines() if lines == "each" else [" ".join(text.split())])]
    assert [source.caption for source in found.splits["train"]] == told
    assert found.log.notes[0].startswith("4 caption files, first 0.tar/0, of several lines: ")


@pytest.mark.parametrize("as_list", [True, False])
def test_captions_that_a_tar_lists_are_all_read(root: Path, as_list: bool) -> None:
    lists = [[f"words {number}", f"more {number}"] for number in range(3)]
    texts = [json.dumps(listed_texts if as_list else {"captions": listed_texts, "w": 3}) for listed_texts in lists]
    tar(root / "0.tar", [x for n in range(3) for x in ((f"{n}.jpg", png(n)), (f"{n}.json", texts[n].encode()))])
    found = listed(propose(root).data, root.parent).splits["train"]
    assert [source.caption for source in found] == [text for captions in lists for text in captions]


def test_tars_in_folders_are_one_data_set_as_datasets_reads_them(root: Path, offline: None) -> None:
    import datasets

    for folder in ("00", "01"):
        members = [
            (f"{folder}{n}.{kind}", data) for n in range(3) for kind, data in (("jpg", png(n)), ("txt", b"w %d" % n))
        ]
        tar(root / folder / "000.tar", members)
    peer = datasets.load_dataset("webdataset", data_dir=str(root), split="train")
    (found,) = read(root).values()
    assert sorted(caption for _, caption in found) == sorted(peer["txt"])
    assert "The tars of 2 folders are read as one data set: 00, 01." in notes(root)


@pytest.mark.parametrize("column", ["partition", "data set", "Set"])
def test_a_column_of_parts_under_another_name_states_the_split(root: Path, column: str) -> None:
    import pandas as pd

    pictures(root, names := [f"{number}.jpg" for number in range(6)])
    parts = ["train", "train", "train", "valid", "test", "test"]
    table = pd.DataFrame({"filepaths": names, "labels": [f"bird {n}" for n in range(6)], column: parts})
    table.rename(columns={"filepaths": "image", "labels": "caption"}).to_csv(root / "birds.csv", index=False)
    told = {
        mine: [(names[n], f"bird {n}") for n in range(6) if parts[n] == its]
        for mine, its in (("train", "train"), ("heldout", "test"))
    }
    assert read(root) == told


@pytest.mark.parametrize("sign", [",", "\t"])
def test_cells_without_column_names_may_have_a_number_and_a_part(root: Path, sign: str) -> None:
    import pandas as pd

    pictures(root, [f"images/{number}.jpg" for number in range(6)])
    rows = [sign.join((f"{n}", f"{n}.jpg", f'"words {n}, a dog, red"', "train" if n < 4 else "test")) for n in range(6)]
    write(root / ("list.csv" if sign == "," else "list.tsv"), "\n".join(rows))
    peer = pd.read_csv(next(root.glob("list.*")), sep=sign, header=None)
    told = {
        mine: [(f"images/{row[1]}", row[2]) for row in peer[peer[3] == its].itertuples(index=False)]
        for mine, its in (("train", "train"), ("heldout", "test"))
    }
    assert read(root) == told


def test_parts_of_a_json_document_are_the_fields_that_datasets_reads(root: Path, offline: None) -> None:
    import datasets

    pictures(root, names := [f"{number}.jpg" for number in range(6)])
    rows = [{"image": name, "caption": f"words {name} here"} for name in names]
    file = write(root / "data.json", json.dumps({"train": rows[:4], "val": rows[4:], "info": {"year": 2024}}))
    peer = {
        split: datasets.load_dataset("json", data_files=str(file), field=field, split="train")
        for split, field in (("train", "train"), ("heldout", "val"))
    }
    assert read(root) == {split: [(row["image"], row["caption"]) for row in table] for split, table in peer.items()}


def test_nested_lines_of_json_have_the_columns_that_pandas_flattens(root: Path) -> None:
    import pandas as pd

    pictures(root, names := [f"images/{number}.jpg" for number in range(4)])
    rows = [{"image": {"path": name, "w": 16}, "captions": [{"text": f"words {name} here"}]} for name in names]
    write(root / "data.jsonl", "\n".join(map(json.dumps, rows)))
    peer = pd.json_normalize(rows)
    told = [(row[0], row[1][0]["text"]) for row in peer[["image.path", "captions"]].itertuples(index=False)]
    assert read(root) == {"train": told}


def test_captions_named_after_the_whole_name_of_their_picture(root: Path) -> None:
    pictures(root, [f"{number}.jpg" for number in range(4)])
    for number in range(4):
        write(root / f"{number}.jpg.txt", f"words {number} here")
    assert read(root) == {"train": [(f"{number}.jpg", f"words {number} here") for number in range(4)]}


@pytest.mark.parametrize("line", ["{}_ab.jpg#zhb#{}\t一只狗 {}", "{}_ab.jpg#zhc#{} 一只狗 {}", "{}_ab.jpg#{} a dog {}"])
@pytest.mark.parametrize("name", ["flickr8k-cn.txt", "flickr8kzhc.caption.txt"])
def test_flickrs_lists_in_other_languages_number_their_captions(root: Path, line: str, name: str) -> None:
    pictures(root, [f"images/{number}_ab.jpg" for number in range(3)])
    rows = [(number, each) for number in range(3) for each in range(2)]
    write(root / name, "\n".join(line.format(number, each, f"{number} {each}") for number, each in rows))
    caption = re.split(r"#\d+|#\{\}[\t ]", line)[-1]
    told = [(f"images/{number}_ab.jpg", caption.format(f"{number} {each}")) for number, each in rows]
    assert read(root) == {"train": sorted(told)}


def test_a_guessed_column_does_not_overrule_folders_of_classes(root: Path) -> None:
    from torchvision.datasets import ImageFolder

    kinds = ("ABBOTTS BABBLER", "ALBATROSS")
    names = pictures(
        root, [f"{part}/{kind}/{number}.jpg" for part in ("train", "test") for kind in kinds for number in range(2)]
    )
    rows = (f"1.0,{name},{name.split('/')[1]},{name.split('/')[0]},Turdus merula" for name in names)
    write(root / "birds.csv", "\n".join(["class id,filepaths,labels,data set,scientific name", *rows]))
    for split, part in (("train", "train"), ("heldout", "test")):
        peer = ImageFolder(root / part)
        told = sorted((Path(file).relative_to(root).as_posix(), peer.classes[label]) for file, label in peer.samples)
        labels = [(source.relative, source.label) for source in listed(propose(root).data, root.parent).splits[split]]
        assert sorted(labels) == told
    assert isinstance(propose(root).others[0], config.Table)


def test_numbers_of_classes_in_a_table_do_not_overrule_folders_of_their_names(root: Path) -> None:
    pictures(root, names := [f"{kind}/{kind}_{n}.jpg" for kind in ("AnnualCrop", "SeaLake") for n in range(3)])
    rows = (f"{n},{name},{n // 3},{name.split('/')[0]}" for n, name in enumerate(names))
    write(root / "train.csv", "\n".join([",Filename,Label,ClassName", *rows]))
    labels = {source.label for source in listed(propose(root).data, root.parent).splits["train"]}
    assert labels == {"Annual Crop", "Sea Lake"}


def test_lines_of_json_in_utf_16_are_what_pandas_reads(root: Path) -> None:
    import pandas as pd

    pictures(root, names := [f"{number}.jpg" for number in range(4)])
    rows = [json.dumps({"file_name": name, "text": f"größe {name}"}, ensure_ascii=False) for name in names]
    (root / "metadata.jsonl").write_text("\n".join(rows), encoding="utf-16")
    peer = pd.read_json(root / "metadata.jsonl", lines=True, encoding="utf-16")
    assert read(root) == {"train": [*peer.itertuples(index=False, name=None)]}


def test_texts_of_tars_have_the_endings_of_webdataset_and_several_are_told(root: Path) -> None:
    import webdataset as wds

    tar(root / "0.tar", [x for n in range(3) for x in ((f"{n}.jpg", png(n)), (f"{n}.text", b"w %d" % n))])
    peer = [text for (text,) in wds.WebDataset(str(root / "0.tar"), shardshuffle=False).decode().to_tuple("text")]
    assert sorted(caption for _, caption in read(root)["train"]) == peer
    texts = ((f"3.{language}.txt", b"v") for language in ("en", "de"))
    tar(root / "1.tar", [("3.jpg", png(3)), *texts])
    ((_, reason),) = listed(propose(root).data, root.parent).problems
    assert reason == "Its sample has several texts, and none is named as the image: de.txt, en.txt."


def test_folders_called_folds_are_a_question(root: Path) -> None:
    pictures(root, [f"fold{fold}/{kind}/0.jpg" for fold in range(3) for kind in ("cat", "dog")])
    assert "describe how images are stored" in propose(root).question


@pytest.mark.parametrize("orient", ["index", "columns"])
def test_objects_of_records_and_of_columns_are_what_pandas_reads(root: Path, orient: Any) -> None:
    import pandas as pd

    pictures(root, names := [f"{number}.jpg" for number in range(4)])
    table = pd.DataFrame({"filename": names, "caption": [f"words {n} here" for n in range(4)]})
    table.to_json(root / "add_att.json", orient=orient)
    peer = pd.read_json(root / "add_att.json", orient=orient)
    assert read(root) == {"train": [*peer.itertuples(index=False, name=None)]}


def test_tables_that_may_state_a_split_of_classes_are_told(root: Path) -> None:
    pictures(root, names := [f"{kind}/{n}.jpg" for kind in ("AnnualCrop", "SeaLake") for n in range(3)])
    for part, number in (("train", 0), ("test", 1)):
        rows = [f"{name},{n}" for n, name in enumerate(names) if n % 3 == number]
        write(root / f"{part}.csv", "\n".join(["Filename,Label", *rows]))
    assert notes(root) == "test.csv, train.csv may state a split, which is not read. --data train.csv reads it."


def test_rows_without_a_part_do_not_hide_the_column_that_states_the_split(root: Path) -> None:
    pictures(root, names := [f"{number}.jpg" for number in range(6)])
    parts = ["", "train", "train", "train", "test", "test"]
    rows = [
        {"image": name, "caption": f"w {name}", **({"split": part} if part else {})} for name, part in zip(names, parts)
    ]
    write(root / "data.jsonl", "\n".join(map(json.dumps, rows)))
    told = [(name, f"w {name}") for name in names]
    assert read(root) == {"train": told[1:4], "heldout": told[4:]}
    assert len(listed(propose(root).data, root.parent).problems) == 1


def shown(peer: Any, top: Path) -> list[tuple[str, str]]:
    """Return file and class of each picture that a data set of torchvision shows, known by its color."""
    files = {Image.open(file).getpixel((0, 0)): str(file) for file in top.rglob("*.jpg")}
    return sorted((files[picture.getpixel((0, 0))], peer.classes[row]) for picture, row in peer)


def test_the_first_of_ten_splits_is_that_of_torchvision_and_the_others_are_told(root: Path) -> None:
    from torchvision.datasets import DTD

    kinds = ("banded", "blotchy")
    pictures(root, [f"dtd/dtd/images/{kind}/{kind}_{n:04}.jpg" for kind in kinds for n in range(9)])
    for number in range(1, 11):
        for part, first in (("train", 0), ("val", 3), ("test", 6)):
            names = (f"{kind}/{kind}_{(n + number) % 9:04}.jpg\n" for kind in kinds for n in range(first, first + 3))
            write(root / f"dtd/dtd/labels/{part}{number}.txt", "".join(names))
    write(root / "dtd/dtd/labels/labels_joint_anno.txt", "banded/banded_0000.jpg banded \n")
    index = listed(propose(root / "dtd" / "dtd").data, root.parent)
    for split, part in (("train", "train"), ("heldout", "test")):
        told = shown(DTD(root, split=part), root)
        assert sorted((str(source.path), source.label) for source in index.splits[split]) == told
    assert index.log.notes == ["Not read: 9 more pairs of lists of a split, such as train2.txt."]
    assert len(index.log.other_parts) == 6


def test_classes_below_letters_and_their_partitions_are_those_of_torchvision(root: Path) -> None:
    from torchvision.datasets import SUN397

    kinds = ("/a/abbey", "/a/apartment_building/outdoor", "/b/bakery/shop")
    files = [f"{kind}/sun_{number}.jpg" for kind in kinds for number in range(4)]
    pictures(root, [f"SUN397{file}" for file in files])
    write(root / "SUN397/ClassName.txt", "\n".join(kinds))
    for number in range(1, 11):
        for part, first in (("Training", 0), ("Testing", 1)):
            write(root / f"SUN397/Partitions/{part}_{number:02}.txt", "\n".join(files[first::2]))
    told = {file: re.sub("[_/]", " ", kind) for file, kind in shown(SUN397(root), root)}
    splits = listed(propose(root / "SUN397").data, root.parent).splits
    assert {str(source.path): source.label for sources in splits.values() for source in sources} == told
    assert sorted(f"/{source.relative}" for source in splits["heldout"]) == sorted(files[1::2])


@pytest.mark.parametrize(
    ("train", "heldout", "line"),
    [
        ("clipart_train.txt", "clipart_test.txt", "clipart/{name} 3"),
        ("Ebay_train.txt", "Ebay_test.txt", "7 1 1 {name}"),
        ("train_val_list.txt", "test_list.txt", "{name}"),
        ("trainlist01.txt", "testlist01.txt", "{name} 1"),
    ],
)
def test_lists_of_many_names_state_the_split(root: Path, train: str, heldout: str, line: str) -> None:
    pictures(root, names := [f"{kind}/{kind}_{n}.jpg" for kind in ("cat", "dog") for n in range(4)])
    for file, chosen in ((train, names[::2]), (heldout, names[1::2])):
        write(root / file, "\n".join(line.format(name=name, stem=Path(name).stem) for name in chosen))
    index = listed(propose(root).data, root.parent)
    assert [source.relative for source in index.splits["heldout"]] == names[1::2]
    assert index.log.split == f"Lists name the split: {train} and {heldout}."


def test_coops_list_of_all_parts_states_the_split(root: Path) -> None:
    pictures(root, names := [f"images/{kind}/{n}.jpg" for kind in ("apple", "pear") for n in range(6)])
    parts = {"train": names[::3], "val": names[1::3], "test": names[2::3]}
    rows = {part: [[name.removeprefix("images/"), 0, "apple"] for name in chosen] for part, chosen in parts.items()}
    write(root / "split_zhou_Fruits.json", json.dumps(rows))
    index = listed(propose(root).data, root.parent)
    for split, part in (("train", "train"), ("heldout", "test")):
        assert [f"images/{source.relative}" for source in index.splits[split]] == parts[part]
    why = "split_zhou_Fruits.json has it in its part 'validation'; its part 'test' is held out."
    assert index.log.other_parts == [(name.removeprefix("images/"), why) for name in parts["val"]]


def test_captions_are_those_of_the_training_and_no_lemmas_nor_a_sample_submission(root: Path) -> None:
    pictures(root / "a", names := [f"images/{n}.jpg" for n in range(4)])
    for kind in ("lemma.token", "token"):
        lines = (f"{Path(name).name}#{n}\tA dog {kind} {n}\n" for name in names for n in range(2))
        write(root / f"a/Flickr8k.{kind}.txt", "".join(lines))
    assert {caption[:11] for _, caption in read(root / "a")["train"]} == {"A dog token"}
    for part in ("train", "test"):
        pictures(root / "b", [f"{part}/{n}.jpg" for n in range(4)])
    for name, kinds in (("sample_submission", ["cat"]), ("train", ["cat", "dog"])):
        write(root / f"b/{name}.csv", "id,label\n" + "".join(f"{n}.jpg,{kinds[n % len(kinds)]}\n" for n in range(4)))
    assert read(root / "b") == {
        "train": [(f"train/{n}.jpg", f"a photo of a {('cat', 'dog')[n % 2]}.") for n in range(4)]
    }
    pictures(root / "c", [f"img/{n}.png" for n in range(6)])
    for part, rows in (("dev_seen", range(4, 6)), ("train", range(4))):
        lines = (json.dumps({"img": f"img/{n}.png", "text": f"words of {n}"}) for n in rows)
        write(root / f"c/{part}.jsonl", "\n".join(lines))
    assert [caption for _, caption in read(root / "c")["train"]] == [f"words of {n}" for n in range(4)]


def test_folders_of_numbered_images_are_a_question_and_a_column_of_parts_is_told(root: Path) -> None:
    pictures(root / "x", [f"images_{part:03}/images/{n}.png" for part in (1, 2) for n in range(3)])
    assert "describe how images are stored" in propose(root / "x").question
    pictures(root / "w", names := [f"{kind}/{n}.jpg" for kind in ("cat", "dog") for n in range(3)])
    write(root / "w/metadata.csv", "img_id,img_filename,y,split\n" + "".join(f"0,{name},1,2\n" for name in names))
    assert notes(root / "w") == "The column 'split' of metadata.csv may state a split, which is not read."


@pytest.mark.parametrize("name", ["captions.csv.gz", "captions.tsv.bz2", "metadata.jsonl.gz", "captions.json.xz"])
def test_compressed_tables_are_what_pandas_reads(root: Path, name: str) -> None:
    import pandas as pd

    pictures(root, names := [f"images/{number}.jpg" for number in range(6)] + ["other/x.jpg"])
    table = pd.DataFrame({"file_name": names, "text": [f"ein großer Hund {n}" for n in range(7)], "split": "train"})
    table.loc[4:, "split"] = "val"
    if ".json" in name:
        table.to_json(root / name, orient="records", lines="jsonl" in name)
        peer = pd.read_json(root / name, lines="jsonl" in name)
    else:
        table.to_csv(root / name, index=False, sep="\t" if "tsv" in name else ",")
        peer = pd.read_csv(root / name, sep=None, engine="python")
    rows = sorted(peer[["file_name", "text"]].itertuples(index=False, name=None))
    assert sorted(read(root)["train"] + read(root)["heldout"]) == rows
    assert len(read(root)["heldout"]) == 3


def test_a_document_of_coco_that_is_compressed(root: Path) -> None:
    pictures(root / "images", names := [f"{number}.jpg" for number in range(6)])
    images = [{"id": n, "file_name": name, "filler": "x" * 250_000} for n, name in enumerate(names)]
    captions = [{"id": n, "image_id": n, "caption": f"a dog {n}"} for n in range(6)]
    packed = gzip.compress(json.dumps({"images": images, "annotations": captions}).encode())
    (root / "captions.json.gz").write_bytes(packed)
    peer = [(f"images/{name}", f"a dog {n}") for n, name in enumerate(names)]
    assert read(root, root / "captions.json.gz")["train"] == peer


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["captions.csv", "metadata.jsonl", "captions.json", "beside"])
def test_utf_16_without_a_mark_is_read_as_a_guess(root: Path, name: str, encoding: str) -> None:
    pictures(root, names := [f"{number}.jpg" for number in range(4)])
    rows = [{"file_name": name, "text": f"größe {name}"} for name in names]
    made = {
        "captions.csv": "file_name,text\n" + "".join(f"{row['file_name']},{row['text']}\n" for row in rows),
        "metadata.jsonl": "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows),
        "captions.json": json.dumps(rows, ensure_ascii=False),
    }
    for row in rows:
        if name == "beside":
            (root / row["file_name"]).with_suffix(".txt").write_text(row["text"], encoding=encoding)
    if name != "beside":
        (root / name).write_text(made[name], encoding=encoding)
    assert read(root) == {"train": [(row["file_name"], row["text"]) for row in rows]}
    log = listed(propose(root).data, root.parent).log
    assert "read as such, which is a guess" in " ".join([*log.notes, *(odd for _, odd in log.remarks)])


@pytest.mark.parametrize(
    ("values", "heldout"), [(("train", "test_a", "test_b"), "test_a"), (("train", "test", "qual_dev"), "test")]
)
def test_of_several_values_of_one_part_the_first_is_held_out(root: Path, values: tuple[str, ...], heldout: str) -> None:
    pictures(root, names := [f"{number}.jpg" for number in range(9)])
    rows = [(name, f"a dog {name}", values[n % 3]) for n, name in enumerate(names)]
    write(root / "captions.csv", "image,caption,split\n" + "".join(f"{','.join(row)}\n" for row in rows))
    chosen = {"train": "train", "heldout": heldout}
    assert read(root) == {part: [row[:2] for row in rows if row[2] == value] for part, value in chosen.items()}
    index = listed(propose(root).data, root.parent)
    assert (len(index.log.other_parts), index.problems) == (3, [])


def test_captions_that_pandas_reads_as_none_are_counted_and_no_captions(root: Path) -> None:
    import pandas as pd

    cells = ["nan", "NaN", "null", "None", "N/A", "a dog", "none of them", "NA is a caption here"]
    pictures(root, names := [f"{number}.jpg" for number in range(len(cells))])
    write(root / "captions.csv", "image,caption\n" + "".join(f"{n},{c}\n" for n, c in zip(names, cells, strict=True)))
    peer = pd.read_csv(root / "captions.csv").dropna()
    assert read(root)["train"] == [*peer.itertuples(index=False, name=None)]
    problems = listed(propose(root).data, root.parent).problems
    assert problems[0] == ("line 2", "Its caption is 'nan', which pandas and datasets read as none.")
    assert len(problems) == 5


@pytest.mark.parametrize(("folder", "is_near"), [("textcaps", False), ("annotations", True), ("captions_2017", True)])
def test_pictures_beside_a_folder_are_read_only_where_it_is_one_of_texts(
    root: Path, folder: str, is_near: bool
) -> None:
    pictures(root / "other", [f"train/{n}.jpg" for n in range(4)])
    write(root / folder / "captions.csv", "image,caption\n" + "".join(f"train/{n}.jpg,a dog {n}\n" for n in range(4)))
    sources = listed(propose(root / folder / "captions.csv").data, root.parent).splits["train"]
    assert all(Path(str(pair.path)).is_file() == is_near for pair in sources)


def conversations(names: Sequence[str], form: str) -> list[dict[str, Any]]:
    """Return rows of chat messages whose parts name a picture, as TRL, Qwen and OpenAI write them."""
    rows: list[dict[str, Any]] = []
    for name in names:
        picture = (
            {"type": "image", "image": name} if form == "parts" else {"type": "image_url", "image_url": {"url": name}}
        )
        picture = {"type": "image"} if form == "list" else picture
        asked = {"role": "user", "content": [picture, {"type": "text", "text": "What is it?"}]}
        said = {"role": "assistant", "content": [{"type": "text", "text": f"a dog in {name}"}]}
        rows.append({"messages": [asked, said]} | ({"images": [name]} if form == "list" else {}))
    return rows


@pytest.mark.parametrize("form", ["parts", "addresses", "list"])
@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_pictures_and_texts_in_parts_of_messages_are_read(root: Path, form: str, ending: str) -> None:
    pictures(root, names := [f"images/{number}.jpg" for number in range(4)])
    rows = conversations(names, form)
    text = json.dumps(rows) if ending == ".json" else "".join(f"{json.dumps(row)}\n" for row in rows)
    write(root / f"train{ending}", text)
    peer = [(name, row["messages"][1]["content"][0]["text"]) for name, row in zip(names, rows, strict=True)]
    assert sorted((name, text) for name, text in read(root)["train"]) == peer


def test_pictures_as_text_in_messages_have_their_next_step(root: Path) -> None:
    address = "data:image/png;base64," + base64.b64encode(png(0)).decode()
    write(root / "chat.jsonl", "".join(f"{json.dumps(row)}\n" for row in conversations([address] * 4, "addresses")))
    with pytest.raises(DataError, match=r"as text \(base64\), which is not read"):
        listed(propose(root / "chat.jsonl").data, root.parent)


def test_a_table_of_pillows_pictures_and_messages_is_read_as_datasets_saves_it(root: Path, offline: None) -> None:
    import datasets

    rows = conversations(["x"] * 4, "list")
    for n, row in enumerate(rows):
        row["messages"] = [{"role": turn["role"], "content": f"{turn['role']} says {n}"} for turn in row["messages"]]
        row["images"] = [Image.new("RGB", (4, 4), (n, 0, 0))] * (1 + (n == 3))
    features = datasets.Features(
        {"messages": datasets.List({"role": datasets.Value("string"), "content": datasets.Value("string")})}
        | {"images": datasets.List(datasets.Image())}
    )
    datasets.Dataset.from_list(rows, features=features).to_parquet(root / "train.parquet")
    with pytest.raises(DataError, match="holds conversations") as refused:
        listed(propose(root).data, root.parent)
    (program,) = re.findall(r'python -c "(.*)"', str(refused.value))
    exec(program.replace("FILE", str(root / "train.parquet")).replace("FOLDER", str(root / "saved")))
    index = listed(propose(root / "saved").data, root.parent)
    assert [pair.caption for pair in index.splits["train"]] == [f"assistant says {n}" for n in range(3)]
    assert index.problems == [("row 3", "It names 2 images; a pair has one.")]


def test_ids_that_pandas_wrote_as_fractions_are_ids(root: Path) -> None:
    import pandas as pd

    pictures(root, [f"{number}.jpg" for number in range(139, 145)])
    table = pd.DataFrame({"image_id": [*range(139, 145), None], "caption": [f"a dog {n}" for n in range(7)]})
    table.to_csv(root / "captions.csv", index=False)
    assert "139.0,a dog 0" in (root / "captions.csv").read_text()
    assert read(root)["train"] == [(f"{number}.jpg", f"a dog {number - 139}") for number in range(139, 145)]


@pytest.mark.parametrize("below", ["", "chest_xray"])
def test_a_copy_of_the_data_inside_is_no_class_and_is_counted(root: Path, below: str) -> None:
    """Kaggle's chest X-rays, packed on a Mac."""
    for above in ("", "chest_xray/"):
        names = [f"{part}/{name}" for part in ("train", "test", "val") for name in ("NORMAL/1.jpg", "VIRUS/2.jpg")]
        pictures(root / below, [f"{above}{name}" for name in names])
    write(root / below / "__MACOSX" / "train" / "NORMAL" / "._1.jpg", "Mac OS X")
    train, heldout = (of_folders(root, f"{below}/{part}".strip("/")) for part in ("train", "test"))
    assert read(root) == {"train": train, "heldout": heldout}
    found = listed(propose(root).data, root.parent)
    assert (len(found.problems), len(found.log.other_parts)) == (6, 2)


def test_folders_of_parts_that_are_packed_twice_have_the_classes_inside(root: Path) -> None:
    """Kaggle's pictures of Intel: `seg_train/seg_train/sea`; those of `seg_pred` have no class."""
    parts = ["seg_train/seg_train", "seg_test/seg_test"]
    pictures(root, [f"{part}/{kind}/{n}.jpg" for part in parts for kind in ("forest", "street") for n in range(3)])
    pictures(root, ["seg_pred/seg_pred/9.jpg"])
    assert read(root) == {"train": of_folders(root, parts[0]), "heldout": of_folders(root, parts[1])}
    # A class of that name beside others is one.
    pictures(root, ["seg_train/bus/1.jpg", "seg_test/bus/1.jpg"])
    assert {caption for _, caption in read(root)["train"]} == {"a photo of a seg train.", "a photo of a bus."}


@pytest.mark.parametrize("folder", ["@eaDir", "#recycle", "$RECYCLE.BIN"])
def test_what_systems_keep_beside_pictures_is_no_picture_and_no_class(root: Path, folder: str) -> None:
    pictures(root, [f"{kind}/{n}.jpg" for kind in ("crab", "fox") for n in range(3)])
    expected = of_folders(root)
    pictures(root, [f"crab/{folder}/0.jpg/SYNOFILE_THUMB_M.jpg", f"{folder}/fox.jpg"])
    (root / folder / "empty").mkdir()
    found = listed(propose(root).data, root.parent)
    assert sorted((source.relative, source.caption) for source in found.splits["train"]) == expected
    assert found.suite is not None
    assert len(found.suite.classes) == 2
    assert not found.problems


def test_folders_with_captions_of_their_own_are_a_question_as_of_roco(root: Path) -> None:
    kinds = ("non-radiology", "radiology")
    for number, (part, kind) in enumerate((part, kind) for part in ("train", "test") for kind in kinds):
        folder = root / "data" / part / kind
        names = pictures(folder, [f"images/ROCO_{number}{n}.jpg" for n in range(3)])
        stems = [Path(name).stem for name in names]
        write(folder / "captions.txt", "".join(f"{stem}\tA scan of {stem}, here\n" for stem in stems))
    assert f"One of them is read by --data {root / 'data' / 'train' / kinds[0]}." in propose(root).question
    assert {split: len(found) for split, found in read(root, root / "data/train/radiology").items()} == {
        "train": 3,
        "heldout": 3,
    }


@pytest.mark.parametrize("above", ["", "train/"])
def test_names_with_a_point_before_their_number_have_classes_as_cats_and_dogs(root: Path, above: str) -> None:
    pictures(root, [f"{above}{kind}.{n}.jpg" for kind in ("cat", "dog") for n in range(3)])
    pictures(root, [f"test1/{n}.jpg" for n in range(3)] if above else [])
    by_names = config.ClassFolder(path=str(root), class_from="names")
    assert propose(root).others[0] == by_names
    assert sorted(pairs(by_names, root)) == sorted(
        (f"{above}{kind}.{n}.jpg", f"a photo of a {kind}.") for kind in ("cat", "dog") for n in range(3)
    )


def test_the_id_of_a_picture_is_that_of_its_column_as_in_localized_narratives(root: Path) -> None:
    names = pictures(root, [f"train/{n:04}a3{n:04}b.jpg" for n in range(6)])
    rows = [
        {"dataset_id": "open_images_train", "image_id": Path(name).stem, "annotator_id": n, "caption": f"We see {name}"}
        for n, name in enumerate(names)
    ]
    write(root / "narratives.jsonl", "\n".join(map(json.dumps, rows)))
    assert read(root) == {"train": [(name, f"We see {name}") for name in names]}


@pytest.mark.parametrize("key", ["{}.png", "{}"])
def test_objects_by_the_names_of_their_pictures_as_of_kohyas_scripts(root: Path, key: str) -> None:
    names = pictures(root, [f"{n}.png" for n in range(6)])
    said = {name: {"caption": f"we see {name[0]} here", "tags": "1girl, solo"} for name in names}
    records = {key.format(Path(name).stem): record for name, record in said.items()}
    write(root / "meta_cap.json", json.dumps(records, indent=2))
    assert read(root) == {"train": [(name, f"we see {name[0]} here") for name in names]}
    # An object that names its picture is of that, whatever its key is.
    records = {str(5 - n): {"filename": name, "caption": f"we see {name[0]} here"} for n, name in enumerate(names)}
    write(root / "meta_cap.json", json.dumps(records))
    assert read(root) == {"train": [(name, f"we see {name[0]} here") for name in names]}


def test_choices_of_label_studio_are_classes(root: Path) -> None:
    names = pictures(root, [f"upload/1/{n:08x}-photo {n}.jpg" for n in range(6)])
    kinds = ["cat", "dog", "fox"] * 2
    rows = [f"{n},1,{kind},2024-01-01,/data/{names[n]},3.1" for n, kind in enumerate(kinds)]
    write(root / "project-1.csv", "\n".join(["annotation_id,annotator,choice,created_at,image,lead_time", *rows]))
    told = [(name, f"a photo of a {kind}.") for name, kind in zip(names, kinds, strict=True)]
    assert read(root) == {"train": told}


def test_pictures_of_a_table_may_lie_in_several_folders(root: Path) -> None:
    """An image folder of `datasets` needs their paths; a name alone is of the only file that is called so."""
    names = pictures(root, [f"images_{1 + n // 6:03}/{n}.jpg" for n in range(12)])
    rows = [f"{Path(name).name},we see number {n} here" for n, name in enumerate(names)]
    write(root / "captions.csv", "\n".join(["filename,caption", *rows]))
    told = [(name, row.partition(",")[2]) for name, row in zip(names, rows, strict=True)]
    assert read(root) == {"train": sorted(told)}
    assert notes(root) == (
        "The pictures lie in 2 folders, first images_001, images_002. A name that several have is not read."
    )
    pictures(root, ["images_002/0.jpg"])
    # There is no file of that path, which is told once it is opened.
    assert read(root)["train"] == sorted([("0.jpg", told[0][1]), *told[1:]])


def test_a_picture_that_is_missing_is_none_of_another_part(root: Path) -> None:
    for part, missing in (("train", ""), ("val", "3.jpg")):
        rows = [{"id": n, "file_name": f"{n}.jpg"} for n in range(4)]
        said = [{"image_id": n, "caption": f"number {n} of {part}"} for n in range(4)]
        write(root / "annotations" / f"captions_{part}.json", json.dumps({"images": rows, "annotations": said}))
        pictures(root, [f"{part}/{row['file_name']}" for row in rows if row["file_name"] != missing])
    found = read(root)
    train, heldout = ([words for _, words in found[split]] for split in ("train", "heldout"))
    assert train == [f"number {n} of train" for n in range(4)]
    assert heldout[:3] == [f"number {n} of val" for n in range(3)]
    assert not any("train/" in name for name, _ in found["heldout"])


@pytest.mark.parametrize("parts", [("train", "val", "test"), ("0", "1", "2")], ids=["words", "numbers"])
def test_one_file_of_all_partitions_states_the_split_as_of_deepfashion(root: Path, parts: tuple[str, ...]) -> None:
    names = pictures(root, [f"img/{kind}/img_{n:08}.jpg" for kind in ("Coat", "Tee") for n in range(6)])
    lines = [f"{name}     {parts[n % 3]}" for n, name in enumerate(names)]
    write(root / "Eval" / "list_eval_partition.txt", "\n".join(["12", "image_name  evaluation_status", *lines]))
    found = read(root)
    for split, first in (("train", 0), ("heldout", 2)):
        assert [name for name, _ in found[split]] == names[first::3]
    assert len(listed(propose(root).data, root.parent).log.other_parts) == 4
