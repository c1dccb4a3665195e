"""A training loads only what it uses of open_clip, torchvision and torch; everything else loads when it is used."""

import subprocess
import sys

import pytest

from tests.nightly import nightly_except

STEP = """
import sys
import torch, trainer.training.fit
layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()
optimizer.zero_grad()
heavy = ("timm", "transformers", "torchvision.models", "open_clip.factory", "torch._dynamo.utils", "sympy")
print([name for name in heavy if name in sys.modules])
"""
ALL = """
import open_clip, torchvision
assert open_clip.create_model("RN50", load_weights=False) is not None and open_clip.__version__
assert torchvision.ops.nms(torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1]]), torch.tensor([1.0, 0.5]), 0.5).tolist() == [0]
assert torchvision.models.resnet18 is not None and not hasattr(torchvision, "nothing")
assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item() == 2
assert "torch._dynamo.utils" in sys.modules
"""


@pytest.mark.slow
@pytest.mark.parametrize("more", nightly_except(["", ALL], ""), ids=["step", "all"])
def test_a_training_loads_only_what_it_uses_and_the_rest_loads_when_it_is_used(more: str):
    done = subprocess.run([sys.executable, "-c", STEP + more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[0] == "[]"


@pytest.mark.slow
@pytest.mark.nightly
def test_a_notebook_keeps_torch_as_it_is():
    whole = "import sys, trainer.api, trainer.models; print('open_clip.factory' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr[-2000:]
