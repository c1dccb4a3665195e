"""Layouts of others' data: each gives exactly its pairs, or a question; never nonsense."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from trainer import config
from trainer.__main__ import main
from trainer.analysis.progress import silent
from trainer.config import presets
from trainer.data import DataError, load
from trainer.data.captions import caption_notes
from trainer.data.dataset_index import listing
from trainer.data.fitting_run import fitting_run
from trainer.data.pairs import captioned
from trainer.data.survey import answer_read_data, survey
from trainer.data.tokenizer import train_tokenizer
from trainer.format_detection import propose, recognize
from trainer.images import FORMATS
from trainer.messages import ReadData
from trainer.store import Workspace

Pairs = list[tuple[str, str]]


def png(number: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16), (10 * number, 99, 200)).save(buffer, "PNG")
    return buffer.getvalue()


def pictures(folder: Path, names: Sequence[str]) -> list[str]:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(png(number))
    return list(names)


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def pairs(data: config.Data, root: Path, split: str = "train") -> Pairs:
    """Return (file below the root, caption) of a split, as a run would read them."""
    found = listing(config.absolute(data), root.parent / "workspace", lambda share, note: None)
    return [(_below(str(source.path), root), source.caption) for source in found.splits[split]]


def test_the_number_of_a_comment_is_no_attribute_of_a_picture(tmp_path: Path) -> None:
    flickr30k(tmp_path / "field")
    found = listing(config.absolute(propose(tmp_path / "field").data), tmp_path / "w", lambda share, note: None)
    assert [source.metadata for source in found.splits["train"]] == [{}] * len(found.splits["train"])


def _below(place: str, root: Path) -> str:
    return Path(place).relative_to(root).as_posix() if place.startswith(str(root)) else place


def said(names: Sequence[str], each: int = 1) -> Pairs:
    """Return captions that differ between images and between one image's captions."""
    return [(name, f"caption {k} of {number}, here") for number, name in enumerate(names) for k in range(each)]


def coco(root: Path) -> dict[str, Pairs]:
    made = {}
    for split, first in (("train", 0), ("val", 50)):
        names = pictures(root, [f"{split}2017/{first + number:012}.jpg" for number in range(4)])
        made[split] = said(names, 5)
        images = [{"id": first + n, "file_name": Path(name).name, "width": 16} for n, name in enumerate(names)]
        notes = [
            {"id": 900 + row, "image_id": first + names.index(name), "caption": caption}
            for row, (name, caption) in enumerate(made[split])
        ]
        document = {"info": {"year": 2017}, "licenses": [{"id": 1}], "images": images[::-1], "annotations": notes}
        write(root / "annotations" / f"captions_{split}2017.json", json.dumps(document))
    write(root / "annotations" / "instances_train2017.json", json.dumps({"images": [], "annotations": []}))
    return {"train": made["train"], "heldout": made["val"]}


def flickr8k_of_kaggle(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"Images/{number}_ab.jpg" for number in range(6)])
    made = said(names, 5)
    rows = "".join(f'{Path(name).name},"{caption}"\n' for name, caption in made)
    write(root / "captions.txt", f"image,caption\n{rows}")
    return {"train": made}


def flickr8k_of_its_makers(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"Flickr8k_Dataset/Flicker8k_Dataset/{number}_ab.jpg" for number in range(6)])
    made = said(names, 5)
    lines = [f"{Path(name).name}#{row % 5}\t{caption}" for row, (name, caption) in enumerate(made)]
    write(root / "Flickr8k_text" / "Flickr8k.token.txt", "\n".join(lines))
    write(root / "Flickr8k_text" / "readme.txt", "Flickr 8k")
    return {"train": made}


def flickr30k(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"flickr30k_images/{number}.jpg" for number in range(6)])
    made = said(names, 5)
    rows = [f"{Path(name).name}| {row % 5}| {caption} ." for row, (name, caption) in enumerate(made)]
    write(root / "results.csv", "image_name| comment_number| comment\n" + "\n".join(rows))
    return {"train": [(name, f"{caption} .") for name, caption in made]}


def imagefolder(ending: str, parts: bool) -> Callable[[Path], dict[str, Pairs]]:
    def make(root: Path) -> dict[str, Pairs]:
        made = {}
        for split in ("train", "test") if parts else ("",):
            names = pictures(root, [f"{split}/{number:04}.png".lstrip("/") for number in range(6)])
            told = said(names)
            rows = [{"file_name": Path(name).name, "text": caption} for name, caption in told]
            if ending == "jsonl":
                write(root / split / "metadata.jsonl", "\n".join(map(json.dumps, rows)))
            else:
                lines = [f'{row["file_name"]},"{row["text"]}"' for row in rows]
                write(root / split / "metadata.csv", "\n".join(["file_name,text", *lines]))
            made["heldout" if split == "test" else "train"] = told
        return made

    return make


def list_of_records(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"images/{number}.png" for number in range(6)])
    made = said(names)
    records = [{"id": n, "image": name, "caption": words, "deep": {"x": 1}} for n, (name, words) in enumerate(made)]
    write(root / "all.json", json.dumps(records, indent=1))
    return {"train": made}


def in_a_lone_folder(root: Path) -> dict[str, Pairs]:
    return {
        split: [(f"archive/deep/{name}", caption) for name, caption in told]
        for split, told in flickr8k_of_kaggle(root / "archive" / "deep").items()
    }


def caltech101(root: Path) -> dict[str, Pairs]:
    kinds = {
        "airplanes": "an airplane",
        "Faces_easy": "a centered face",
        "Faces": "an off-center face",
        "ibis": "an ibis",
        "scissors": "scissors",
        "BACKGROUND_Google": "",
    }
    names = pictures(
        root, [f"101_ObjectCategories/{kind}/image_{n:04}.jpg" for kind in sorted(kinds) for n in range(3)]
    )
    for kind in kinds:
        (root / "Annotations" / kind).mkdir(parents=True)
        (root / "Annotations" / kind / "annotation_0001.mat").write_bytes(b"MATLAB")
    (root / "101_ObjectCategories.tar.gz").write_bytes(b"what was unpacked")
    shown = [(name, kinds[name.split("/")[1]]) for name in names]
    return {"train": [(name, f"a photo of {words}.") for name, words in shown if words]}


def numbered_classes(first: str) -> Callable[[Path], dict[str, Pairs]]:
    """Return the tree of CUB-200 or of the Stanford Dogs, whose classes have a number before their name."""

    def make(root: Path) -> dict[str, Pairs]:
        kinds = {
            first.format(1, "Sooty_Albatross"): "Sooty Albatross",
            first.format(2, "red-eyed_Vireo"): "red-eyed Vireo",
        }
        names = pictures(root, [f"images/{kind}/{n}.jpg" for kind in kinds for n in range(3)])
        write(root / "README", "of its makers")
        return {"train": [(name, f"a photo of a {kinds[name.split('/')[1]]}.") for name in names]}

    return make


def karpathy(root: Path) -> dict[str, Pairs]:
    """Return Karpathy's list, which says itself what is held out; of COCO's, `filepath` is a folder."""
    names = pictures(root, [f"val2014/{number}.jpg" for number in range(8)])
    parts = dict(zip(names, ("train", "restval", "train", "train", "val", "test", "test", "train"), strict=True))
    made = said(names, 5)
    images = [
        {"filepath": "val2014", "filename": Path(name).name, "imgid": n, "split": part}
        | {"sentences": [{"raw": caption, "tokens": caption.split()} for file, caption in made if file == name]}
        for n, (name, part) in enumerate(parts.items())
    ]
    write(root / "dataset_coco.json", json.dumps({"images": images, "dataset": "coco"}))
    train = [one for one in made if parts[one[0]] in ("train", "restval")]
    return {"train": train, "heldout": [one for one in made if parts[one[0]] == "test"]}


def of_windows(root: Path) -> dict[str, Pairs]:
    """Return a table as a German spreadsheet saves it, with names and columns of its own."""
    names = pictures(root, [f"Bilder/{number}.jpg" for number in range(6)])
    rows = [f"Bilder\\{number}.jpg;Ein schönes Bild für {number} €" for number in range(6)]
    (root / "liste.csv").write_bytes("\r\n".join(["Bild;Überschrift", *rows]).encode("cp1252"))
    return {"train": [(name, f"Ein schönes Bild für {number} €") for number, name in enumerate(names)]}


def in_utf16(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"{number}.png" for number in range(6)])
    made = said(names)
    rows = "\n".join(f"{name}\t{caption}" for name, caption in made)
    (root / "list.tsv").write_text(f"image\tcaption\n{rows}", encoding="utf-16")
    return {"train": made}


def several_captions_a_row(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"{number}.png" for number in range(6)])
    made = said(names, 2)
    rows = [{"file_name": name, "captions": [words for file, words in made if file == name]} for name in names]
    write(root / "metadata.jsonl", "\n".join(map(json.dumps, rows)))
    return {"train": made}


def oxford_pets(root: Path) -> dict[str, Pairs]:
    names = [
        f"images/{kind}_{n}.jpg" for kind in ("Birman", "great_pyrenees", "yorkshire_terrier") for n in (1, 12, 200)
    ]
    pictures(root, names)
    (root / "images" / "Abyssinian_100.mat").write_bytes(b"MATLAB")
    pictures(root / "annotations" / "trimaps", [f"{Path(name).stem}.png" for name in names])
    held = [name for name in names if name.endswith("_200.jpg")]
    for file, listed in (("trainval.txt", sorted(set(names) - set(held))), ("test.txt", held), ("list.txt", names)):
        write(root / "annotations" / file, "#Image CLASS-ID\n" + "\n".join(f"{Path(n).stem} 1 1 1" for n in listed))
    kinds = {name: Path(name).stem.rpartition("_")[0].replace("_", " ") for name in names}
    made = [(name, f"a photo of a {kinds[name]}.") for name in sorted(names)]
    return {"train": [one for one in made if one[0] not in held], "heldout": [one for one in made if one[0] in held]}


def flickr8k_with_its_lists(root: Path) -> dict[str, Pairs]:
    made = flickr8k_of_its_makers(root)["train"]
    names = list(dict.fromkeys(name for name, _ in made))
    lists = {"trainImages": names[:3], "devImages": names[3:4], "testImages": names[4:]}
    for split, named in lists.items():
        lines = "".join(f"{Path(name).name}\n" for name in named)
        write(root / "Flickr8k_text" / f"Flickr_8k.{split}.txt", lines)
    return {
        "train": [one for one in made if one[0] in names[:3]],
        "heldout": [one for one in made if one[0] in names[4:]],
    }


def classes_with_lists(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"{kind}/image_{n:04}.jpg" for kind in ("cello", "crab", "wrench") for n in range(4)])
    held = [name for name in names if name.endswith("3.jpg")]
    write(root / "train.txt", "\n".join(name for name in names if name not in held))
    write(root / "test.txt", "\n".join(f"{root.name}/{name}" for name in held))
    made = {name: (name, f"a photo of a {name.split('/')[0]}.") for name in names}
    return {"train": [made[name] for name in names if name not in held], "heldout": [made[name] for name in held]}


def catalog_of_kaggle(root: Path) -> dict[str, Pairs]:
    """Return a catalog whose ids are the names of its pictures, beside a list of their addresses."""
    names = pictures(root, [f"images/{1000 + number}.jpg" for number in range(6)])
    made = said(names)
    rows = [f'{Path(name).stem},Men,Apparel,2011,"{caption}"' for name, caption in made]
    write(root / "styles.csv", "\n".join(["id,gender,masterCategory,year,productDisplayName", *rows]))
    addresses = [f"{Path(name).name},http://assets.example/{Path(name).name}" for name in names]
    write(root / "images.csv", "\n".join(["filename,link", *addresses]))
    return {"train": made}


def labels_of_kaggle(root: Path) -> dict[str, Pairs]:
    names = [f"train/{number:03}ab.jpg" for number in range(6)]
    pictures(root, [*names, "test/000cd.jpg"])
    breeds = ["dingo" if number % 2 else "pug" for number in range(6)]
    rows = [f"{Path(name).stem},{breed}" for name, breed in zip(names, breeds, strict=True)]
    write(root / "labels.csv", "\n".join(["id,breed", *rows]))
    write(root / "sample_submission.csv", "id,dingo,pug\n000cd,0.5,0.5")
    return {"train": [(name, f"a photo of a {breed}.") for name, breed in zip(names, breeds, strict=True)]}


def of_another_computer(above: str, encoding: str) -> Callable[[Path], dict[str, Pairs]]:
    """Return a table whose paths begin with a folder that is elsewhere; file names repeat in its folders."""

    def make(root: Path) -> dict[str, Pairs]:
        names = pictures(root, [f"shop/{kind}/{number}.jpg" for kind in ("hats", "shoes") for number in range(3)])
        made = said(names)
        sign = "\\" if "\\" in above else "/"
        rows = [f'{above}{name.replace("/", sign)},"{caption}"' for name, caption in made]
        (root / "list.csv").write_bytes("\r\n".join(["path,text", *rows]).encode(encoding))
        return {"train": made}

    return make


def parquet_beside(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"{number}.jpg" for number in range(6)])
    made = said(names)
    captions = [caption for _, caption in made]
    pq.write_table(pa.table({"filename": [*names, "5.jpg"], "caption": [*captions, None]}), root / "list.parquet")
    return {"train": made}


def numbered_captions(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"in/{number}.jpg" for number in range(6)])
    made = said(names, 5)[:-1]  # the last caption is missing
    texts = [[f'"{words}"' for file, words in made if file == name] for name in names]
    head = ",".join(["file_name", *(f"caption_{number}" for number in range(1, 6))])
    rows = [",".join([Path(name).name, *[*five, ""][:5]]) for name, five in zip(names, texts, strict=True)]
    write(root / "list.csv", "\n".join([head, *rows]))
    return {"train": made}


def articles_of_hm(root: Path) -> dict[str, Pairs]:
    """Return a catalog whose ids have lost their leading zeros, as in a spreadsheet; pictures lie by their first."""
    names = pictures(root, [f"images/0{11 + number // 3}/0{11 + number // 3}877501{number}.jpg" for number in range(6)])
    made = said(names)
    rows = [f'{int(Path(name).stem)},0108775,Strap top,Vest top,"{caption}"' for name, caption in made]
    head = "article_id,product_code,prod_name,product_type_name,detail_desc"
    write(root / "articles.csv", "\n".join([head, *rows]))
    return {"train": made}


def captions_of_reed(root: Path) -> dict[str, Pairs]:
    names = pictures(
        root, [f"images/00{kind}.Black_Albatross/Black_{kind}_{n:04}.jpg" for kind in (1, 2) for n in range(3)]
    )
    made = said(names, 10)
    for name in names:
        text = "".join(f"{caption}\n" for image, caption in made if image == name)
        write(root / Path("text", *Path(name).parts[1:]).with_suffix(".txt"), text)
    return {"train": made}


def without_columns(file: str, line: str) -> Callable[[Path], dict[str, Pairs]]:
    def make(root: Path) -> dict[str, Pairs]:
        names = pictures(root, [f"images/ROCO_{number:05}.jpg" for number in range(6)])
        made = said(names)
        lines = [line.format(name=Path(name).name, stem=Path(name).stem, caption=caption) for name, caption in made]
        write(root / file, "\n".join(lines))
        return {"train": made}

    return make


def textcaps(root: Path) -> dict[str, Pairs]:
    """Return what https://textvqa.org/textcaps/dataset/ documents."""
    names = pictures(root, [f"train_images/{number:04}ab.jpg" for number in range(6)])
    made = said(names, 2)
    rows = [
        {
            "image_id": (stem := Path(name).stem),
            "image_classes": ["Person"],
            "flickr_original_url": "https://f.example/1",
        }
        | {"image_width": 16, "image_path": f"train/{stem}.jpg", "set_name": "train", "image_name": stem}
        | {"caption_id": row, "caption_str": caption, "reference_strs": [caption], "caption_tokens": caption.split()}
        for row, (name, caption) in enumerate(made)
    ]
    document = {"dataset_type": "train", "dataset_name": "textcaps", "data": rows}
    write(root / "TextCaps_0.1_train.json", json.dumps(document))
    return {"train": made}


def by_names(each: int) -> Callable[[Path], dict[str, Pairs]]:
    def make(root: Path) -> dict[str, Pairs]:
        names = pictures(root, [f"images/{number}.jpeg" for number in range(6)])
        made = said(names, each)
        texts = {Path(name).name: [caption for image, caption in made if image == name] for name in names}
        write(
            root / "captions.json", json.dumps(texts if each > 1 else {name: text[0] for name, text in texts.items()})
        )
        return {"train": made}

    return make


def of_a_camera(root: Path) -> dict[str, Pairs]:
    names = pictures(root, [f"images/{number}.{'JPG' if number % 2 else 'jpg'}" for number in range(6)])
    made = said(names)
    rows = [f'{Path(name).stem}.jpg,"{caption}"' for name, caption in made]
    write(root / "captions.csv", "\n".join(["image,caption", *rows]))
    return {"train": made}


LAYOUTS: dict[str, Callable[[Path], dict[str, Pairs]]] = {
    "COCO captions": coco,
    "Flickr8k, captions.txt": flickr8k_of_kaggle,
    "Flickr8k, token.txt": flickr8k_of_its_makers,
    "Flickr30k, results.csv": flickr30k,
    "imagefolder with metadata.jsonl": imagefolder("jsonl", parts=False),
    "imagefolder with metadata.csv": imagefolder("csv", parts=False),
    "imagefolder with train and test": imagefolder("jsonl", parts=True),
    "a list of records": list_of_records,
    "a lone folder in a lone folder": in_a_lone_folder,
    "Caltech101": caltech101,
    "CUB": numbered_classes("{:03}.{}"),
    "Stanford Dogs": numbered_classes("n0208562{}-{}"),
    "Karpathy's lists": karpathy,
    "a spreadsheet of Windows": of_windows,
    "a table in UTF-16": in_utf16,
    "several captions a row": several_captions_a_row,
    "Oxford pets": oxford_pets,
    "Flickr8k with its lists of a split": flickr8k_with_its_lists,
    "classes with train.txt and test.txt": classes_with_lists,
    "a catalog of Kaggle": catalog_of_kaggle,
    "labels.csv of Kaggle": labels_of_kaggle,
    "paths of another computer": of_another_computer("/home/ann/data/set/", "utf-8"),
    "paths of Windows": of_another_computer("C:\\Users\\ann\\set\\", "utf-16"),
    "paths from the folder above": of_another_computer("field/", "utf-8"),
    "Parquet beside pictures": parquet_beside,
    "numbered captions": numbered_captions,
    "articles of H&M": articles_of_hm,
    "CUB with Reed's captions": captions_of_reed,
    "ids and captions alone": without_columns("captions.txt", "{stem}\t{caption}"),
    "a name, a space, a caption": without_columns("captions.txt", "{name} {caption}"),
    "cells without column names": without_columns("list.csv", '{name},"{caption}"'),
    "prose without column names": without_columns("list.csv", "{name},{caption}"),
    "TextCaps": textcaps,
    "a caption by its picture": by_names(1),
    "captions by their picture": by_names(2),
    "endings of a camera": of_a_camera,
}


@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=[pytest.mark.slow] if "Parquet" in name else []) for name in LAYOUTS]
)
def test_a_layout_of_the_field_gives_exactly_its_pairs(layout: str, tmp_path: Path) -> None:
    root = tmp_path / "field"
    made = LAYOUTS[layout](root)
    found = propose(root)
    assert not found.question
    for split, told in made.items():
        got = pairs(found.data, root, split)
        assert sorted(got) == sorted(told)
        # Every path leads to a picture.
        assert all((root / name).is_file() for name, _ in got)
    assert config.data_name(found.data) in (
        "field",
        "101_ObjectCategories",
        "deep",
        "all",
        "Flickr8k",
        "dataset_coco",
        "liste",
        "list",
        "styles",
        "labels",
        "articles",
        "TextCaps_0.1_train",
    )


def parquet(file: Path, names: Sequence[str], *, categories: bool = False) -> Pairs:
    file.parent.mkdir(parents=True, exist_ok=True)
    told = said(names)
    images = [{"bytes": png(number), "path": name} for number, name in enumerate(names)]
    captions = pa.array([caption for _, caption in told])
    columns = {"image": images, "text": captions.dictionary_encode() if categories else captions}
    pq.write_table(pa.table(columns), file)
    return told


@pytest.mark.slow
def test_a_folder_of_parquet_shards(tmp_path: Path) -> None:
    root = tmp_path / "hub"
    shards = [parquet(root / "data" / f"train-{n:05}-of-00002.parquet", [f"{n}{k}.png" for k in "abc"]) for n in (0, 1)]
    held = parquet(root / "data" / "validation-00000-of-00001.parquet", ["x.png", "y.png"])
    write(root / "README.md", "a data set card")
    data = recognize(root)
    assert (data.image_column, data.caption_column, config.data_name(data)) == ("image", "text", "hub")
    names = [f"train-0000{n}-of-00002.parquet::image[{row}]" for n in (0, 1) for row in range(3)]
    expected = [(f"data/{name}", caption) for name, (_, caption) in zip(names, shards[0] + shards[1], strict=True)]
    assert pairs(data, root) == expected
    assert [caption for _, caption in pairs(data, root, "heldout")] == [caption for _, caption in held]
    for file in (root / "data").iterdir():
        file.rename(root / file.name.replace("train-", "part-").replace("validation-", "rest-"))
    (root / "data").rmdir()
    every = [caption for told in (*shards, held) for _, caption in told]
    assert [caption for _, caption in pairs(recognize(root), root)] == every


@pytest.mark.slow
def test_words_that_parquet_keeps_once_are_read(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(6)]
    told = parquet(tmp_path / "a.parquet", names, categories=True)
    data = recognize(tmp_path / "a.parquet")
    assert [caption for _, caption in pairs(data, tmp_path)] == [caption for _, caption in told]
    pictures(tmp_path, names)
    paths = pa.array(names).dictionary_encode()
    pq.write_table(
        pa.table({"image": paths, "text": pa.array(["x", "y", "z"] * 2).dictionary_encode()}), tmp_path / "b.parquet"
    )
    assert pairs(recognize(tmp_path / "b.parquet"), tmp_path) == list(zip(names, ["x", "y", "z"] * 2, strict=True))


@pytest.mark.slow
def test_numbers_of_classes_are_told_by_their_names_of_the_hub(tmp_path: Path) -> None:
    features = {"label": {"names": ["airplane", "cat"], "_type": "ClassLabel"}, "img": {"_type": "Image"}}
    features["size"] = {"names": ["small", "large"], "_type": "ClassLabel"}
    about = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    images = [{"bytes": png(number), "path": None} for number in range(6)]
    rows = pa.table({"img": images, "label": [0, 1, 0, 1, 1, None], "size": [0, 1, 7, 0, 1, 1]})
    (tmp_path / "abc" / "data").mkdir(parents=True)
    pq.write_table(rows.replace_schema_metadata(about), tmp_path / "abc" / "data" / "train-00000-of-00001.parquet")
    found = listing(recognize(tmp_path / "abc"), tmp_path / "workspace", lambda share, note: None)
    assert [source.caption for source in found.splits["train"]] == ["airplane", "cat", "airplane", "cat", "cat"]
    assert [source.metadata["size"] for source in found.splits["train"]] == ["small", "large", "7", "small", "large"]
    assert found.problems == [("row 6", "Its caption is empty.")]


def test_what_coco_has_no_image_or_caption_for_is_named(tmp_path: Path) -> None:
    coco(tmp_path / "field")
    file = tmp_path / "field" / "annotations" / "captions_train2017.json"
    document = json.loads(file.read_text())
    document["images"].append({"id": 77, "file_name": "bare.jpg"})
    document["annotations"] += [{"image_id": 12345, "caption": "of nothing"}, [], {"image_id": 0, "caption": " "}]
    write(file, json.dumps(document))
    found = listing(recognize(file), tmp_path / "workspace", lambda share, note: None)
    assert len(found.splits["train"]) == 20
    assert found.problems == [
        ("annotation 21", "It belongs to the image 12345, which is not in the document."),
        ("annotation 22", "It is not a JSON object."),
        ("annotation 23", "Its caption is empty."),
        ("bare.jpg", "It has no caption."),
    ]


@pytest.mark.parametrize("separator", ["|", ";", "\t", ",", "~"])
def test_any_sign_may_part_the_columns(separator: str, tmp_path: Path) -> None:
    names = pictures(tmp_path, [f"{number}.png" for number in range(6)])
    rows = [f"{name}{separator}number {number}" for number, name in enumerate(names)]
    table = write(tmp_path / "pairs.csv", "\n".join([f"image{separator}caption", *rows]))
    data = config.Table(path=str(table), image_column="image", caption_column="caption", separator=separator)
    if separator != "~":
        data = recognize(table)
        assert data.separator == "auto"
    assert pairs(data, tmp_path) == [(name, f"number {number}") for number, name in enumerate(names)]
    with pytest.raises(config.ConfigError, match="one character"):
        config.check(config.Run(data=config.Table(path="x", separator="::")))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_column_of_pictures_is_known_by_its_values(form: str, tmp_path: Path) -> None:
    rows = [{"Nr": f"{n}", "Wort": f"a {n}.", "Photo": f"in/{n}.JPG" if n else ""} for n in range(6)]
    table = tmp_path / f"pairs.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), table)
    elif form == "jsonl":
        write(table, "\n".join(json.dumps(row) for row in rows))
    else:
        write(table, "\n".join(["Nr,Wort,Photo", *(",".join(row.values()) for row in rows)]))
    proposed = recognize(table)
    assert (proposed.image_column, proposed.caption_column) == ("Photo", "Wort")
    few = write(tmp_path / "few.csv", "what,who\n1.png,a\nb,c\nd,e\n")
    assert recognize(few).image_column == config.Table().image_column, "one of three is no column of pictures"


def test_an_image_folder_that_is_chosen_is_the_one(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(4)]
    for folder in ("big", "small"):
        pictures(tmp_path / folder, names)
    table = write(tmp_path / "pairs.csv", "filepath,title\n" + "".join(f"{name},x{name}\n" for name in names))
    data = config.Table(path=str(table), image_folder="small")
    assert pairs(data, tmp_path) == [(f"small/{name}", f"x{name}") for name in names]


def test_what_a_list_names_is_exactly_its_part(tmp_path: Path) -> None:
    root = tmp_path / "kinds"
    classes_with_lists(root)
    write(root / "test.txt", "crab/image_0000.jpg\nwrench/image_0003 7\nimage_0001.jpg\nnowhere.jpg\n")
    write(root / "train.txt", "crab/image_0000.jpg\ncrab/image_0001.jpg\n\ncrab/image_0002.jpg")
    found = listing(recognize(root), tmp_path / "workspace", lambda share, note: None)
    splits = {split: [source.relative for source in part] for split, part in found.splits.items()}
    # What both name is held out; image_0001.jpg could be one of three.
    assert splits == {
        "train": ["crab/image_0001.jpg", "crab/image_0002.jpg"],
        "heldout": ["crab/image_0000.jpg", "wrench/image_0003.jpg"],
    }
    assert found.problems[:2] == [
        ("test.txt, line 3", "It names no image: image_0001.jpg"),
        ("test.txt, line 4", "It names no image: nowhere.jpg"),
    ]
    rest = [reason for _, reason in found.problems[2:]]
    assert rest == ["The lists of the split do not name it."] * 8
    only = replace(recognize(root), train_list="")
    assert len(pairs(only, root)) == 10
    only = replace(recognize(root), heldout_list="")
    assert (len(pairs(only, root)), len(pairs(only, root, "heldout"))) == (3, 9)


@pytest.mark.parametrize("per_class", [False, True])
def test_formats_that_are_not_read_are_named_file_by_file(per_class: bool, tmp_path: Path) -> None:
    root = tmp_path / "phone"
    pictures(root, [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(4)])
    for name in ("cat/1.heic", "cat/2.JP2", "dog/3.ico", "dog/4.svg", "dog/5.psd"):
        (root / name).write_bytes(b"of another kind")
    if not per_class:
        for file in list(root.rglob("*.*")):
            write(file.with_suffix(".txt"), "a caption")
    data = recognize(root)
    assert isinstance(data, config.ClassFolder if per_class else config.Folder)
    found = survey(data, image_size=16, workspace_folder=tmp_path, opened=False, progress=lambda share, note: None)
    reason = "is not a supported format. Save it as JPEG or PNG."
    assert found.problems == [
        ("cat/1.heic", f"HEIC {reason}"),
        ("cat/2.JP2", f"JPEG 2000 {reason}"),
        ("dog/3.ico", f"ICO {reason}"),
        ("dog/4.svg", f"SVG {reason}"),
        ("dog/5.psd", f"PSD {reason}"),
    ]
    assert (found.found, found.used, found.passed_over) == (13, 8, {})


@pytest.mark.slow
def test_heic_is_read_where_the_plugin_of_pillow_is(tmp_path: Path) -> None:
    """A plugin that reads PNG under another name replaces the real one."""
    plugin = """
from PIL import Image, PngImagePlugin
class Heif(PngImagePlugin.PngImageFile):
    format = "HEIF"
def register_heif_opener():
    Image.register_open("HEIF", Heif, lambda prefix: prefix.startswith(b"\\x89PNG"))
"""
    write(tmp_path / "pillow_heif.py", plugin)
    pictures(tmp_path / "phone", [f"{number}.heic" for number in range(4)])
    for number in range(4):
        write(tmp_path / "phone" / f"{number}.txt", f"number {number}")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "trainer", "data", "show", "--data", str(tmp_path / "phone")]
    made = subprocess.run(
        [*command, "--workspace", str(tmp_path / "workspace")],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert "4 pairs used." in made.stdout, made.stdout + made.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "format_"), [("avif", "AVIF"), ("heic", "HEIF")])
def test_pictures_of_phones_are_read_as_they_were_seen(tmp_path: Path, ending: str, format_: str) -> None:
    """By Pillow's own AVIF; HEIC by the real plugin, if installed. Lossy: colors within 6 of 255."""
    if format_ not in FORMATS:
        pytest.skip(f"this Pillow does not read {format_}")
    left, right = (200, 40, 40), (40, 60, 180)
    upright = Image.new("RGB", (96, 48), left)
    upright.paste(Image.new("RGB", (48, 48), right), (48, 0))
    root = tmp_path / "phone"
    root.mkdir()
    turned = Image.Exif()
    turned[0x0112] = 6  # the picture is to be turned clockwise
    upright.save(root / f"0.{ending}", quality=95)
    upright.transpose(Image.Transpose.ROTATE_90).save(root / f"1.{ending}", quality=95, exif=turned.tobytes())
    upright.convert("RGBA").save(root / f"2.{ending}", quality=95)
    for number in range(3):
        write(root / f"{number}.txt", f"number {number}")
    splits = load(recognize(root), image_size=48, workspace_folder=tmp_path / "w", progress=lambda share, note: None)
    assert splits.report.problems == []
    (heldout,) = splits.heldout.values()
    pictures_of = [*splits.train.images, *heldout.images]
    assert len(pictures_of) == 3
    for pixels in pictures_of:
        for color, half in ((left, pixels[:, :20]), (right, pixels[:, 28:])):
            assert np.abs(half.astype(int) - color).max() <= 6


TEXTS = {
    "cp1252": ["un café près de l’étang", "Straße über “Köln”", "plain words"],
    "cp1251": ["красная лиса на снегу", "Белый дом у реки", "plain words"],
    "shift_jis": ["赤いきつねが走る", "白いねこのしゃしん", "plain words"],
    "euc_kr": ["빨간 여우가 달린다", "하얀 고양이", "plain words"],
    "gb18030": ["红色的狐狸在雪地里奔跑", "白色的房子", "plain words"],
    "utf-8": ["un café 赤い лиса", "plain words", "ok"],
}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("layout", ["csv", "tokens", "folder"])
def test_the_encoding_is_found_and_told(encoding: str, layout: str, tmp_path: Path) -> None:
    root = tmp_path / "words"
    names = [f"{number}.png" for number in range(9)]
    captions = [TEXTS[encoding][number % 3] for number in range(9)]
    pictures(root, names)
    told = list(zip(names, captions, strict=True))
    if layout == "csv":
        rows = "".join(f"{name};{caption}\n" for name, caption in told)
        (root / "captions.csv").write_bytes(f"image;caption\n{rows}".encode(encoding))
    elif layout == "tokens":
        (root / "all.token.txt").write_bytes(
            "".join(f"{name}#0\t{caption}\n" for name, caption in told).encode(encoding)
        )
    else:
        for name, caption in told:
            (root / name).with_suffix(".txt").write_bytes(caption.encode(encoding))
    data = recognize(root)
    assert pairs(data, root) == told
    found = survey(data, image_size=16, workspace_folder=tmp_path / "w", opened=True, progress=lambda share, note: None)
    assert (found.used, found.problems) == (9, [])
    notes = [note for note in found.notes if "UTF-8" in note]
    if encoding == "utf-8":
        assert (notes, found.remarks) == ([], [])
    elif layout == "folder":
        assert len(found.remarks) == 6
        assert "is not UTF-8; it is read as" in found.remarks[0][1]
    else:
        assert f"is not UTF-8 (line {2 if layout == 'csv' else 1}); read as" in notes[0]
    # What is chosen is used, and said of each line where it does not fit.
    if layout != "folder":
        assert pairs(replace(data, encoding=encoding), root) == told
        forced = survey(
            replace(data, encoding="latin-1"),
            image_size=16,
            workspace_folder=tmp_path / "w",
            opened=False,
            progress=lambda share, note: None,
        )
        assert not any("UTF-8" in note for note in forced.notes)
        if encoding == "cp1252":
            assert forced.examples[0].caption != captions[0]


def test_an_encoding_that_nobody_knows_is_a_sentence() -> None:
    for name in ("klingon", "hex", "zip"):
        with pytest.raises(config.ConfigError, match=r"data\.encoding"):
            config.check(config.Run(data=config.Table(path="x", encoding=name)))


# -- what is counted ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_repeated_rows_long_captions_and_rare_scripts_are_counted(tmp_path: Path, capsys) -> None:
    names = pictures(tmp_path, [f"{number}.png" for number in range(9)])
    captions = [f"a dog number {number}" for number in range(6)] + ["word " * 400, "แมวสีดำนอนหลับ", "красная лиса"]
    rows = list(zip(names, captions, strict=True))
    rows += [rows[0], rows[0], rows[3], (names[0], "another of it")]
    table = write(tmp_path / "t.csv", "filepath,title\n" + "".join(f"{name},{words}\n" for name, words in rows))
    assert main(["data", "show", "--data", str(table), "--workspace", str(tmp_path / "w")]) == 0
    told = capsys.readouterr().out
    assert "3 rows repeat an earlier one, picture and caption; the first: " in told
    assert "1 caption is longer than the 30 tokens" in told
    assert f"The prepared images are in {tmp_path / 'w' / 'cache'} until 30 days after their last use" in told
    assert "2 captions are in a script that a tokenizer of 2,048 tokens hardly knows" in told
    assert "Thai" in told
    assert "Cyrillic" in told
    answer = answer_read_data(ReadData(path=str(table), image_size=16), tmp_path / "w", lambda share, note: None)
    lines = [json.loads(line) for line in Path(answer.report).read_text(encoding="utf-8").splitlines()]
    assert [what for _, what, _ in lines] == ["note"] * 3
    assert [sentence for _, _, sentence in lines] == list(answer.notes)


def test_what_is_counted_of_captions_is_what_a_double_loop_counts() -> None:
    rng = np.random.default_rng(0)
    words = ["red", "green", "fox", "лиса", "sea"]
    model = config.TinyTowers(context_length=8)
    made = [(f"{rng.integers(9)}", " ".join(rng.choice(words, rng.integers(1, 12)))) for _ in range(200)]
    made += made[:40]
    again = sum(any(made[i] == made[j] for j in range(i)) for i in range(len(made)))
    tokens = train_tokenizer(list(dict.fromkeys(caption for _, caption in made)), model.vocabulary)
    rows = tokens.encode([caption for _, caption in made], 100)
    long = sum(int((row != 0).sum()) > model.context_length for row in rows)
    assert long > 20
    notes = caption_notes(made, model)
    assert notes[0].startswith(f"{again} rows repeat")
    assert notes[1].startswith(f"{long} captions are longer than the 6 tokens")
    assert len(notes) == 2, "a word that is there forty times is known, whatever its script"


# -- a run that fits ---------------------------------------------------------------------------------------------


def _fitted(capsys: pytest.CaptureFixture[str], tmp_path: Path, root: Path, *more: str) -> config.Run:
    where = tmp_path / "workspace"
    small = ("--set", "optimizer.epochs=1", "--set", "model.image_width=8", "--set", "model.image_size=32")
    assert main(["fit", "--data", str(root), *small, *more, "--workspace", str(where), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "finished"
    run = Workspace(where).runs.config_of(answer["id"])
    assert run.name == answer["name"]
    return run


@pytest.mark.slow
def test_fit_trains_at_once_on_data_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flickr8k_of_kaggle(tmp_path / "flickr8k")
    run = _fitted(capsys, tmp_path, tmp_path / "flickr8k")
    assert run.name == "clip-flickr8k"
    assert (run.optimizer.batch_size, run.optimizer.epochs) == (4, 1), "27 of 30 pairs are learned from"
    assert not run.objective.mask_duplicates
    assert run.data == config.Table(
        path=str(tmp_path / "flickr8k" / "captions.txt"), image_column="image", caption_column="caption"
    )
    kinds = tmp_path / "my kinds"
    pictures(kinds, [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(10)])
    more = ("--set", "objective=cloob", "--set", "optimizer.batch_size=4", "--name", "mine")
    run = _fitted(capsys, tmp_path, kinds, *more)
    assert (run.name, run.objective.kind, run.optimizer.batch_size) == ("mine", "cloob", 4)
    assert run.objective.mask_duplicates
    assert (run.model.text_layers, run.model.context_length) == (1, 16)
    told = "No split is stated: about 10 % of the pictures are held out, chosen by their paths."
    for folder in (tmp_path / "workspace" / "runs").iterdir():
        assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["facts"]["split"] == told
        assert told in (folder / "log.txt").read_text(encoding="utf-8")


def test_a_run_fits_its_captions(tmp_path: Path) -> None:
    root = tmp_path / "long"
    names = pictures(root, [f"{number}.png" for number in range(12)])
    for name in names:
        write((root / name).with_suffix(".txt"), f"{name} " + "word " * 40)
    begun = replace(presets.preset("clip-folder"), data=recognize(root))
    run = fitting_run(begun, tmp_path / "w", lambda share, note: None)
    assert run.model.context_length == 77
    assert run.optimizer.batch_size == 4
    steps = run.optimizer.epochs * (10 // 4)
    assert steps >= 500
    assert run.optimizer.warmup_steps <= steps / 10
    assert run.watching.evaluate_every <= steps / 8
    short = fitting_run(
        replace(begun, optimizer=replace(begun.optimizer, epochs=1)), tmp_path / "w", silent, ["epochs"]
    )
    assert (short.optimizer.epochs, short.optimizer.warmup_steps) == (1, 1), "what is stated stays"
    assert not run.objective.mask_duplicates
    for number in range(3):
        write(root / f"{number}.txt", "the same")
    assert fitting_run(begun, tmp_path / "w", lambda share, note: None).objective.mask_duplicates


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["--set", "optimzer.epochs=3"], "Did you mean optimizer.epochs?"),
        (["--set", "data.captoins=names"], "no such field"),
        (["--set", "speed"], "FIELD=VALUE"),
    ],
)
def test_a_wrong_name_is_a_sentence_also_where_the_data_decide(
    changes: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures(tmp_path / "kinds", [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(4)])
    command = ["fit", "--data", str(tmp_path / "kinds"), *changes, "--workspace", str(tmp_path / "w")]
    assert main(command) == 2
    assert sentence in capsys.readouterr().err
    assert Workspace(tmp_path / "w").runs.all() == []


@pytest.mark.parametrize(
    ("name", "caption"),
    [
        ("cat", "a photo of a cat."),
        ("ibis", "a photo of an ibis."),
        ("Owl", "a photo of an Owl."),
        ("unicorn", "a photo of a unicorn."),
        ("umbrella", "a photo of an umbrella."),
        ("hourglass", "a photo of an hourglass."),
        ("été", "a photo of an été."),
        ("8", "a photo of an 8."),
        ("11", "a photo of an 11."),
        ("110", "a photo of a 110."),
        ("sunglasses", "a photo of sunglasses."),
        ("pair of pants", "a photo of a pair of pants."),
        ("Great Pyrenees", "a photo of a Great Pyrenees."),
        ("triceratops", "a photo of a triceratops."),
        ("trolleybus", "a photo of a trolleybus."),
        ("grass", "a photo of a grass."),
    ],
)
def test_a_class_has_its_article_or_none_where_it_is_many(name: str, caption: str) -> None:
    assert captioned(config.ClassFolder().template, name) == caption
    # Templates of runs that were made before stay as they are.
    assert captioned("a photo of a {}.", name) == f"a photo of a {name}."


# -- questions -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_class_is_a_question_with_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "holiday"
    pictures(root, [f"Images/red_fox-{number}.png" for number in range(6)])
    found = propose(root)
    assert "one folder, 'Images': a single class" in found.question
    assert found.others == (config.Folder(path=str(root), captions="names"),)
    command = ["data", "show", "--data", str(root), "--quick", "--workspace", str(tmp_path / "workspace")]
    assert main(command) == 2
    told = capsys.readouterr()
    assert "1 class\n" in told.out
    assert "file names as captions by --set data=folder --set data.captions=names" in told.err
    assert "these folders as classes by --set data=classes" in told.err
    assert main([*command, "--set", "data=classes"]) == 0
    assert main([*command, "--set", "data=folder", "--set", "data.captions=names"]) == 0
    assert "red fox" in capsys.readouterr().out
    fit = ["fit", "--preset", "clip-folder", "--data", str(root), "--workspace", str(tmp_path / "workspace")]
    assert main(fit) == 2
    assert "a single class" in capsys.readouterr().err


def test_labels_of_fiftyone_are_named_and_not_passed_over(tmp_path: Path) -> None:
    root = tmp_path / "export"
    pictures(root, [f"data/{number}.png" for number in range(4)])
    (root / "labels.json").write_text('{"classes": ["cat", "dog"], "labels": {"0": 0, "1": 1, "2": 0, "3": 1}}')
    assert "labels.json next to a folder data is how FiftyOne exports" in propose(root).question


@pytest.mark.parametrize("kinds", [("images", "sprites", "thumbnails"), ("train", "jpg"), ("data", "Thumbs", "cats")])
def test_folders_that_are_no_classes_are_a_question(kinds: Sequence[str], tmp_path: Path) -> None:
    root = tmp_path / "monsters"
    pictures(root, [f"{kind}/{number:03}.png" for kind in kinds for number in range(4)])
    assert "describe how images are stored" in propose(root).question


@pytest.mark.parametrize("kinds", [("car", "bus", "train"), ("0", "1"), ("cat", "dog")])
def test_classes_are_no_question(kinds: Sequence[str], tmp_path: Path) -> None:
    root = tmp_path / "kinds"
    pictures(root, [f"{kind}/{number:03}.png" for kind in kinds for number in range(4)])
    assert propose(root).question == ""
    assert isinstance(recognize(root), config.ClassFolder)


def test_a_table_whose_columns_are_unclear_is_offered_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "breeds"
    pictures(root, [f"train/{n}.jpg" for n in range(6)])
    table = write(root / "labels.csv", "number,breed\n" + "\n".join(f"{n},pug" for n in range(6)))
    found = propose(root)
    assert found.question
    assert found.others[0].path == str(table)
    assert main(["fit", "--data", str(root), "--workspace", str(tmp_path / "w")]) == 2
    assert f"the captions of labels.csv by --data {table}" in capsys.readouterr().err


def test_file_names_are_offered_and_not_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "sample"
    pictures(root, ["n01440764_tench.png", "n02102040_english_springer.png", "gray-cat 12.png", "007.png"])
    command = ["data", "show", "--data", str(root), "--quick", "--workspace", str(tmp_path / "workspace")]
    assert main(command) == 2
    offer = "Or choose file names as captions by --set data=folder --set data.captions=names."
    assert offer in capsys.readouterr().err
    assert main([*command, *offer.removesuffix(".").split(" by ")[1].split()]) == 1
    assert "3 pairs listed" in capsys.readouterr().out
    found = propose(root)
    assert found.data == config.Folder(path=str(root))
    (names,) = found.others
    assert pairs(names, root) == [
        ("gray-cat 12.png", "gray cat"),
        ("n01440764_tench.png", "tench"),
        ("n02102040_english_springer.png", "english springer"),
    ]
    classes = tmp_path / "flat"
    pictures(classes, [f"{kind}_{number}.png" for kind in ("cat", "dog") for number in range(4)])
    by_names, _ = propose(classes).others
    assert set(pairs(by_names, classes)) == {
        (f"{kind}_{number}.png", f"a photo of a {kind}.") for kind in ("cat", "dog") for number in range(4)
    }


def test_captions_beside_pictures_stay_the_first_choice(tmp_path: Path) -> None:
    root = tmp_path / "both"
    names = pictures(root, [f"{number}.png" for number in range(4)])
    for name in names:
        write((root / name).with_suffix(".txt"), f"beside {name}")
    write(root / "metadata.csv", "file_name,text\n" + "".join(f"{name},in the table\n" for name in names))
    assert pairs(recognize(root), root) == [(name, f"beside {name}") for name in names]


@pytest.mark.parametrize(
    "line", ["a bus station {n}\thttp://x.example/{n}.jpg", "http://x.example/{n}\ta bus station {n}"]
)
def test_addresses_of_pictures_are_to_be_downloaded_first(line: str, tmp_path: Path) -> None:
    file = write(tmp_path / "set" / "Train_GCC-training.tsv", "\n".join(line.format(n=n) for n in range(6)))
    for path in (file, file.parent):
        with pytest.raises(DataError, match=r"is an address; .* Download the pictures, such as by img2dataset"):
            pairs(propose(path).data, tmp_path)


def test_more_cells_under_no_column_names_are_refused_with_the_next_step(tmp_path: Path) -> None:
    pictures(tmp_path / "set", [f"{n}.jpg" for n in range(6)])
    table = write(tmp_path / "set" / "list.csv", "\n".join(f"{n}.jpg,cat,{n}" for n in range(6)))
    with pytest.raises(DataError, match=r"names no columns but a picture, '0.jpg'. Write a line of column names"):
        pairs(propose(table).data, tmp_path)


@pytest.mark.slow
def test_which_of_several_columns_of_text_is_asked_and_the_only_one_is_read(tmp_path: Path) -> None:
    for texts in (["en_text"], ["en_text", "zh_text"]):
        columns = {"image": [{"bytes": png(n), "path": f"{n}.png"} for n in range(6)], "score": list(range(6))}
        written = {"en_text": [f"a cat {n}" for n in range(6)], "zh_text": ["一只猫在桌上"] * 6}
        pq.write_table(pa.table(columns | {name: written[name] for name in texts}), tmp_path / "a.parquet")
        data = propose(tmp_path / "a.parquet").data
        if len(texts) == 1:
            assert [caption for _, caption in pairs(data, tmp_path)] == written["en_text"]
            continue
        with pytest.raises(DataError, match=r"unclear which column of a.parquet holds its captions.*Set data.caption_"):
            pairs(data, tmp_path)


def test_what_is_guessed_of_a_table_is_told(tmp_path: Path) -> None:
    notes = {}
    for layout in ("articles of H&M", "ids and captions alone", "endings of a camera", "CUB with Reed's captions"):
        LAYOUTS[layout](tmp_path / layout)
        data = config.absolute(propose(tmp_path / layout).data)
        notes[layout] = " ".join(listing(data, tmp_path / "w", lambda share, note: None).log.notes)
    assert "read as names of files are near the table: 118775010 is 011/0118775010.jpg." in notes["articles of H&M"]
    assert "Captions are read from 'detail_desc'; set data.caption_column" in notes["articles of H&M"]
    assert "names no columns. Each line is read as a name of a picture" in notes["ids and captions alone"]
    assert "3 names of pictures are spelled otherwise than the files" in notes["endings of a camera"]
    assert "Captions are also read from text, whose folders are those of images." in notes["CUB with Reed's captions"]


def test_a_table_of_other_pictures_is_passed_by(tmp_path: Path) -> None:
    root = tmp_path / "animals"
    pictures(root, [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(4)])
    write(root / "captions.csv", "image,caption\nelsewhere.png,a thing\n")
    write(root / "labels.csv", "image,label\ncat/0.png,7\n")
    assert recognize(root) == config.ClassFolder(path=str(root))
