"""The published formats, against small separate forward passes written from their public definitions."""

import json
import math
from collections import OrderedDict

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.nightly import few_plain
from trainer import config
from trainer.models import build
from trainer.pretrained import PretrainedError, find, start_from
from trainer.pretrained.state_dict_formats import recognize

TEXTS = ["a red ring on a blue ground", "two stars", "x " * 60]


# -- CLIPGeneral of ml-jku/cloob -----------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(OrderedDict(c_fc=nn.Linear(width, 4 * width), c_proj=nn.Linear(4 * width, width)))

    def forward(self, x, mask):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        y = self.mlp.c_fc(self.ln_2(x))
        return x + self.mlp.c_proj(y * torch.sigmoid(1.702 * y))


class Blocks(nn.Module):
    def __init__(self, width, layers, heads):
        super().__init__()
        self.resblocks = nn.ModuleList(Block(width, heads) for _ in range(layers))

    def forward(self, x, mask=None):
        x = x.transpose(0, 1)
        for block in self.resblocks:
            x = block(x, mask)
        return x.transpose(0, 1)


class GeneralText(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["transformer_width"]
        self.transformer = Blocks(width, c["transformer_layers"], c["transformer_heads"])
        self.token_embedding = nn.Embedding(c["vocab_size"], width)
        self.positional_embedding = nn.Parameter(torch.randn(c["context_length"], width) / 10)
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(torch.randn(width, c["embed_dim"]))

    def forward(self, text):
        mask = torch.full((text.shape[1],) * 2, -math.inf).triu(1)
        x = self.ln_final(self.transformer(self.token_embedding(text) + self.positional_embedding, mask))
        return x[range(len(x)), text.argmax(1)] @ self.text_projection


class GeneralViT(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, patch = c["vision_width"], c["vision_patch_size"]
        self.conv1 = nn.Conv2d(3, width, patch, patch, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width))
        self.positional_embedding = nn.Parameter(torch.randn((c["image_resolution"] // patch) ** 2 + 1, width))
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.transformer = Blocks(width, c["vision_layers"], width // 64)
        self.proj = nn.Parameter(torch.randn(width, c["embed_dim"]))

    def forward(self, x):
        x = self.conv1(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_embedding.expand(len(x), 1, -1), x), 1) + self.positional_embedding
        return self.ln_post(self.transformer(self.ln_pre(x))[:, 0]) @ self.proj


class Bottleneck(nn.Module):
    def __init__(self, inside, planes, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, planes, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = nn.Conv2d(planes, 4 * planes, 1, bias=False), nn.BatchNorm2d(4 * planes)
        self.pool = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()
        self.downsample = None
        if stride > 1 or inside != 4 * planes:
            layers = {"-1": nn.AvgPool2d(stride), "0": nn.Conv2d(inside, 4 * planes, 1, bias=False)}
            self.downsample = nn.Sequential(OrderedDict(layers | {"1": nn.BatchNorm2d(4 * planes)}))

    def forward(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        y = self.bn3(self.conv3(self.pool(y)))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class Pool(nn.Module):
    def __init__(self, side, width, heads, out):
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.randn(side**2 + 1, width))
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.c_proj, self.heads = nn.Linear(width, out), heads

    def forward(self, x):
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat((x.mean(1, keepdim=True), x), 1) + self.positional_embedding
        q, k, v = (p(y).unflatten(2, (self.heads, -1)).transpose(1, 2) for p, y in
                   ((self.q_proj, x[:, :1]), (self.k_proj, x), (self.v_proj, x)))  # fmt: skip
        weights = (q @ k.transpose(2, 3) / q.shape[-1] ** 0.5).softmax(-1)
        return self.c_proj((weights @ v).transpose(1, 2).flatten(2)[:, 0])


class GeneralResNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inside = c["vision_width"], c["vision_width"]
        for name, (a, b) in {"1": (3, width // 2), "2": (width // 2, width // 2), "3": (width // 2, width)}.items():
            stride = 2 if name == "1" else 1
            self.add_module(f"conv{name}", nn.Conv2d(a, b, 3, stride, padding=1, bias=False))
            self.add_module(f"bn{name}", nn.BatchNorm2d(b))
        for stage, count in enumerate(c["vision_layers"], 1):
            planes = width * 2 ** (stage - 1)
            blocks = [Bottleneck(inside, planes, 1 if stage == 1 else 2)]
            inside = 4 * planes
            self.add_module(
                f"layer{stage}", nn.Sequential(*blocks, *(Bottleneck(inside, planes, 1) for _ in range(count - 1)))
            )
        self.attnpool = Pool(c["image_resolution"] // 32, 32 * width, width * 32 // 64, c["embed_dim"])

    def forward(self, x):
        for name in "123":
            x = F.relu(getattr(self, f"bn{name}")(getattr(self, f"conv{name}")(x)))
        x = F.avg_pool2d(x, 2)
        for stage in "1234":
            x = getattr(self, f"layer{stage}")(x)
        return self.attnpool(x)


class General(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.visual = GeneralResNet(c) if c["backbone_architecture"][0] == "ModifiedResNet" else GeneralViT(c)
        self.transformer = GeneralText(c)
        self.logit_inv_tau = nn.Parameter(torch.tensor(30.0).log(), requires_grad=False)


TEXT = {
    "context_length": 12,
    "vocab_size": 49_408,
    "transformer_width": 64,
    "transformer_heads": 1,
    "transformer_layers": 2,
}
RESNET = {
    "backbone_architecture": ["ModifiedResNet", "TextTransformer"],
    "embed_dim": 24, "image_resolution": 64, "vision_layers": [1, 2, 1, 1], "vision_width": 8,
    "vision_patch_size": None,
} | TEXT  # fmt: skip
VIT = {
    "backbone_architecture": ["VisualTransformer", "TextTransformer"],
    "embed_dim": 24, "image_resolution": 32, "vision_layers": 2, "vision_width": 64, "vision_patch_size": 8,
} | TEXT  # fmt: skip


def shaken(model: nn.Module, seed: int = 1) -> nn.Module:
    """Change every parameter and statistic, so that a misplaced tensor is detected."""
    torch.manual_seed(seed)
    for name, value in model.state_dict().items():
        if value.is_floating_point() and name != "logit_inv_tau":
            value.add_(torch.rand_like(value) * 0.2)
    return model.eval()


def opened(path, tmp_path, **changes):
    found = find(
        config.OpenClip(name=str(path), **changes), cache=tmp_path / "cache", progress=lambda share, note: None
    )
    towers = build(found.blueprint, vocabulary=found.tokenizer.size)
    start_from(found, towers)
    return found, towers.eval()


@pytest.mark.slow
@torch.inference_mode()
@few_plain(1, "sizes", [RESNET, VIT], ids=["resnet", "vit"])
@few_plain(1, "with_settings", [True, False], ids=["settings", "shapes"])
def test_a_published_cloob_embeds_as_its_own_code_does(tmp_path, sizes, with_settings):
    model = shaken(General(sizes))
    file = tmp_path / "cloob_rn50_yfcc_epoch_28.pt"
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    torch.save({"epoch": 28, "name": "run", "state_dict": state, "optimizer": {"state": {}, "param_groups": []}}, file)
    if with_settings:
        file.with_suffix(".json").write_text(json.dumps(sizes))
    found, towers = opened(file, tmp_path)
    images = torch.randn(3, 3, sizes["image_resolution"], sizes["image_resolution"])
    tokens = found.tokenizer.encode(TEXTS, 12)
    expected = F.normalize(model.visual(images), dim=1)
    torch.testing.assert_close(towers.encode_image(images), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        towers.encode_text(tokens), F.normalize(model.transformer(tokens), dim=1), rtol=1e-4, atol=1e-5
    )
    assert (found.learned.kind, round(found.learned.inv_tau, 3)) == ("cloob", 30.0)
    assert found.blueprint.image_size == sizes["image_resolution"]


# -- crowsonkb and EleutherAI ---------------------------------------------------------------------------------------

PUBLISHED = {
    "d_embed": 24, "inv_tau": 20.0, "scale_hopfield": 12.0,
    "image_encoder": {
        "type": "ViT", "image_size": 32, "input_channels": 3, "patch_size": 8, "n_layers": 2, "d_model": 32,
        "n_heads": 2,
        "normalize": {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]},
    },
    "text_encoder": {
        "type": "transformer", "tokenizer": "clip", "text_size": 12, "vocab_size": 49_408, "n_layers": 2, "d_model": 16,
        "n_heads": 4,
    },
}  # fmt: skip


def crowsonkb_state(sizes) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    draw = lambda *shape: torch.randn(*shape, generator=generator) * 0.3  # noqa: E731
    image, text, d = sizes["image_encoder"], sizes["text_encoder"], sizes["d_embed"]
    w, patch = image["d_model"], image["patch_size"]
    state = {"image_encoder.embed.weight": draw(w, 3, patch, patch), "image_encoder.class_embed": draw(w)}
    state["image_encoder.pos_embed.weight"] = draw((image["image_size"] // patch) ** 2 + 1, w)
    state["text_encoder.embed.weight"] = draw(text["vocab_size"], text["d_model"])
    state["text_encoder.pos_embed.weight"] = draw(text["text_size"], text["d_model"])
    for name, part in (("image_encoder", image), ("text_encoder", text)):
        w = part["d_model"]
        state |= {f"{name}.proj.weight": draw(d, w), f"{name}.proj.bias": draw(d)}
        for layer in range(part["n_layers"]):
            at = f"{name}.layers.{layer}"
            for norm in ("attn.norm", "ff.norm"):
                state |= {f"{at}.{norm}.weight": 1 + draw(w), f"{at}.{norm}.bias": draw(w)}
            for linear in ("query", "key", "value", "out"):
                state |= {f"{at}.attn.{linear}.weight": draw(w, w), f"{at}.attn.{linear}.bias": draw(w)}
            state |= {f"{at}.ff.linear_0.weight": draw(4 * w, w), f"{at}.ff.linear_0.bias": draw(4 * w)}
            state |= {f"{at}.ff.linear_1.weight": draw(w, 4 * w), f"{at}.ff.linear_1.bias": draw(w)}
    return state


def crowsonkb_forward(state, name, x, heads, layers, padding=None):
    """Compute row by row and head by head, following the definition."""
    for layer in range(layers):
        part = {k.removeprefix(f"{name}.layers.{layer}."): v for k, v in state.items()}
        lin = lambda y, n, part=part: y @ part[f"{n}.weight"].T + part[f"{n}.bias"]  # noqa: E731
        norm = lambda y, n, part=part: F.layer_norm(y, y.shape[-1:], part[f"{n}.weight"], part[f"{n}.bias"])  # noqa: E731
        y = norm(x, "attn.norm")
        mixed = torch.zeros_like(y)
        size = y.shape[-1] // heads
        for h in range(heads):
            q, k, v = (lin(y, f"attn.{n}")[..., h * size : (h + 1) * size] for n in ("query", "key", "value"))
            logits = torch.einsum("nts,nTs->ntT", q, k) / size**0.5
            if padding is not None:
                logits = torch.where(padding[:, :, None], logits, torch.tensor(-1e30))
            mixed[..., h * size : (h + 1) * size] = logits.softmax(-1) @ v
        x = x + lin(mixed, "attn.out")
        y = lin(norm(x, "ff.norm"), "ff.linear_0")
        y = y * (1 + torch.tanh((2 / math.pi) ** 0.5 * (y + 0.044715 * y**3))) / 2
        x = x + lin(y, "ff.linear_1")
    return F.normalize(x[:, 0] @ state[f"{name}.proj.weight"].T + state[f"{name}.proj.bias"], dim=1)


@torch.inference_mode()
def test_the_cloob_of_laion_embeds_as_its_definition_says(tmp_path):
    state = crowsonkb_state(PUBLISHED)
    file = tmp_path / "cloob_laion_400m_vit_b_16_16_epochs.pt"
    torch.save(state, file)
    file.with_suffix(".json").write_text(json.dumps(PUBLISHED))
    found, towers = opened(file, tmp_path)
    images, tokens = torch.randn(2, 3, 32, 32), found.tokenizer.encode(TEXTS, 12)
    patches = F.conv2d(images, state["image_encoder.embed.weight"], stride=8).flatten(2).transpose(1, 2)
    x = (
        torch.cat((state["image_encoder.class_embed"].expand(2, 1, -1), patches), 1)
        + state["image_encoder.pos_embed.weight"]
    )
    expected = crowsonkb_forward(state, "image_encoder", x, heads=2, layers=2)
    torch.testing.assert_close(towers.encode_image(images), expected, rtol=1e-4, atol=1e-5)
    end = tokens == 49_407
    padding = torch.cumsum(end, dim=-1) == (0 | end)
    x = state["text_encoder.embed.weight"][tokens] + state["text_encoder.pos_embed.weight"]
    expected = crowsonkb_forward(state, "text_encoder", x, heads=4, layers=2, padding=padding)
    torch.testing.assert_close(towers.encode_text(tokens), expected, rtol=1e-4, atol=1e-5)
    assert (found.learned.kind, found.learned.inv_tau, found.learned.beta) == ("cloob", 20.0, 12.0)


# -- open_clip ------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def test_a_hub_folder_embeds_as_open_clip_does(clip, hub_folder, tmp_path):
    found, towers = opened(f"local-dir:{hub_folder}", tmp_path)
    pixels = torch.rand(2, 3, 32, 32)
    mean, deviation = (
        torch.tensor(v)[:, None, None]
        for v in ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
    )
    handed_out = (pixels - mean) / deviation  # as the data room normalizes all images
    expected = clip.encode_image((pixels - 0.5) / 0.25, normalize=True)
    torch.testing.assert_close(towers.encode_image(handed_out), expected, rtol=1e-4, atol=1e-5)
    tokens = found.tokenizer.encode(TEXTS, 12)
    torch.testing.assert_close(towers.encode_text(tokens), clip.encode_text(tokens, normalize=True))
    assert found.learned.kind == "clip"
    assert found.learned.inv_tau == pytest.approx(37)


def test_positions_fit_images_of_another_size(hub_folder, tmp_path):
    found, towers = opened(f"local-dir:{hub_folder}", tmp_path, image_size=64)
    assert found.blueprint.image_size == 64
    assert len(towers.visual.positional_embedding) == 65
    assert towers.encode_image(torch.randn(1, 3, 64, 64)).shape == (1, 16)


@torch.inference_mode()
def test_an_image_size_of_the_models_own_changes_nothing(clip, hub_folder, tmp_path):
    _, towers = opened(f"local-dir:{hub_folder}", tmp_path, image_size=32)
    assert towers.visual.positional_embedding.equal(clip.visual.positional_embedding)


def test_weights_of_another_architecture_are_refused(hub_folder, tmp_path):
    choice = config.OpenClip(name="ViT-S-32-alt", pretrained=str(hub_folder / "open_clip_model.safetensors"))
    # Far larger towers are not even built.
    with pytest.raises(PretrainedError, match="they do not belong together"):
        find(choice, cache=tmp_path, progress=lambda share, note: None)


def test_weights_of_no_known_layout_are_named():
    with pytest.raises(PretrainedError, match=r"mine\.pt has an unknown layout: its tensors begin with fc"):
        recognize({"fc.weight": torch.zeros(2)}, None, source="mine.pt")
