"""Lists that name the class of each picture are read as torchvision, pandas and the archives' authors mean them."""

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.trainer.data.test_stated_splits import listed
from tests.trainer.test_format_detection import pictures, write
from trainer import config
from trainer.data import DataError
from trainer.format_detection import open_question, propose
from trainer.prompt_suites import prompt_suites

pytestmark = [pytest.mark.slow]

BOX = "Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path"
SYNSETS = {"n01440764": "tench", "n01443537": "goldfish"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "field").mkdir()
    return tmp_path / "field"


def labels(root: Path, path: Path | None = None) -> dict[str, list[tuple[str, str]]]:
    """Return picture and class of the pairs of each split, sorted."""
    proposal = propose(path or root)
    assert not open_question(proposal, [])
    index = listed(proposal.data, root.parent)
    return {
        split: sorted((Path(f"{pair.path}").relative_to(root).as_posix(), pair.label) for pair in pairs)
        for split, pairs in index.splits.items()
    }


def lines(root: Path, name: str, rows: Sequence[str]) -> None:
    write(root / name, "".join(f"{row}\n" for row in rows))


def shown(peer: Any, root: Path, classes: Sequence[str]) -> list[tuple[str, str]]:
    """Return picture and class that a data set of torchvision shows, each known by its color."""
    files = (file for file in root.rglob("*.*") if file.suffix in (".jpg", ".ppm"))
    names = {Image.open(file).getpixel((0, 0)): file.relative_to(root).as_posix() for file in files}
    return sorted((names[picture.getpixel((0, 0))], classes[kind]) for picture, kind in peer)


def kaggle_gtsrb(root: Path) -> None:
    train = [f"Train/{kind}/{kind:05}_00000_{row:05}.png" for kind in range(3) for row in range(4)]
    test = [f"Test/{row:05}.png" for row in range(6)]
    pictures(root, [*train, *test, *(f"Meta/{kind}.png" for kind in range(3))])
    lines(root, "Train.csv", [BOX, *(f"27,26,5,5,22,20,{name.split('/')[1]},{name}" for name in train)])
    lines(root, "Test.csv", [BOX, *(f"53,54,6,5,48,49,{2 * row % 3},{name}" for row, name in enumerate(test))])
    lines(root, "Meta.csv", ["Path,ClassId,ShapeId,ColorId,SignId", *(f"Meta/{n}.png,{n},1,0,3" for n in range(3))])


@pytest.mark.parametrize("pointed_at", ["", "Train.csv"])
def test_icons_of_classes_are_no_class_and_tables_state_that_of_each_picture(root: Path, pointed_at: str) -> None:
    import pandas

    kaggle_gtsrb(root)
    read = labels(root, root / pointed_at)
    for split, name in (("train", "Train.csv"), ("heldout", "Test.csv")):
        table = pandas.read_csv(root / name)
        assert read[split] == sorted((row.Path, f"{row.ClassId}") for row in table.itertuples())
    problems = listed(propose(root / pointed_at).data, root.parent).problems
    assert [name for name, _ in problems] == [f"Meta/{kind}.png" for kind in range(3)]
    assert listed(propose(root / pointed_at).data, root.parent).log.notes == [
        "The classes of images are those that Train.csv names."
        if pointed_at
        else "Test.csv names the classes of 6 images in no folder.",
        "The classes have numbers for names, such as '0', and so have the captions.",
    ]


def test_gtsrb_is_what_torchvision_reads(root: Path) -> None:
    from torchvision.datasets import GTSRB

    header = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"
    train = [f"gtsrb/GTSRB/Training/{kind:05}/00000_{row:05}.ppm" for kind in range(3) for row in range(4)]
    pictures(root, [*train, *(f"gtsrb/GTSRB/Final_Test/Images/{row:05}.ppm" for row in range(6))])
    for kind in range(3):
        rows = [f"00000_{row:05}.ppm;29;30;5;6;24;25;{kind}" for row in range(4)]
        lines(root, f"gtsrb/GTSRB/Training/{kind:05}/GT-{kind:05}.csv", [header, *rows])
    rows = [f"{row:05}.ppm;53;54;6;5;48;49;{2 * row % 3}" for row in range(6)]
    lines(root, "gtsrb/GT-final_test.csv", [header, *rows])
    read = labels(root)
    for split, part in (("train", "train"), ("heldout", "test")):
        assert read[split] == shown(GTSRB(str(root), split=part), root, prompt_suites()["gtsrb"].classes)


@pytest.mark.parametrize("pointed_at", ["", "fgvc-aircraft-2013b/data/images_variant_trainval.txt"])
def test_variants_of_aircraft_are_those_of_torchvision(root: Path, pointed_at: str) -> None:
    from torchvision.datasets import FGVCAircraft

    top = root / "fgvc-aircraft-2013b" / "data"
    names = [f"{1025794 + row}" for row in range(18)]
    variants = ["707-320", "Boeing 737", "DH-82"]
    pictures(top / "images", [f"{name}.jpg" for name in names])
    parts = {"train": names[:6], "val": names[6:12], "test": names[12:], "trainval": names[:12]}
    for part, some in parts.items():
        lines(top, f"images_{part}.txt", some)
        lines(top, f"images_variant_{part}.txt", [f"{name} {variants[int(name) % 3]}" for name in some])
        lines(
            top, f"images_manufacturer_{part}.txt", [f"{name} {['Boeing', 'Cessna'][int(name) % 2]}" for name in some]
        )
    lines(top, "images_box.txt", [f"{name} 3 144 998 431" for name in names])
    lines(top, "variants.txt", variants)
    read = labels(root, root / pointed_at)
    for split, part in (("train", "trainval"), ("heldout", "test")):
        peer = FGVCAircraft(str(root), split=part)
        assert read[split] == shown(peer, root, peer.classes)


def synset_folders(root: Path, inner: str) -> list[tuple[str, str]]:
    names = pictures(root, [f"train/{kind}{inner}/{kind}_{row}.JPEG" for kind in SYNSETS for row in range(4)])
    return sorted((name, SYNSETS[name.split("/")[1]]) for name in names)


def test_pictures_to_validate_on_have_the_classes_of_tiny_imagenets_list(root: Path) -> None:
    train = synset_folders(root, "/images")
    pictures(root / "val" / "images", [f"val_{row}.JPEG" for row in range(6)])
    pictures(root / "test" / "images", [f"test_{row}.JPEG" for row in range(6)])
    kinds = list(itertools.islice(itertools.cycle(SYNSETS), 6))
    lines(root, "val/val_annotations.txt", [f"val_{row}.JPEG\t{kind}\t0\t32\t44\t62" for row, kind in enumerate(kinds)])
    held = [(f"val/images/val_{row}.JPEG", SYNSETS[kind]) for row, kind in enumerate(kinds)]
    assert labels(root) == {"train": train, "heldout": held}


def test_kaggles_imagenet_is_validated_by_its_solution(root: Path) -> None:
    top = root / "ILSVRC" / "Data" / "CLS-LOC"
    train = [(f"ILSVRC/Data/CLS-LOC/{name}", label) for name, label in synset_folders(top, "")]
    kinds = list(itertools.islice(itertools.cycle(SYNSETS), 6))
    held = [f"ILSVRC2012_val_{row:08}" for row in range(1, 7)]
    pictures(top / "val", [f"{name}.JPEG" for name in held])
    solution = [f"{name},{kind} 111 108 441 193 {kind} 9 9 20 20 " for name, kind in zip(held, kinds, strict=True)]
    lines(root, "LOC_val_solution.csv", ["ImageId,PredictionString", *solution])
    lines(
        root, "LOC_sample_submission.csv", ["ImageId,PredictionString", *(f"{name},n01440764 1 1 9 9" for name in held)]
    )
    expected = [(f"ILSVRC/Data/CLS-LOC/val/{name}.JPEG", SYNSETS[kind]) for name, kind in zip(held, kinds, strict=True)]
    assert labels(root) == {"train": train, "heldout": expected}


@pytest.mark.parametrize(
    ("name", "header", "line"),
    [
        ("labels.csv", "filename,class_id,class_name", "{name}.png,{number},{kind}"),
        ("labels.csv", "image_id;lesion_id;dx;age", "{name};HAM{name};{kind};80"),
        ("metadata.tsv", "path\tLabel\tsource", "images/{name}.png\t{kind}\tweb"),
        ("labels.txt", "", "images/{name}.png {kind}"),
        ("train.csv", "image,cat,dog", "{name},{cat:.1f},{dog:.1f}"),
    ],
)
def test_a_list_beside_one_folder_of_pictures_names_their_classes(
    root: Path, name: str, header: str, line: str
) -> None:
    pictures(root / "images", [f"p{row}.png" for row in range(8)])
    kinds = {f"p{row}": ("cat", "dog")[row % 2] for row in range(8)}
    rows = [
        line.format(name=name, kind=kind, number=int(kind == "dog"), cat=kind == "cat", dog=kind == "dog")
        for name, kind in kinds.items()
    ]
    lines(root, name, [*filter(None, [header]), *rows])
    read = labels(root)
    assert read == {"train": [(f"images/{name}.png", kind) for name, kind in kinds.items()]}
    assert labels(root, root / name) == read


def test_lists_of_caffe_state_the_split_and_the_classes(root: Path) -> None:
    pictures(root / "data", [f"{row}.jpg" for row in range(10)])
    for name, rows in (("train.txt", range(6)), ("val.txt", range(6, 8)), ("test.txt", range(8, 10))):
        lines(root, name, [f"data/{row}.jpg {row % 2}" for row in rows])
    index = listed(propose(root).data, root.parent)
    assert {split: [(pair.relative, pair.label) for pair in pairs] for split, pairs in index.splits.items()} == {
        "train": [(f"data/{row}.jpg", f"{row % 2}") for row in range(6)],
        "heldout": [(f"data/{row}.jpg", f"{row % 2}") for row in (8, 9)],
    }
    assert index.log.split == "The lists of classes 'train.txt' and 'test.txt' state the split: 'test.txt' is held out."
    assert [name for name, _ in index.log.other_parts] == ["data/6.jpg", "data/7.jpg"]


def test_lists_of_parts_that_agree_with_the_folders_state_the_split(root: Path) -> None:
    names = pictures(root, [f"{kind}/{kind}_{row}.jpg" for kind in ("Forest", "River") for row in range(6)])
    for part, rows in (("train", range(4)), ("test", (4, 5))):
        some = [name for name in names if int(name[-5]) in rows]
        lines(
            root,
            f"{part}.csv",
            [",Filename,Label,ClassName", *(f"0,{at},{int(at[0] == 'R')},{at[: at.index('/')]}" for at in some)],
        )
    read = labels(root)
    assert {split: len(pairs) for split, pairs in read.items()} == {"train": 8, "heldout": 4}
    assert {label for _, label in read["heldout"]} == {"Forest", "River"}


def test_labels_of_the_training_are_never_those_of_pictures_to_test_that_are_called_alike(root: Path) -> None:
    pictures(root, [f"{part}/{row}.png" for part in ("test", "train") for row in range(1, 7)])
    lines(root, "trainLabels.csv", ["id,label", *(f"{row},{('frog', 'truck')[row % 2]}" for row in range(1, 7))])
    lines(root, "sampleSubmission.csv", ["id,label", *(f"{row},cat" for row in range(1, 7))])
    assert labels(root) == {"train": [(f"train/{row}.png", ("frog", "truck")[row % 2]) for row in range(1, 7)]}
    problems = listed(propose(root).data, root.parent).problems
    assert problems == [(f"test/{row}.png", "The list of classes does not name it.") for row in range(1, 7)]


def test_lines_that_name_no_picture_or_another_class_are_told(root: Path) -> None:
    pictures(root / "images", [f"{row}.png" for row in range(6)])
    rows = [f"{row}.png,{('cat', 'dog')[row % 2]}" for row in range(6)]
    lines(root, "labels.csv", ["file,label", *rows, "0.png,dog", "missing.png,cat", "1.png"])
    index = listed(propose(root).data, root.parent)
    assert len(index.splits["train"]) == 6
    assert index.problems == [
        ("labels.csv, line 8", "It names images/0.png as 'dog', which is 'cat' elsewhere."),
        ("labels.csv, line 9", "It names no image: missing.png"),
        ("labels.csv, line 10", "It does not name a picture and one class."),
    ]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("captions.csv", ["image,caption", *(f"{row}.png,a dog number {row}" for row in range(6))]),
        ("identity_CelebA.txt", [f"{row}.png {row % 2}" for row in range(6)]),
        ("list_eval_partition.txt", [f"{row}.png {row % 2}" for row in range(6)]),
        ("boxes.txt", [f"{row}.png 1 2 3 {row % 2}" for row in range(6)]),
    ],
)
def test_what_else_lists_say_of_pictures_is_no_class(root: Path, name: str, rows: list[str]) -> None:
    pictures(root / "images", [f"{row}.png" for row in range(6)])
    lines(root, name, rows)
    data = propose(root).data
    assert not isinstance(data, config.ClassFolder) or data.class_from != "list"


def test_a_list_that_was_chosen_and_is_none_is_refused(root: Path) -> None:
    pictures(root / "images", ["0.png"])
    lines(root, "notes.txt", ["nothing here"])
    data = config.ClassFolder(path=str(root), class_from="list", class_list=str(root / "notes.txt"))
    with pytest.raises(DataError, match="names no classes of the pictures in"):
        listed(data, root.parent)


@pytest.mark.parametrize(
    ("folders", "reason"),
    [
        (["HAM10000_images_part_1", "HAM10000_images_part_2"], "describe how images are stored"),
        (["VG_100K", "VG_100K_2"], "describe how images are stored"),
        (["p10000032", "p10000764"], "rather say of whom pictures are than what they show"),
        (["patient00001", "patient00002"], "rather say of whom pictures are than what they show"),
    ],
)
def test_folders_of_parts_and_of_patients_are_a_question(root: Path, folders: list[str], reason: str) -> None:
    pictures(root, [f"{folder}/{row}.png" for folder in folders for row in range(3)])
    assert reason in propose(root).question
    # Models of planes are classes.
    pictures(root, [f"{kind}/{row}.png" for kind in ("747", "A320", "A321") for row in range(3)])
    assert not propose(root).question


@pytest.mark.parametrize(
    "text", ["a\0b,label\n" * 9, "0.png," + "x" * 200_000 + "\n" + "1.png,y\n" * 9, '"' * 5_000, "\r"]
)
@pytest.mark.parametrize("name", ["labels.csv", "labels.txt"])
def test_a_list_that_cannot_be_split_is_no_list(root: Path, name: str, text: str) -> None:
    pictures(root / "images", [f"{row}.png" for row in range(4)])
    write(root / name, text)
    data = propose(root).data
    assert not isinstance(data, config.ClassFolder) or data.class_from == "folders"


def test_a_pipe_called_as_a_list_is_passed_over(root: Path) -> None:
    pictures(root, [f"{kind}/{row}.png" for kind in ("cat", "dog") for row in range(4)])
    os.mkfifo(root / "labels.csv")
    assert propose(root).data == config.ClassFolder(path=str(root))


@pytest.mark.parametrize("above", ["{}/elsewhere/", "../elsewhere/"])
def test_a_table_of_pictures_elsewhere_stays_a_table(root: Path, above: str) -> None:
    pictures(root.parent / "elsewhere", [f"{row}.png" for row in range(8)])
    pictures(root, [f"own_{row}.png" for row in range(8)])
    rows = [f"{above.format(root.parent)}{row}.png,{'cat' if row % 2 else 'dog'}" for row in range(8)]
    lines(root, "labels.csv", ["image,class", *rows])
    data = propose(root).data
    assert isinstance(data, config.Table)
    assert sum(map(len, listed(data, root.parent).splits.values())) == 8


@pytest.mark.parametrize("has_lists", [False, True])
def test_folders_of_domains_are_a_question(root: Path, has_lists: bool) -> None:
    kinds = ("Alarm_Clock", "Bed")
    for domain in ("Art", "Real World"):
        names = pictures(root, [f"{domain}/{kind}/{n}.jpg" for kind in kinds for n in range(3)])
        for part, places in (("train", (0, 1, 3, 4)), ("test", (2, 5))) if has_lists else ():
            # As of DomainNet: the lists name a domain alone.
            lines(root, f"{domain}_{part}.txt", [f"{names[n]} {n // 3}" for n in places])
    question = propose(root).question
    assert "all of them hold the folders 'Alarm_Clock', 'Bed', which rather are" in question
    (command,) = re.findall(r"--data (\S+)\.$", question)
    index = listed(propose(command).data, root.parent)
    assert {pair.label for pair in index.splits["train"]} == {"Alarm Clock", "Bed"}


def test_folders_inside_classes_are_told_and_the_classes_are_those_of_torchvision(root: Path) -> None:
    from torchvision.datasets import ImageFolder

    kinds = {"animals": ("cat", "dog"), "vehicles": ("bus", "car")}
    names = [f"train/{top}/{kind}/{n}.jpg" for top, inner in kinds.items() for kind in inner for n in range(2)]
    pictures(root, [*names, *(name.replace("train", "val", 1) for name in names)])
    index = listed(propose(root).data, root.parent)
    assert sorted({pair.label for pair in index.splits["train"]}) == ImageFolder(str(root / "train")).classes
    assert "Folders inside those of classes are of no class: 4, first 'cat', 'dog', 'bus'." in index.log.notes


def test_folders_that_are_called_by_their_part_and_size_are_a_question_as_of_places365(root: Path) -> None:
    pictures(root / "data_256", [f"{kind[0]}/{kind}/{n:08}.jpg" for kind in ("airfield", "bow") for n in range(3)])
    pictures(root / "val_256", [f"Places365_val_{n:08}.jpg" for n in range(4)])
    (root / "places365_val.txt").write_text("".join(f"Places365_val_{n:08}.jpg {n % 2}\n" for n in range(4)))
    assert "'data_256', 'val_256' describe how images are stored" in open_question(propose(root), [])
    index = listed(propose(root / "data_256").data, root.parent)
    assert {pair.label for pair in index.splits["train"]} == {"airfield", "bow"}


def test_numbers_for_names_of_classes_are_told(root: Path) -> None:
    pictures(root, [f"{kind}/{n}.jpg" for kind in (10, 11) for n in range(3)])
    assert "The classes have numbers for names, such as '10', and so have the captions." in (
        listed(propose(root).data, root.parent).log.notes
    )
