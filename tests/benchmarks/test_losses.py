import subprocess
import sys

import pytest
import torch

from tests.benchmarks import losses
from tests.lazily import lazily
from trainer.losses import cloob, dhn_nce, info_nce, siglip
from trainer.losses.precision import bfloat16_operands

flop_counter = lazily("torch.utils.flop_counter")


@pytest.mark.slow
def test_measures_each_form_in_a_process_of_its_own():
    rows = list(losses.measure([64], dimension=16, objectives=("cloob",)))
    assert [(r.objective, r.form, r.pairs, r.note) for r in rows] == [
        ("cloob", "dense", 64, ""),
        ("cloob", "tiled", 64, ""),
    ]
    assert all(r.seconds > 0 for r in rows)


def test_dense_beyond_memory_is_not_run_and_says_why():
    (row,) = losses.measure([1_000_000], objectives=("open_clip",))
    assert row.seconds is None
    assert "not run: needs about" in row.note


@pytest.mark.parametrize("objective", losses.ON_GPU)
def test_the_path_of_a_gpu_runs_with_rounded_operands_and_knows_its_share(objective):
    """Run the same code on a CPU at a tiny size, apart from clock and memory."""
    row = losses.measure_here(objective, "tiled", 96, 16, "cpu", rounded=True)
    assert row.seconds > 0
    assert 0 < row.share < 1
    assert losses.measure_here(objective, "tiled", 96, 16, "cpu").share is None


@pytest.mark.slow
def test_torch_alone_is_enough(tmp_path):
    """Without jaxtyping, psutil, numpy or open_clip, the losses can be imported and measured on a GPU."""
    script = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jaxtyping", "psutil", "open_clip", "sqlalchemy", "pyarrow"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import torch
from tests.benchmarks import losses
rows = [torch.nn.functional.normalize(torch.randn(8, 4), dim=1).requires_grad_() for _ in range(2)]
for objective in losses.ON_GPU:
    losses._loss(objective, "tiled", 8, "cuda")(*rows).backward()
print(losses.matrix_rate("cpu", side=64) > 0, getattr(sys.modules["jaxtyping"], "__file__", "stand-in"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "stand-in"], done.stderr


@pytest.mark.parametrize(("objective", "form"), list(losses.OPERATIONS))
def test_operations_are_those_of_the_matrix_products(objective, form):
    """Compare to torch's counter: two per multiplication and addition, none for in-place additions."""
    n, d = 64, 32
    rows = [torch.nn.functional.normalize(torch.randn(n, d), dim=1).requires_grad_() for _ in range(2)]
    loss = losses._loss(objective, form, n, "cpu")
    if form == "tiled":
        loss = {
            "clip": lambda a, b: info_nce(a, b, 14.0, tile=16),
            "cloob": lambda a, b: cloob(a, b, 30.0, 8.0, tile=16),
            "dhn_nce": lambda a, b: dhn_nce(a, b, 14.0, 0.15, 0.15, tile=16),
            "siglip": lambda a, b: siglip(a, b, 10.0, -10.0, tile=16),
        }[objective]
    with bfloat16_operands(), flop_counter.FlopCounterMode(display=False) as counted:
        loss(*rows).backward()
    assert counted.get_total_flops() == losses.OPERATIONS[objective, form] * n**2 * d
