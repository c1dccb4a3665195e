"""The judge of decoded pictures is trained once for each data set, size and version of its code."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer.data import Pairs
from trainer.evaluation import picture_judge
from trainer.evaluation.picture_judge import judge_of, labels_of, truth_of
from trainer.store import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("judge"))


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    rng = np.random.default_rng(0)
    grounds, colors = (rng.choice(values, 80).tolist() for values in (["sand", "snow", "grass"], ["red", "blue"]))
    images = rng.integers(0, 255, (80, 32, 32, 3), dtype=np.uint8)
    names = [str(row) for row in range(80)]
    told = {"ground": grounds, "color": colors, "name": names, "split": ["train"] * 80}
    return Pairs("made", "train", images, names, [""] * 80, names, told, "these")


class Updates:
    """Counts the updates of a training."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __call__(self, share: float, note: str) -> None:
        self.notes.append(note)


def asked(workspace: Workspace, pairs: Pairs, *, size: int = 16, epochs: int = 2) -> tuple[dict, int]:
    """Return the judge's weights, and how many updates they took."""
    updates = Updates()
    judge, _ = judge_of(workspace.folder, pairs, size, epochs, updates)
    assert not judge.training
    return judge.state_dict(), len(updates.notes)


def files(workspace: Workspace) -> set[Path]:
    return {path for path in (workspace.folder / "cache").glob("judge-*") if path.is_dir()}


def test_a_judge_is_trained_once_and_is_then_the_same(workspace, pairs):
    first, updates = asked(workspace, pairs)
    assert updates == 2
    again, none = asked(workspace, pairs)
    assert none == 0
    for name, value in first.items():
        assert torch.equal(value, again[name]), name


def test_other_pictures_attributes_sizes_or_code_have_a_judge_of_their_own(workspace, pairs, monkeypatch):
    asked(workspace, pairs)
    assert asked(workspace, pairs)[1] == 0
    other_pixels = dataclasses.replace(pairs, fingerprint="another")
    grounds = pairs.metadata["ground"]
    other_truth = dataclasses.replace(pairs, metadata=pairs.metadata | {"ground": grounds[1:] + grounds[:1]})
    assert labels_of(other_truth) == labels_of(pairs) == {"color": ["blue", "red"], "ground": ["grass", "sand", "snow"]}
    for pairs_, size, epochs in ((other_pixels, 16, 2), (other_truth, 16, 2), (pairs, 32, 2), (pairs, 16, 1)):
        assert asked(workspace, pairs_, size=size, epochs=epochs)[1] == epochs
    source = picture_judge.inspect.getsource
    monkeypatch.setattr(picture_judge.inspect, "getsource", lambda code: f"{source(code)}# changed")
    assert asked(workspace, pairs)[1] == 2


def test_a_damaged_judge_is_trained_again(workspace, pairs):
    first, _ = asked(workspace, pairs, epochs=3)
    (weights,) = {
        file for folder in files(workspace) for file in folder.glob("step_000003/model.safetensors")
    }  # the others took other numbers of updates
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    again, updates = asked(workspace, pairs, epochs=3)
    assert updates == 3
    for name, value in first.items():
        assert torch.equal(value, again[name]), name


def test_a_workspace_for_looking_only_is_neither_written_nor_believed(workspace, pairs, monkeypatch):
    """A stranger's judge could say anything."""
    asked(workspace, pairs)
    before = files(workspace)
    monkeypatch.setattr("trainer.store.derived.is_look_only", lambda folder: folder == workspace.folder)
    assert asked(workspace, pairs)[1] == 2
    assert asked(workspace, pairs)[1] == 0
    assert asked(workspace, pairs, size=24)[1] == 2
    assert files(workspace) == before


def test_values_that_the_training_pairs_lack_are_not_judged(pairs):
    labels = labels_of(pairs)
    odd = dataclasses.replace(pairs, metadata=pairs.metadata | {"ground": ["plaid", *pairs.metadata["ground"][1:]]})
    told = truth_of(odd, labels)["ground"]
    assert told[0] == -1
    assert [labels["ground"][place] for place in told[1:]] == odd.metadata["ground"][1:]
