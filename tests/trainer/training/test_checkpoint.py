import pytest
import torch
from torch import nn

from trainer.checkpoints import checkpoint
from trainer.checkpoints.checkpoint import CheckpointError
from trainer.store import manifests
from trainer.store.disk import DiskTrouble


@pytest.fixture
def saved(tmp_path):
    """Save a small model at a step and return the folder."""
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(module.parameters())

    def save(step: int):
        module(torch.randn(4, 3)).sum().backward()
        optimizer.step()
        training = {"step": step, "best": 0.5, "best_step": 1, "optimizer": optimizer.state_dict()}
        return checkpoint.save(tmp_path, modules={"model": module}, training=training, tokenizer="{}")

    save.module, save.optimizer = module, optimizer
    return save


def test_weights_moments_and_generators_come_back(saved):
    folder = saved(7)
    weight, moment = saved.module.weight.clone(), saved.optimizer.state[saved.module.weight]["exp_avg"].clone()
    drawn = torch.randn(3)
    saved(8)
    found = checkpoint.load(folder)
    checkpoint.restore(found, modules={"model": saved.module}, optimizer=saved.optimizer)
    assert (found.step, found.training["best"], found.tokenizer) == (7, 0.5, "{}")
    assert torch.equal(saved.module.weight, weight)
    assert torch.equal(saved.optimizer.state[saved.module.weight]["exp_avg"], moment)
    assert torch.equal(torch.randn(3), drawn)


@pytest.mark.parametrize("name", ["model.safetensors", "training.pt", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_is_found_and_the_one_before_is_used(saved, tmp_path, name, damage):
    saved(1)
    victim = saved(2) / name
    content = bytearray(victim.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
        victim.write_bytes(content)
    elif damage == "cut":
        victim.write_bytes(content[:-1])
    else:
        victim.unlink()
    with pytest.raises(CheckpointError, match="step_000002 is damaged"):
        checkpoint.load(tmp_path / "step_000002")
    found, complaints = checkpoint.newest(tmp_path)
    assert found.step == 1
    assert len(complaints) == 1


def test_a_folder_without_a_manifest_is_no_checkpoint(saved, tmp_path):
    (saved(1) / "manifest.json").unlink()
    assert checkpoint.newest(tmp_path)[0] is None


def test_a_pickle_that_would_run_code_is_refused_even_with_a_matching_manifest(saved, tmp_path):
    import pickle

    ran = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return (ran.write_text, ("x",))

    folder = saved(1)
    (folder / "training.pt").write_bytes(pickle.dumps(Evil(), protocol=2))
    (folder / "manifest.json").unlink()
    manifests.write_manifest(folder, {"step": 1})
    with pytest.raises(CheckpointError):
        checkpoint.load(folder)
    assert not ran.exists()


def test_the_last_three_and_the_best_stay(saved, tmp_path):
    for step in range(1, 7):
        saved(step)
    assert checkpoint.prune(tmp_path, best=2) == [3, 1]
    assert checkpoint.steps(tmp_path) == [6, 5, 4, 2]


def test_so_many_stay_as_are_wanted(saved, tmp_path):
    for step in range(1, 8):
        saved(step)
    assert checkpoint.prune(tmp_path, best=1, keep=5) == [2]
    assert checkpoint.steps(tmp_path) == [7, 6, 5, 4, 3, 1]


def test_a_failing_disk_leaves_the_older_checkpoint_and_no_rubbish(saved, tmp_path, monkeypatch):
    saved(1)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trainer.checkpoints.checkpoint.torch.save", full)
    with pytest.raises(DiskTrouble, match=r"is full: the checkpoint of step 2 needs 1,\d+ KiB and .* are free"):
        saved(2)
    assert [path.name for path in tmp_path.iterdir()] == ["step_000001"]
    assert checkpoint.load(tmp_path / "step_000001").step == 1


def test_weights_of_another_shape_are_named(saved):
    found = checkpoint.load(saved(1))
    with pytest.raises(CheckpointError, match="does not fit"):
        checkpoint.load_weights(found, {"model": nn.Linear(4, 2)})
