import itertools

import pytest
import torch
from torch import nn

from trainer import config
from trainer.data.tokenizer import train_tokenizer
from trainer.methods import build as build_method
from trainer.models import build
from trainer.training.optimizer import build as build_optimizer
from trainer.training.optimizer import clip_gradients, learning_rate, parameter_groups


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
    optimizer = build_optimizer(nn.ModuleDict({"m": fixed, "l": nn.Linear(2, 2)}), config.Optimizer())
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


def test_lars_takes_steps_in_proportion_to_the_weights_and_plain_ones_where_nothing_decays():
    choice = config.Optimizer(algorithm="lars", learning_rate=0.7, weight_decay=0.01, momentum=0.8, trust=0.05)
    torch.manual_seed(0)
    layer = nn.Linear(3, 2).double()
    optimizer = build_optimizer(layer, choice)
    weight, bias = layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()
    speed, drift = 0.0 * weight, 0.0 * bias
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        layer.weight.grad = torch.randn(2, 3, generator=generator, dtype=torch.float64)
        layer.bias.grad = torch.randn(2, generator=generator, dtype=torch.float64)
        slope = layer.weight.grad.numpy()
        length = sum(x * x for x in weight.flat) ** 0.5
        steep = sum(x * x for x in slope.flat) ** 0.5
        speed = 0.8 * speed + 0.05 * length / (steep + 0.01 * length) * (slope + 0.01 * weight)
        drift = 0.8 * drift + layer.bias.grad.numpy()
        weight, bias = weight - 0.7 * speed, bias - 0.7 * drift
        optimizer.step()
    assert layer.weight.detach().numpy() == pytest.approx(weight, abs=1e-7)
    assert layer.bias.detach().numpy() == pytest.approx(bias, abs=1e-12)


def test_lars_continues_from_its_state():
    def step(layer: nn.Linear, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        layer(torch.ones(1, 3)).square().sum().backward()
        optimizer.step()

    choice = config.Optimizer(algorithm="lars", learning_rate=0.1)
    whole, part = nn.Linear(3, 2), nn.Linear(3, 2)
    part.load_state_dict(whole.state_dict())
    one, other = build_optimizer(whole, choice), build_optimizer(part, choice)
    for _ in range(3):
        step(whole, one)
        step(part, other)
    after = nn.Linear(3, 2)
    after.load_state_dict(part.state_dict())
    resumed = build_optimizer(after, choice)
    resumed.load_state_dict(other.state_dict())
    step(whole, one)
    step(after, resumed)
    assert torch.equal(whole.weight, after.weight)
