from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from trainer import config
from trainer.data.tokenizer import train_tokenizer
from trainer.methods import build as build_method
from trainer.models import build
from trainer.training.optimizer import adamw, clip_gradients, learning_rate, parameter_groups


def test_only_matrices_and_kernels_decay():
    tokenizer = train_tokenizer(["a red ring"], 300)
    tiny = config.TinyTowers(image_width=8, text_width=32, text_layers=1, text_heads=2, image_size=32)
    module = nn.ModuleDict({"towers": build(tiny, vocabulary=tokenizer.size), "method": build_method(config.Clip())})
    decayed, kept = parameter_groups(module, 0.1)
    names = {id(p): name for name, p in module.named_parameters()}
    assert {names[id(p)] for p in [*decayed["params"], *kept["params"]]} == set(names.values())
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)
    kept_names = {names[id(p)] for p in kept["params"]}
    assert "method.log_inv_tau" in kept_names
    assert "towers.visual.layer1.0.downsample.1.weight" in kept_names  # a batch norm that CLOOB's own code decays
    assert "towers.text.ln_final.weight" in kept_names
    assert all(name.endswith((".bias", "weight", "in_proj_bias", "log_inv_tau")) for name in kept_names)
    assert "towers.visual.conv1.weight" not in kept_names
    assert "towers.text.text_projection" not in kept_names


def test_a_fixed_temperature_is_not_optimized():
    fixed = build_method(config.Clip(learn_inv_tau=False))
    optimizer = adamw(nn.ModuleDict({"m": fixed, "l": nn.Linear(2, 2)}), config.Optimizer())
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 2


def test_warm_up_then_half_a_cosine():
    choice = config.Optimizer(learning_rate=1.0, warmup_steps=10)
    rates = [learning_rate(step, total_steps=110, choice=choice) for step in range(111)]
    assert rates[:10] == pytest.approx([(k + 1) / 10 for k in range(10)])
    assert rates[10] == 1.0
    assert rates[60] == pytest.approx(0.5)
    assert rates[110] == pytest.approx(0.0)
    assert all(a > b for a, b in itertools.pairwise(rates[10:]))


def test_a_warm_up_longer_than_the_run_still_leaves_half_of_it():
    choice = config.Optimizer(learning_rate=1.0, warmup_steps=1000)
    rates = [learning_rate(step, total_steps=20, choice=choice) for step in range(20)]
    assert max(rates) == 1.0
    assert rates.index(1.0) == 9


def test_gradients_are_clipped_to_the_norm_and_zero_switches_it_off():
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    assert clip_gradients([parameter], 0.0).item() == pytest.approx(5.0)
    assert parameter.grad.tolist() == [3.0, 4.0]
    assert clip_gradients([parameter], 1.0).item() == pytest.approx(5.0)
    assert parameter.grad.norm().item() == pytest.approx(1.0, abs=1e-4)
