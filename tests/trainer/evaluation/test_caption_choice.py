"""Choice of captions against loops over embeddings of the model, in every published layout."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer.__main__ import main
from trainer.analysis.caption_swaps import swaps
from trainer.charts.registry import load
from trainer.charts.spec import Request, Target
from trainer.data.caption_choices import read_choices
from trainer.data.errors import DataError
from trainer.evaluation.caption_choice import Negatives, choose
from trainer.evaluation.run_tasks import evaluate_runs
from trainer.inference.embed import embed_files
from trainer.inference.model_cache import ModelCache
from trainer.messages import Evaluate
from trainer.store import Workspace
from trainer.store.task_records import TaskRecord

pytestmark = pytest.mark.slow


def chosen(own: Workspace, data: Path | str = "") -> TaskRecord:
    question = Evaluate(runs=(1,), data=str(data), tasks=("caption_choice",))
    done, left_out = evaluate_runs(ModelCache(own), question, lambda _share, _note: None)
    assert not left_out
    return done[0].record


def test_scenes_are_asked_with_their_words_exchanged(own: Workspace):
    record = chosen(own)
    opened = ModelCache(own).get(1).opened
    kinds: dict[str, list[bool]] = {}
    for path, caption in dict(zip(record.arrays["path"].tolist(), record.arrays["caption"].tolist())).items():
        image = embed_files(opened, [path]).vectors[0].astype(float)
        for swap in swaps(caption):
            right, false = opened.embed_texts([caption, swap.caption]).astype(float) @ image
            kinds.setdefault(swap.kind, []).append(right > false)
    assert set(kinds) == {"color", "relation", "order"}
    for kind, answers in kinds.items():
        # Own towers read data sets by a quicker square than single files: an answer near a tie may turn.
        assert record.details["kinds"][kind]["n"] == len(answers)
        assert record.metrics[f"caption_choice_{kind}"] == pytest.approx(np.mean(answers), abs=1.5 / len(answers))
    assert record.question.protocol.startswith("captions with words exchanged: color ")
    data = load("caption-choice").result(own, Request((Target(1),)), None, lambda *_: None)
    assert {line.kind: line.values[0][0] for line in data.lines} == {
        kind: pytest.approx(told["share"]) for kind, told in record.details["kinds"].items()
    }


def test_a_question_needs_every_negative_and_a_tie_is_wrong():
    image, text = np.eye(4)[[0, 1, 2, 0]], np.eye(4)[[0, 1, 2, 3]]
    false = np.array([[0.5, 0, 0, 0], [0.9, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0.5, 0], [0, 0, 2.0, 0], [0, 0, 0, 0]])
    negatives = Negatives(np.array([0, 0, 1, 2, 2, 3]), ("a", "a", "a", "a", "a", "b"), tuple("uvwxyz"))
    metrics, details, arrays = choose(image, text, negatives, false)
    assert arrays["right"].tolist() == [True, False, False, False]
    assert arrays["negative"].tolist() == ["v", "w", "y", "z"]
    assert metrics == {"caption_choice": 0.25, "caption_choice_a": pytest.approx(1 / 3), "caption_choice_b": 0.0}
    assert details["all"]["n"] == 4


def test_scores_of_winoground_are_its_equations():
    rng = np.random.default_rng(0)
    image, text = rng.normal(size=(80, 5)), rng.normal(size=(80, 5))
    pair = tuple(f"{row // 2}" for row in range(80))
    negatives = Negatives(np.arange(80), ("k",) * 80, ("",) * 80, pair)
    metrics, _, _ = choose(image, text, negatives, text.reshape(40, 2, 5)[:, ::-1].reshape(80, 5))
    counts = {"text": 0, "image": 0, "group": 0}
    for one in range(40):
        s = [[float(text[2 * one + c] @ image[2 * one + i]) for i in (0, 1)] for c in (0, 1)]
        of_text = s[0][0] > s[1][0] and s[1][1] > s[0][1]
        of_image = s[0][0] > s[0][1] and s[1][1] > s[1][0]
        counts["text"] += of_text
        counts["image"] += of_image
        counts["group"] += of_text and of_image
    assert {name: metrics[f"caption_choice_pair_{name}"] for name in counts} == {
        name: pytest.approx(count / 40) for name, count in counts.items()
    }


def pictures(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(names):
        Image.fromarray(np.full((40, 60, 3), 40 * place, np.uint8)).save(folder / name)


def test_every_layout_is_read_and_evaluated(own: Workspace, tmp_path: Path):
    crepe, aro, wino, table = (tmp_path / name for name in ("crepe", "aro", "wino", "table"))
    pictures(crepe / "images", "1.jpg", "2.jpg")
    rows = {str(n): {"filename": f"{n}.jpg", "caption": "a dog", "negative_caption": "a cat"} for n in (1, 2)}
    for kind in ("swap_att", "replace_rel"):
        (crepe / f"{kind}.json").write_text(json.dumps(rows))
    record = chosen(own, crepe)
    assert {kind: told["n"] for kind, told in record.details["kinds"].items()} == {"replace_rel": 2, "swap_att": 2}

    pictures(aro / "images", "3.jpg")
    box = {"bbox_x": 10, "bbox_y": 5, "bbox_w": 30, "bbox_h": 20}
    row = {"image_path": "3.jpg", "true_caption": "a on b", "false_caption": "b on a", "relation_name": "on"} | box
    (aro / "visual_genome_relation.json").write_text(json.dumps([row]))
    assert read_choices(aro)[0].box == (10, 5, 40, 25)
    record = chosen(own, aro / "visual_genome_relation.json")
    with Image.open(record.arrays["path"][0]) as cropped:
        assert cropped.size == (30, 20)

    pictures(wino / "images", "ex_0_img_0.png", "ex_0_img_1.png")
    row = {"id": 0, "image_0": "ex_0_img_0", "image_1": "ex_0_img_1", "caption_0": "x y", "caption_1": "y x"}
    (wino / "examples.jsonl").write_text(json.dumps(row | {"collapsed_tag": "Object"}) + "\n")
    record = chosen(own, wino)
    assert {"caption_choice_pair_text", "caption_choice_pair_group"} <= {*record.metrics}
    assert record.arrays["caption"].tolist() == ["x y", "y x"]

    pictures(table, "5.png")
    with (table / "own.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("image", "caption", "negative_1", "negative_2", "kind"), ("5.png", "a", "b", "c", "letters")]
        )
    assert main(["evaluate", "1", "--task", "caption_choice", "--data", str(table / "own.csv"), "--workspace",
                 str(own.folder)]) == 0  # fmt: skip
    assert read_choices(table / "own.csv")[0].negatives == ("b", "c")


def test_files_without_choices_are_refused_in_a_sentence(tmp_path: Path):
    (tmp_path / "captions.csv").write_text("image,caption\n1.png,a cat\n")
    with pytest.raises(DataError, match="holds no captions with negatives"):
        read_choices(tmp_path)
    (tmp_path / "bad.json").write_text('{"1": {"caption": "a", "negative_caption": "b"}}')
    with pytest.raises(DataError, match=r"bad\.json, row 1"):
        read_choices(tmp_path)
