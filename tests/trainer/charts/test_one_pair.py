"""One pair as two runs see it, against loops in float64; and what the command prints."""

import json
from dataclasses import replace

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.charts import ChartError
from trainer.charts.common_pairs import row_of_pair
from trainer.charts.one_pair import OnePair, one_pair, open_snapshots, rank_lines
from trainer.charts.spec import Request, Target
from trainer.config import default_paths
from trainer.store import Items, RunLog, Workspace, read_snapshot, snapshot_name, write_snapshot
from trainer.store.reviews import pair_keys

BOTH = Request((Target(1), Target(2)), "scenes", "renderings")


def naive(image: np.ndarray, text: np.ndarray, items: Items, row: int) -> tuple[int, int, float]:
    """Return caption rank, image rank and margin, counting each caption and each picture once."""
    image, text = np.asarray(image, np.float64), np.asarray(text, np.float64)
    captions, content = [*items.caption], [*(items.content or items.path)]

    def place(asking: np.ndarray, answers: np.ndarray, names: list[str], right: set[str]) -> tuple[int, float]:
        seen: dict[str, float] = {}
        for vector, name in zip(answers, names, strict=True):
            seen.setdefault(name, float(vector @ asking))
        best = max(seen[name] for name in right)
        wrong = np.array([cosine for name, cosine in seen.items() if name not in right])
        return 1 + int((wrong >= best - 1e-7).sum()), (best - wrong.max()) / wrong.std()

    own_captions = {captions[at] for at in range(len(captions)) if content[at] == content[row]}
    own_pictures = {content[at] for at in range(len(captions)) if captions[at] == captions[row]}
    by_image, margin = place(image[row], text, captions, own_captions)
    by_text, _ = place(text[row], image, content, own_pictures)
    return by_image, by_text, margin


def found_of(workspace: Workspace, row: int, request: Request = BOTH, k: int = 8) -> OnePair:
    return one_pair(workspace, open_snapshots(workspace, request), row, k=k)


@pytest.mark.parametrize("row", [0, 17, 239])
def test_ranks_and_margin_of_a_pair_equal_loops_in_float64(charted: Workspace, row: int) -> None:
    found = found_of(charted, row)
    assert [one.place for one in found.runs] == [0, 1]
    for one in found.runs:
        chosen = [s for s in charted.results.snapshots(one.run) if (s.split, s.step) == ("renderings", one.step)]
        snapshot = read_snapshot(chosen[0].folder)
        assert one.place or snapshot.items.caption[row] == found.caption
        by_image, by_text, margin = naive(snapshot.image, snapshot.text, snapshot.items, row)
        assert (one.caption_rank, one.image_rank) == (by_image, by_text)
        assert one.margin == pytest.approx(margin, rel=1e-4)
        assert one.captions == len({*snapshot.items.caption})
        near = np.argsort(-(np.asarray(snapshot.image, float) @ np.asarray(snapshot.image[row], float)), kind="stable")
        assert [each.row for each in one.near] == [at for at in near if at != row][:8]
        assert [each.caption for each in one.near] == [snapshot.items.caption[each.row] for each in one.near]


def test_the_course_has_the_rank_at_every_step_and_ends_with_the_last(charted: Workspace) -> None:
    found = found_of(charted, 5)
    for one in found.runs:
        assert [step for step, _ in one.course] == [0, 80, 160, 240]
        assert one.course[-1][1] == one.caption_rank
        early = found_of(charted, 5, Request((Target(one.run, 0),), "scenes", "renderings"))
        assert one.course[0][1] == early.runs[0].caption_rank


def test_the_key_is_that_of_the_whole_list_also_where_pairs_repeat(workspace: Workspace) -> None:
    with RunLog.claim(workspace, workspace.runs.create(config.Run())) as log:
        paths, captions = ["a.png", "b.png", "a.png", "a.png"], ["one", "one", "one", "two"]
        items = Items(np.arange(4), paths, captions, [""] * 4, ["val"] * 4)
        rng = np.random.default_rng(0)
        sides = rng.standard_normal((2, 4, 6)).astype(np.float32)
        image, text = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
        folder = log.run.folder / "snapshots" / snapshot_name(dataset="own", split="val", step=0)
        write_snapshot(folder, image=image, text=text, items=items, step=0, dataset="own", split="val", model="own")
        log.snapshot(0, "own", "val", folder, 4, 6)
    keys = pair_keys(paths, captions, workspace.folder)
    assert [found_of(workspace, row, Request((Target(1),))).key for row in range(4)] == keys


def test_a_pair_is_found_in_the_other_run_by_its_id_and_missing_ones_are_told(charted: Workspace) -> None:
    opened = open_snapshots(charted, BOTH)
    first, second = (side for _, side in opened.found)
    here, there = first.snapshot.items, second.snapshot.items
    assert [row_of_pair(there, here, row) for row in (0, 100)] == [0, 100]
    assert open_snapshots(charted, BOTH, opened).found[0][1] is first
    only = open_snapshots(charted, Request((Target(1), Target(2, 7)), "scenes", "renderings"))
    assert len(only.found) == 1
    assert "step 7" in only.problems[0]


def test_a_row_that_does_not_exist_is_refused_in_words(charted: Workspace) -> None:
    with pytest.raises(ChartError, match="rows 0 to 239"):
        found_of(charted, 240)


def test_ranks_among_a_sample_say_of_how_many(charted: Workspace) -> None:
    found = found_of(charted, 17)
    sampled = [replace(run, captions=60, captions_of=1024, images=240) for run in found.runs]
    caption, image, _ = rank_lines(replace(found, runs=tuple(sampled)))
    assert caption[0] == "Caption rank of 60 sampled of 1,024"
    assert image[0] == "Image rank of 240"
    sample = Workspace(default_paths.sample_workspace())
    assert {run.images_of for run in found_of(sample, 5, Request((Target(1), Target(2)))).runs} == {1024}


def test_the_command_prints_what_the_window_shows(charted: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["analyze", "pair", "1", "2", "--row", "17", "--dataset", "scenes", "--split", "renderings"]
    assert main([*words, "--json", "--workspace", str(charted.folder)]) == 0
    printed = json.loads(capsys.readouterr().out)["runs"]
    found = found_of(charted, 17)
    assert [one["caption_rank"] for one in printed] == [one.caption_rank for one in found.runs]
    caption, image, margin = rank_lines(found)
    assert caption[0].startswith("Caption rank")
    assert [words.split(" of ")[0] for words in caption[1:]] == [str(one.caption_rank) for one in found.runs]
    assert image[0] == f"Image rank of {found.runs[0].images:,}"
    assert margin[1] == f"{found.runs[0].margin:+.2f}".replace("-", "−")
    assert main([*words, "--workspace", str(charted.folder)]) == 0
    assert found.key in capsys.readouterr().out
