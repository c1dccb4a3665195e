"""What is held out where the data state it, what is counted, and what is said of a choice."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.trainer.data.test_layouts import as_lines
from tests.trainer.data.test_sources import png, tar_of
from trainer import config
from trainer.__main__ import main
from trainer.data import DataError
from trainer.data.class_names import class_names
from trainer.data.dataset_index import DatasetIndex, listing
from trainer.data.splits import load, split_sentence
from trainer.data.survey import survey
from trainer.format_detection import propose
from trainer.format_detection.splits import part_of, stated_split
from trainer.untrusted.files import walk


def pictures(root: Path, names: Sequence[str], caption: str = ".txt") -> None:
    """Write a picture for each name, with its caption beside it if there is an ending for that."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(number))
        if caption:
            path.with_suffix(caption).write_text(f"picture {number}", encoding="utf-8")


def listed(data: config.Data, tmp_path: Path) -> DatasetIndex:
    return listing(config.absolute(data), tmp_path / "workspace", lambda share, note: None)


def counts(found: DatasetIndex) -> dict[str, int]:
    return {split: len(sources) for split, sources in found.splits.items()}


def numbered(*folders: str, each: int = 4) -> list[str]:
    return [f"{folder}/{place}{number}.png" for place, folder in enumerate(folders) for number in range(each)]


# -- names of parts ----------------------------------------------------------------------------------------------------

NAMES = ("train", "training_images", "my-val", "valid2017", "dev.set", "a test", "eval", "evaluation-1", "testing")
NO_NAMES = ("trains", "latest", "devil", "contrail", "trainval", "images", "validate")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *NO_NAMES])
def test_a_name_states_the_part_that_datasets_takes_it_for(name: str, tmp_path: Path) -> None:
    from datasets.data_files import get_data_patterns

    pictures(tmp_path, [f"{name}/0.png"], caption="")
    patterns = get_data_patterns(str(tmp_path))
    by_peer = {str(part) for part in patterns} if patterns != {"train": ["**"]} else set()
    assert {part_of(name)} - {None} == by_peer
    assert bool(by_peer) == (name in NAMES)


def test_capital_letters_state_a_part_too_and_two_words_state_none() -> None:
    assert [part_of(name) for name in ("TRAIN", "Test", "train_test", "train_training")] == [
        "train",
        "test",
        None,
        "train",
    ]


def test_of_folders_within_each_other_those_count_that_give_a_split() -> None:
    inner = stated_split(["train_data/train/a.png", "train_data/val/b.png"])
    assert inner is not None
    assert inner.parts == {"train_data/train/a.png": "train", "train_data/val/b.png": "validation"}
    # datasets puts the last into both; the folder that the others name stands.
    outer = stated_split(["train/a.png", "test/b.png", "test/train/c.png"])
    assert outer is not None
    assert outer.parts["test/train/c.png"] == "test"


def test_a_few_names_are_no_split_and_are_told(tmp_path: Path) -> None:
    names = [*numbered("all", each=20), "all/steam_train_1.png", "all/crash_test_2.png"]
    pictures(tmp_path / "set", names)
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert counts(found) == {"train": 22}
    assert found.log.notes == ["Some names read like parts of a split (1 test, 1 train of 22), too few to be one."]
    words = "No split is stated: about 10 % of the pictures are held out, chosen by their paths."
    assert split_sentence(config.Folder(), found) == words


def test_a_folder_to_validate_on_is_held_out_of_the_rest(tmp_path: Path) -> None:
    pictures(tmp_path / "set", numbered("pictures", "more", "test"))
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert counts(found) == {"train": 8, "heldout": 4}
    assert found.log.split == "The folder 'test' states what is held out; what lies in no part is trained on."
    # Of more pictures than the rest, the name of a folder says too little.
    pictures(tmp_path / "other", numbered("rest", "test", "test/more"))
    assert counts(listed(propose(tmp_path / "other").data, tmp_path)) == {"train": 12}


def test_a_split_that_is_stated_can_be_passed_over(tmp_path: Path) -> None:
    pictures(tmp_path / "set", numbered("train", "test"))
    data = propose(tmp_path / "set").data
    assert counts(listed(data, tmp_path)) == {"train": 4, "heldout": 4}
    shared = config.Folder(path=str(tmp_path / "set"), split_from="share")
    assert counts(listed(shared, tmp_path)) == {"train": 8}
    assert split_sentence(shared, listed(shared, tmp_path)).startswith("data.split_from is share: about 10 % ")


# -- classes -----------------------------------------------------------------------------------------------------------


def test_a_part_without_classes_is_not_held_out(tmp_path: Path) -> None:
    """As ImageNet is laid out: the pictures to test on have no classes, or lie in one folder of none."""
    pictures(
        tmp_path / "set", [*numbered("train/owl", "train/fox", "val/owl", "val/fox"), *numbered("test/images")], ""
    )
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert counts(found) == {"train": 8, "heldout": 8}
    assert {source.label for source in found.splits["heldout"]} == {"owl", "fox"}
    assert found.log.split == "The folders 'train' and 'val' state the split: 'val' is held out."
    reason = "Its part of the split is 'test'; 'val' is held out."
    assert ([why for _, why in found.log.other_parts], found.problems) == ([reason] * 4, [])


def test_a_class_called_train_is_a_class(tmp_path: Path) -> None:
    pictures(tmp_path / "set", numbered("car", "bus", "train"), "")
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert {source.label for source in found.splits["train"]} == {"car", "bus", "train"}


@pytest.mark.parametrize("name", ["test tube", "test", "eval"])
def test_a_class_whose_name_holds_a_keyword_is_a_class(name: str, tmp_path: Path) -> None:
    pictures(tmp_path / "set", numbered("rocket", name), "")
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert {source.label for source in found.splits["train"]} == {"rocket", name}
    # With its classes in it, it is a part.
    pictures(tmp_path / "parted", numbered("rocket", "tube", "test/rocket", "test/tube", each=3), "")
    parted = listed(config.ClassFolder(path=str(tmp_path / "parted")), tmp_path)
    assert counts(parted) == {"train": 6, "heldout": 6}
    assert {source.label for part in parted.splits.values() for source in part} == {"rocket", "tube"}


def test_parts_within_the_folders_of_classes(tmp_path: Path) -> None:
    pictures(tmp_path / "set", numbered("bottle/train", "bottle/test", "cable/train", "cable/test"), "")
    found = listed(config.ClassFolder(path=str(tmp_path / "set")), tmp_path)
    assert counts(found) == {"train": 8, "heldout": 8}
    assert {source.label for part in found.splits.values() for source in part} == {"bottle", "cable"}


def test_each_folder_is_a_class_of_its_own(tmp_path: Path) -> None:
    assert class_names(["001.cat", "200.cat", "7.sea_lion"], "mine") == {
        "001.cat": "001.cat",
        "200.cat": "200.cat",
        "7.sea_lion": "sea lion",
    }
    assert len(set(class_names(["sea_lion", "sea lion", "owl"], "mine").values())) == 3
    pictures(tmp_path / "set", numbered("001.cat", "200.cat", "7.sea_lion"), "")
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert found.log.notes == ["Several folders would be the class 'cat'; each is a class by its whole name."]


# -- tables ------------------------------------------------------------------------------------------------------------


def table(root: Path, name: str, numbers: range, **more: str) -> None:
    rows = [{"image": f"images/{number}.png", "caption": f"picture {number}", **more} for number in numbers]
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(as_lines(rows), encoding="utf-8")


def test_rows_of_a_third_table_are_counted(tmp_path: Path) -> None:
    root = tmp_path / "set"
    pictures(root, numbered("images"), "")
    pictures(root, [f"images/{number}.png" for number in range(24)], "")
    for name, numbers in (("test", range(20, 24)), ("train", range(16)), ("val", range(16, 20))):
        table(root, f"{name}.jsonl", numbers)
    found = listed(propose(root).data, tmp_path)
    assert counts(found) == {"train": 16, "heldout": 4}
    assert found.log.split == "The names 'train.jsonl' and 'test.jsonl' state the split: 'test.jsonl' is held out."
    reason = "It is in 'val.jsonl', the part for validation; 'test.jsonl' is held out."
    assert ([why for _, why in found.log.other_parts], found.problems) == ([reason] * 4, [])
    # One that is pointed at is read alone, and the others are named.
    alone = listed(propose(root / "train.jsonl").data, tmp_path)
    assert (counts(alone), len(alone.log.notes)) == ({"train": 16}, 1)
    assert "Not read: test.jsonl, val.jsonl, next to train.jsonl" in alone.log.notes[0]


def test_a_part_whose_table_has_no_captions_is_not_held_out(tmp_path: Path) -> None:
    root = tmp_path / "set"
    pictures(root, [f"images/{number}.png" for number in range(12)], "")
    table(root, "train.jsonl", range(6))
    table(root, "dev.jsonl", range(6, 9))
    (root / "test.jsonl").write_text('{"image": "images/9.png"}\n', encoding="utf-8")
    found = listed(propose(root).data, tmp_path)
    assert counts(found) == {"train": 6, "heldout": 3}


def test_a_column_states_the_split_and_its_other_values_are_counted(tmp_path: Path) -> None:
    root = tmp_path / "set"
    pictures(root, [f"images/{number}.png" for number in range(12)], "")
    for name, numbers in (("Training", range(6)), ("dev", range(6, 9)), ("unlabeled", range(9, 12))):
        table(root, f"{name}.part", numbers, split=name)
    lines = [(root / f"{name}.part").read_text(encoding="utf-8") for name in ("Training", "dev", "unlabeled")]
    (root / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    found = listed(propose(root / "all.jsonl").data, tmp_path)
    assert counts(found) == {"train": 6, "heldout": 3}
    assert found.log.split == "The column 'split' states the split: 'dev' is held out."
    assert [reason for _, reason in found.problems] == ["Its split is 'unlabeled'; 'dev' is held out."] * 3
    (root / "odd.jsonl").write_text(lines[0] + lines[2], encoding="utf-8")
    found = listed(config.Table(path=str(root / "odd.jsonl"), image_column="image", caption_column="caption"), tmp_path)
    assert counts(found) == {"train": 9}
    assert any("names no part to train on" in note for note in found.log.notes)


@pytest.mark.parametrize(("column", "train", "other"), [("is_valid", "False", "True"), ("is_train", "1", "0")])
def test_a_column_of_yes_and_no_states_the_split_unless_it_holds_out_most(
    tmp_path: Path, column: str, train: str, other: str
) -> None:
    """As in fastai's `ColSplitter`, whose column is `is_valid`."""
    root = tmp_path / "set"
    pictures(root, [f"images/{number}.png" for number in range(12)], "")
    table(root, "train.part", range(9), **{column: train})
    table(root, "other.part", range(9, 12), **{column: other})
    lines = [(root / name).read_text(encoding="utf-8") for name in ("train.part", "other.part")]
    (root / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    found = listed(propose(root / "all.jsonl").data, tmp_path)
    assert [source.relative for source in found.splits["heldout"]] == [f"images/{number}.png" for number in (9, 10, 11)]
    assert counts(found) == {"train": 9, "heldout": 3}
    assert found.log.split == f"The column {column!r} states the split: {other.lower()!r} is held out."

    swapped = {train: other, other: train}
    rows = [json.loads(line) for line in "".join(lines).splitlines()]
    (root / "all.jsonl").write_text(as_lines([row | {column: swapped[row[column]]} for row in rows]), encoding="utf-8")
    found = listed(propose(root / "all.jsonl").data, tmp_path)
    assert (counts(found), len(found.log.notes)) == ({"train": 12}, 1)
    assert "would hold out more than half" in found.log.notes[0]

    (root / "all.jsonl").write_text(as_lines([*rows[:-1], rows[-1] | {column: "maybe"}]), encoding="utf-8")
    found = listed(propose(root / "all.jsonl").data, tmp_path)
    assert found.log.notes == [f"The column {column!r} states no split: 'maybe' is neither yes nor no."]


def test_answers_of_conversations_are_captions_and_missing_columns_are_told_once(tmp_path: Path) -> None:
    root = tmp_path / "set"
    pictures(root, ["0.png", "1.png"], "")
    turns = [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "a red circle"}]
    rows = [{"file_name": f"{number}.png", "conversations": turns * (number + 1)} for number in range(2)]
    (root / "metadata.jsonl").write_text(as_lines(rows), encoding="utf-8")
    found = listed(propose(root).data, tmp_path)
    assert [source.caption for source in found.splits["train"]] == ["a red circle"]
    assert found.problems == [("line 2", "Its conversation has 2 answers; only one answer is a caption.")]
    (root / "metadata.jsonl").write_text('{"file_name": "0.png", "size": 3, "score": 1}\n', encoding="utf-8")
    assert not [other for other in propose(root).others if isinstance(other, config.Table)]
    with pytest.raises(DataError, match=r"captions: it has 'file_name', 'size', 'score'\. Set data\.caption_column"):
        listed(propose(root / "metadata.jsonl").data, tmp_path)


@pytest.mark.slow
def test_pictures_beside_a_list_of_addresses_are_read(tmp_path: Path) -> None:
    """As img2dataset writes files: `00000.parquet` beside the folder `00000`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = tmp_path / "set"
    pictures(root, numbered("00000"))
    pq.write_table(pa.table({"url": ["http://example.invalid/0"], "caption": ["a"]}), root / "00000.parquet")
    assert propose(root).data == config.Folder(path=str(root))
    # Or the pictures within it, in a column that is called as they end.
    columns = {"url": ["http://example.invalid/0"], "jpg": [png(0)], "caption": ["a"]}
    pq.write_table(pa.table(columns), tmp_path / "inside.parquet")
    assert len(listed(propose(tmp_path / "inside.parquet").data, tmp_path).splits["train"]) == 1


def test_parts_of_a_saved_data_set_are_those_of_its_list(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["test", "training", "dev"]}), encoding="utf-8")
    expected = config.HubDataset(name=str(tmp_path), split="training", heldout_split="test")
    assert propose(tmp_path).data == expected


# -- captions ----------------------------------------------------------------------------------------------------------


def test_lines_of_a_caption_are_read_as_is_chosen_and_told(tmp_path: Path) -> None:
    """The first line, or each: `read_caption` of kohya's sd-scripts without and with `enable_wildcard`."""
    root = tmp_path / "set" / "5_style"
    pictures(root, ["0.png", "1.png"], ".caption")
    (root / "0.caption").write_text("one owl\n\ntwo owls\none owl\n", encoding="utf-8")
    (root / "1.txt").write_text("the text", encoding="utf-8")
    data = propose(tmp_path / "set").data
    assert data == config.Folder(path=str(tmp_path / "set"))
    ways = {lines: config.Folder(path=data.path, lines=lines) for lines in ("joined", "first", "each")}
    read = {lines: [one.caption for one in listed(way, tmp_path).splits["train"]] for lines, way in ways.items()}
    assert read == {
        "joined": ["one owl two owls one owl", "the text"],
        "first": ["one owl", "the text"],
        "each": ["one owl", "two owls", "the text"],
    }
    several, both, repeats = listed(data, tmp_path).log.notes
    assert several.startswith("1 caption file, first 0.caption, of several lines: their lines are joined")
    assert "('5_style' 5 times)" in repeats
    assert both == "1 caption file, first 1.txt, next to a .caption of the same name: the .txt is read."


# -- links and what is skipped -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_links_to_folders_are_followed_as_by_torchvision_and_loops_end(tmp_path: Path) -> None:
    from torchvision.datasets import ImageFolder

    pictures(tmp_path / "store", numbered("owl", "fox"), "")
    root = tmp_path / "set"
    root.mkdir()
    for name in ("owl", "fox"):
        (root / name).symlink_to(tmp_path / "store" / name)
    by_peer = sorted(path for path, _ in ImageFolder(str(root)).samples)
    found = listed(propose(root).data, tmp_path)
    assert sorted(str(source.path) for source in found.splits["train"]) == by_peer
    assert len(by_peer) == 8
    (tmp_path / "store" / "owl" / "again").symlink_to(root / "owl")
    (root / "fox" / "up").symlink_to(tmp_path)
    (root / "self").symlink_to(root / "self")
    found = listed(propose(root).data, tmp_path)
    assert len(found.splits["train"]) == 8
    loop = "It is a link to a folder that it lies in."
    assert sorted(found.problems) == [("fox/up", loop), ("owl/again", loop)]


def test_folders_of_links_to_folders_of_links_end(tmp_path: Path) -> None:
    for level in range(12):
        (tmp_path / f"{level}").mkdir()
        for number in range(10 if level < 11 else 0):
            (tmp_path / f"{level}" / f"{number}").symlink_to(tmp_path / f"{level + 1}")
    problems: list[tuple[str, str]] = []
    visited = list(walk(tmp_path / "0", problems))
    assert len(visited) <= 12 * 100
    assert "100 others lead to" in problems[0][1]


def test_what_is_no_picture_is_counted(tmp_path: Path) -> None:
    root = tmp_path / "set"
    pictures(root, ["0.png", "1.png", ".hidden.png"])
    (root / "alone.txt").write_text("no picture", encoding="utf-8")
    (root / ".cache").mkdir()
    (root / "model.bin").write_bytes(b"x")
    (root / "LICENSE").write_bytes(b"x")
    about = {"image_size": 8, "workspace_folder": tmp_path / "workspace", "opened": False}
    found = survey(propose(root).data, **about, progress=lambda share, note: None)
    assert (found.used, found.problems) == (2, [])
    assert found.passed_over == {"hidden": 3, ".txt without an image": 1, ".bin": 1, "no ending": 1}


# -- tars --------------------------------------------------------------------------------------------------------------


def test_members_of_a_tar_are_pairs_or_counted(tmp_path: Path) -> None:
    members = {
        "a.v1/0.left.png": png(0), "a.v1/0.left.txt": b"left",
        "a.v1/0.right.png": png(1), "a.v1/0.right.txt": b"right",
        "1.png": png(2), "1.mask.png": png(3), "1.JSON": b'{"caption": "plain"}',
        "2.heic": b"x", "2.txt": b"a photo", "3.npy": b"x",
        "__meta__/4.png": png(4), "._5.png": b"x", "6.txt": b"alone",
    }  # fmt: skip
    tar_of(tmp_path / "set" / "0.tar", members)
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert [source.caption for source in found.splits["train"]] == ["left", "right", "plain"]
    assert [item for item, _ in found.problems] == ["0.tar/1.mask.png", "0.tar/2.heic", "0.tar/6"]
    assert found.problems[0][1] == "Of the images of its sample, 1.png is used."
    expected = "Skipped in the tars, neither image nor text: 2 names without key and ending, 1 .npy."
    assert found.log.notes == [expected]


def test_tars_under_odd_names_are_read(tmp_path: Path) -> None:
    root = tmp_path / "[v1] {a,b} 100%"
    for number in range(2):
        tar_of(root / f"s-{number:03d}.tar", {"0.png": png(number), "0.txt": b"a"})
    for path in (root / "s-000.tar", root, root / "s-{000..001}.tar", f"{root}/s-000.tar::{root}/s-001.tar"):
        found = listed(propose(path).data, tmp_path)
        assert counts(found) == {"train": 1 if path == root / "s-000.tar" else 2}


def test_a_pattern_of_tars_states_the_split_of_its_names(tmp_path: Path) -> None:
    for place, word in enumerate(("train", "val")):
        tar_of(tmp_path / f"cc-{word}-0.tar", {"0.png": png(place), "0.txt": word.encode()})
    found = listed(config.Shards(path=f"{tmp_path}/cc-{{train,val}}-0.tar"), tmp_path)
    assert [source.caption for part in ("train", "heldout") for source in found.splits[part]] == ["train", "val"]


# -- what other programs would read ------------------------------------------------------------------------------------

HEADER = """---
license: mit
configs:
- config_name: default
  data_files:
  - split: train
    path: {}
  - split: test
    path:
    - {}
---
# A data set
"""


def test_a_third_part_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures(tmp_path / "set", numbered("train", "test", "valid"))
    workspace = ["--workspace", str(tmp_path / "w")]
    assert main(["data", "show", "--quick", "--data", str(tmp_path / "set"), *workspace]) == 0
    shown = capsys.readouterr().out
    words = "The folders 'train' and 'test' state the split: 'test' is held out. 4 pairs of other parts are not used."
    assert words in shown
    assert "8 pairs listed (their images were not decoded); 4 not used." in shown


@pytest.mark.parametrize(
    ("folders", "paths", "is_told"),
    [
        (("one", "two"), ("one/*", "two/*"), True),
        (("train", "test"), ("train/*", "test/*"), False),
        (("train", "test"), ("test/*", "train/*"), True),
    ],
)
def test_a_split_that_only_the_readme_states_is_told(
    folders: tuple[str, ...], paths: tuple[str, str], is_told: bool, tmp_path: Path
) -> None:
    pictures(tmp_path / "set", numbered(*folders))
    (tmp_path / "set" / "README.md").write_text(HEADER.format(*paths), encoding="utf-8")
    notes = listed(propose(tmp_path / "set").data, tmp_path).log.notes
    assert [note.startswith("README.md states by data_files") for note in notes] == [True] * is_told


def test_repeats_of_kohya_are_told(tmp_path: Path) -> None:
    pictures(tmp_path / "set", numbered("10_shapes", "1_cats"))
    (note,) = listed(propose(tmp_path / "set").data, tmp_path).log.notes
    assert note.startswith("The folders are named as kohya's sd-scripts name repeats ('10_shapes' 10 times).")


@pytest.mark.slow
def test_captions_of_tars_may_be_called_caption(tmp_path: Path) -> None:
    members = {f"{number}.png": png(number) for number in range(4)}
    members |= {f"{number}.Caption": f"c {number}".encode() for number in range(4)}
    tar_of(tmp_path / "0.tar", dict(sorted(members.items(), key=lambda one: one[0].split(".")[0])))
    found = listed(propose(tmp_path / "0.tar").data, tmp_path)
    assert [source.caption for source in found.splits["train"]] == [f"c {number}" for number in range(4)]


def test_tables_of_a_split_lie_in_a_folder_for_it(tmp_path: Path) -> None:
    root = tmp_path / "set"
    pictures(root, [f"images/{number}.png" for number in range(8)], "")
    table(root / "splits", "train.jsonl", range(6))
    table(root / "splits", "test.jsonl", range(6, 8))
    assert counts(listed(propose(root).data, tmp_path)) == {"train": 6, "heldout": 2}


def test_captions_may_have_their_ending_in_capitals(tmp_path: Path) -> None:
    pictures(tmp_path / "set", ["0.PNG", "1.PNG"], ".TXT")
    found = listed(propose(tmp_path / "set").data, tmp_path)
    assert [source.caption for source in found.splits["train"]] == ["picture 0", "picture 1"]


# -- arrays of pictures ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pictures_of_medmnist_have_their_splits_and_labels(tmp_path: Path) -> None:
    """As medmnist 3.0.2 reads them: `{split}_images` of n x 28 x 28 (x 3), `{split}_labels` of n x 1 or n x classes."""
    rng, sizes = np.random.default_rng(0), {"train": 6, "val": 3, "test": 2}
    images = {split: rng.integers(0, 256, (n, 28, 28, 3), np.uint8) for split, n in sizes.items()}
    labels = {split: (np.arange(n) % 3).astype(np.uint8)[:, None] for split, n in sizes.items()}
    np.savez_compressed(
        tmp_path / "a.npz",
        **{f"{split}_images": images[split] for split in sizes},
        **{f"{split}_labels": labels[split] for split in sizes},
    )
    proposal = propose(tmp_path / "a.npz")
    for _ in range(2):  # written, and read from what was kept
        found = listed(proposal.data, tmp_path)
        assert counts(found) == {"train": 6, "heldout": 2}
        assert len(found.log.other_parts) == 3
        assert [pair.label for pair in found.splits["train"]] == ["0", "1", "2"] * 2
        assert found.splits["heldout"][1].caption == "class 1"
    splits = load(proposal.data, image_size=28, workspace_folder=tmp_path / "workspace", progress=lambda *_: None)
    np.testing.assert_array_equal(splits.train.images[:], images["train"])
    np.testing.assert_array_equal(splits.heldout["heldout"].images[:], images["test"])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"embeddings": (4, 5)}, "holds no pictures"),
        ({"train_images": (4, 8, 8, 8), "train_labels": (4, 1)}, "is 4 x 8 x 8 x 8 of uint8"),
        ({"train_images": (4, 8, 0), "train_labels": (4, 1)}, "is 4 x 8 x 0 of uint8"),
        ({"train_images": (4, 8, 8)}, "has no train_labels"),
        ({"train_images": (4, 8, 8), "train_labels": (3, 1)}, "a whole number for each of 4 pictures"),
    ],
)
def test_arrays_that_are_no_pictures_with_classes_are_named(tmp_path: Path, arrays: dict, words: str) -> None:
    np.savez(tmp_path / "a.npz", **{name: np.ones(shape, np.uint8) for name, shape in arrays.items()})
    with pytest.raises(DataError, match=words):
        listed(config.Table(path=str(tmp_path / "a.npz")), tmp_path)


def test_gray_pictures_of_several_classes(tmp_path: Path) -> None:
    pixels = np.arange(3 * 16, dtype=np.uint8).reshape(3, 4, 4)
    np.savez(tmp_path / "a.npz", train_images=pixels, train_labels=np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]]))
    found = listed(propose(tmp_path / "a.npz").data, tmp_path)
    assert [pair.label for pair in found.splits["train"]] == ["0, 2", "none", "1"]
