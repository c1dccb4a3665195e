"""Malicious and damaged weights files: refused with a message, and without running code."""

import argparse
import io
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from trainer.pretrained import PretrainedError
from trainer.pretrained.weights import read_weights


@pytest.fixture
def good(tmp_path) -> Path:
    file = tmp_path / "good.pt"
    torch.save({"epoch": 3, "state_dict": {"module.a": torch.arange(6.0).view(2, 3), "module.b": torch.ones(2)}}, file)
    return file


def test_tensors_come_out_without_nests(good, tmp_path):
    assert {name: value.tolist() for name, value in read_weights(good).items()} == {
        "module.a": [[0, 1, 2], [3, 4, 5]],
        "module.b": [1, 1],
    }
    save_file({"a": torch.ones(2)}, tmp_path / "one.safetensors")
    assert list(read_weights(tmp_path / "one.safetensors")) == ["a"]


class Hostile:
    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self):
        return Path.touch, (self._canary,)


@pytest.mark.parametrize("wrap", ["archive", "pickle", "legacy"])
def test_no_code_runs(tmp_path, wrap):
    file, canary = tmp_path / "hostile.pt", tmp_path / "canary"
    if wrap == "pickle":
        file.write_bytes(pickle.dumps(Hostile(canary)))
    else:
        torch.save({"a": Hostile(canary)}, file, _use_new_zipfile_serialization=wrap == "archive")
    with pytest.raises(PretrainedError, match=r"hostile\.pt .*can run code"):
        read_weights(file)
    assert not canary.exists()


def test_objects_of_python_are_refused(tmp_path):
    torch.save({"args": argparse.Namespace(a=1), "state_dict": {"a": torch.ones(1)}}, tmp_path / "args.pt")
    with pytest.raises(PretrainedError, match="more than tensors"):
        read_weights(tmp_path / "args.pt")


def test_a_view_of_a_trillion_numbers_is_refused(tmp_path):
    torch.save({"a": torch.zeros(1).expand(10**6, 10**6)}, tmp_path / "view.pt")
    with pytest.raises(PretrainedError, match=r"tensor a \(1000000, 1000000\) claims more than it holds"):
        read_weights(tmp_path / "view.pt")


def test_a_compressed_archive_is_refused(good, tmp_path):
    packed = tmp_path / "packed.pt"
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(member.filename, old.read(member))
    with pytest.raises(PretrainedError, match=r"packed\.pt is compressed"):
        read_weights(packed)


def test_a_flipped_byte_is_found(tmp_path):
    file = tmp_path / "flipped.pt"
    torch.save({"a": torch.ones(5000)}, file)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(PretrainedError, match=r"flipped\.pt is damaged: its part .*data/0"):
        read_weights(file)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_truncated_file_is_named(good, tmp_path, suffix):
    file = tmp_path / f"short{suffix}"
    if suffix == ".pt":
        file.write_bytes(good.read_bytes()[:-200])
    else:
        save_file({"a": torch.ones(500)}, file)
        file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(PretrainedError, match="short"):
        read_weights(file)


def test_a_program_of_torch_is_refused(tmp_path):
    torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)).save(str(tmp_path / "traced.pt"))
    with pytest.raises(PretrainedError, match=r"traced\.pt is TorchScript"):
        read_weights(tmp_path / "traced.pt")


def test_a_file_without_weights_is_named(tmp_path):
    torch.save({"epoch": 1}, tmp_path / "empty.pt")
    with pytest.raises(PretrainedError, match=r"empty\.pt holds no weights"):
        read_weights(tmp_path / "empty.pt")
    with pytest.raises(PretrainedError, match="There is no file"):
        read_weights(tmp_path / "nowhere.pt")


def test_tensors_that_share_memory_are_read(tmp_path):
    shared = torch.ones(1000)
    buffer = io.BytesIO()
    torch.save({"a": shared, "b": shared}, buffer)
    (tmp_path / "tied.pt").write_bytes(buffer.getvalue())
    assert set(read_weights(tmp_path / "tied.pt")) == {"a", "b"}
