"""Parts of methods: moving averages, clusters, class batches, words, views, sentences."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from tests.tolerances import rounding
from trainer import config, losses, models
from trainer.analysis.neighbors import accuracy
from trainer.analysis.tiled_neighbors import nearest
from trainer.data import Pairs
from trainer.data.augment import DEVIATION, MEAN, normalized, placed, uniform
from trainer.data.caption_tokens import CaptionTokens, sentences
from trainer.data.order import class_batches, word_batches
from trainer.data.tokenizer import train_tokenizer
from trainer.data.views import ViewStrength, augmented_view
from trainer.errors import UserError
from trainer.methods import Batch, Material, build
from trainer.methods.clusters import k_means
from trainer.methods.labeled import classes_of
from trainer.methods.two_views import move
from trainer.methods.words import beside, closed_up, kept_shares, vocabulary_of

CAPTIONS = ["a red star, on sand", "a blue ring. It is night", "a red ring", "a green moon"] * 4
MODEL = config.TinyTowers(image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, embed_dim=8)


def material(objective: config.Objective, **fields: object) -> Material:
    images = np.random.default_rng(0).integers(0, 256, (16, 32, 32, 3), dtype=np.uint8)
    labels = ["star", "ring", "ring", "moon"] * 4
    pairs = Pairs("toy", "train", images, CAPTIONS, labels, CAPTIONS, {}, "f")
    run = dataclasses.replace(config.Run(), objective=objective, model=MODEL)
    tokenizer = train_tokenizer(CAPTIONS, 300)
    torch.manual_seed(0)
    towers = models.build(MODEL, vocabulary=tokenizer.size, towers=objective.towers)
    return dataclasses.replace(Material(run, pairs, tokenizer, towers), **fields)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nt_xent", lambda a, b: losses.nt_xent(a, b, 4.0)),
        ("nt_logistic", lambda a, b: losses.nt_logistic(a, b, 4.0)),
        ("margin_triplet", lambda a, b: losses.margin_triplet(a, b, 0.3)),
    ],
)
def test_simclr_takes_the_loss_that_was_chosen(name, expected):
    method = build(choice := config.SimClr(loss=name, inv_tau=4.0, margin=0.3), material(choice))
    a, b = (nn.functional.normalize(torch.randn(5, 8), dim=1) for _ in range(2))
    assert torch.equal(method.compare((a, b), Batch(None, None)), expected(a, b))
    assert method.inv_tau == (None if name == "margin_triplet" else 4.0)


@pytest.mark.parametrize(("kind", "weights"), [("none", 0), ("linear", 2), ("mlp", 4)])
def test_simclr_projects_as_deep_as_was_chosen(kind, weights):
    made = material(choice := config.SimClr(projector=kind, projection_dim=7))
    method = build(choice, made)
    assert len([*method.projector.parameters()]) == weights
    images = torch.randn(3, 3, made.run.model.image_size, made.run.model.image_size)
    first, _other = method.embed(made.towers, Batch(images, None, other_view=images.flip(0)))
    assert first.shape == (3, made.sizes.embed_dim if kind == "none" else 7)
    assert first.detach().norm(dim=1) == pytest.approx(torch.ones(3), abs=1e-5)
    if kind == "none":
        assert torch.equal(first, nn.functional.normalize(made.towers.features(images).float(), dim=1))


def test_byols_momentum_rises_to_one():
    made = material(choice := config.Byol(momentum=0.9))
    method = build(choice, made)
    assert not any(p.requires_grad for p in method.slow_tower.parameters())
    with torch.no_grad():
        for parameter in made.towers.visual.parameters():
            parameter.add_(1)
    before = next(method.slow_tower.parameters()).clone()
    method.follow(made.towers, 0.0)
    assert (next(method.slow_tower.parameters()) - before) == pytest.approx(torch.full_like(before, 0.1), abs=1e-6)
    before = next(method.slow_tower.parameters()).clone()
    method.follow(made.towers, 1.0)
    assert torch.equal(next(method.slow_tower.parameters()), before)


def test_moving_a_copy_leaves_the_other_alone():
    slow, fast = nn.Linear(2, 2), nn.Linear(2, 2)
    was = fast.weight.clone()
    mean = (0.25 * slow.weight + 0.75 * fast.weight).detach()
    move(slow, fast, 0.25)
    assert torch.allclose(slow.weight, mean)
    assert torch.equal(fast.weight, was)


def test_pcls_queue_holds_the_newest_keys():
    made = material(choice := config.Pcl(queue=6, clusters=2, clusterings=2, projection_dim=4))
    method = build(choice, made)
    keys = [nn.functional.normalize(torch.randn(3, 4), dim=1) for _ in range(3)]
    for key in keys:
        method.compare((key, key), Batch(None, None, torch.arange(3)))
        method.follow(made.towers, 0.0)
    assert torch.equal(method.queue, torch.cat([keys[2], keys[1]]))


def test_pcl_clusters_after_its_warm_up():
    method = build(choice := config.Pcl(queue=4, clusters=2, clusterings=3, warmup_epochs=2), material(choice))
    method.begin_epoch(1)
    assert not method.clustered
    method.begin_epoch(2)
    assert method.clustered
    assert [len(getattr(method, f"prototypes_{level}")) for level in range(3)] == [2, 4, 8]
    assert method.concentrations_1.mean().item() == pytest.approx(1 / 5, abs=1e-6)
    first = method.prototypes_2.clone()
    method.begin_epoch(2)
    assert torch.equal(method.prototypes_2, first)


def test_mocos_queue_and_slow_copy_are_pcls():
    made = material(choice := config.Moco(queue=6, projection_dim=4, inv_tau=3.0))
    method = build(choice, made)
    keys = [nn.functional.normalize(torch.randn(3, 4), dim=1) for _ in range(3)]
    for key in keys:
        queue = method.queue.clone()
        loss = method.compare((key, key), Batch(None, None, torch.arange(3)))
        assert torch.equal(loss, losses.moco(key, key, queue, 3.0))
        method.follow(made.towers, 0.0)
    assert torch.equal(method.queue, torch.cat([keys[2], keys[1]]))
    assert not any(p.requires_grad for p in method.slow_tower.parameters())


def test_swavs_prototypes_rest_first_and_keep_unit_length():
    method = build(choice := config.Swav(prototypes=5, projection_dim=4, frozen_steps=2), material(choice))
    rows = tuple(nn.functional.normalize(torch.randn(6, 4), dim=1).requires_grad_() for _ in range(2))
    method.compare(rows, Batch(None, None, step=1)).backward()
    assert method.prototypes.grad is None
    loss = method.compare(rows, Batch(None, None, step=2))
    assert torch.equal(loss, losses.swav(*rows, method.prototypes, 10.0))
    loss.backward()
    assert method.prototypes.grad.norm() > 0
    with torch.no_grad():
        method.prototypes.mul_(3)
    method.after_step()
    assert method.prototypes.detach().norm(dim=1) == pytest.approx(torch.ones(5), abs=1e-6)


def test_dcl_weighs_when_asked():
    rows = tuple(nn.functional.normalize(torch.randn(6, 4), dim=1) for _ in range(2))
    for weighted, sigma in ((False, None), (True, 0.5)):
        method = build(choice := config.Dcl(weighted=weighted), material(choice))
        assert torch.equal(method.compare(rows, Batch(None, None)), losses.dcl(*rows, 10.0, sigma=sigma))


@pytest.mark.slow
def test_pcls_keys_pass_batch_norms_in_shuffled_groups():
    """Every key depends on its group alone, groups change with the step, and a tower without norms has one."""
    made = material(choice := config.Pcl(queue=8, clusters=2, clusterings=2, key_groups=4))
    method = build(choice, made)
    seen: list[torch.Tensor] = []
    method.slow_tower.register_forward_hook(lambda module, views, out: seen.append(views[0][:, 0, 0, 0]))
    views = torch.randn(16, 3, 32, 32)
    views[:, 0, 0, 0] = torch.arange(16.0)
    _, key = method.embed(made.towers, batch := Batch(views, None, torch.arange(16), views, step=3))
    assert [len(group) for group in seen] == [4, 4, 4, 4]
    assert sorted(torch.cat(seen).tolist()) == list(range(16))
    assert torch.cat(seen).tolist() != list(range(16))
    group = seen[2].long()
    with torch.no_grad():
        alone = nn.functional.normalize(method.slow_projector(method.slow_tower(views[group])), dim=1)
    assert torch.allclose(key[group], alone, atol=1e-5)
    first = torch.cat(seen[:4])
    seen.clear()
    method.embed(made.towers, batch)
    assert torch.equal(torch.cat(seen), first)
    seen.clear()
    method.embed(made.towers, dataclasses.replace(batch, step=4))
    assert not torch.equal(torch.cat(seen), first)
    plain = dataclasses.replace(MODEL, image_tower="vit", image_width=16, image_layers=1)
    run = dataclasses.replace(made.run, model=plain)
    towers = models.build(plain, vocabulary=made.tokenizer.size, towers="image")
    method = build(choice, dataclasses.replace(made, run=run, towers=towers))
    seen.clear()
    method.slow_tower.register_forward_hook(lambda module, views, out: seen.append(views[0]))
    method.embed(towers, batch)
    assert len(seen) == 1


def test_clusters_that_lie_apart_are_found():
    generator = torch.Generator().manual_seed(0)
    middles = 10 * torch.eye(4)
    points = (middles[:, None] + 0.1 * torch.randn(4, 25, 4, generator=generator)).reshape(100, 4)
    best = min(
        (k_means(points, 4, generator=torch.Generator().manual_seed(seed)) for seed in range(5)),
        key=lambda found: found[2].sum(),
    )
    centers, nearest_one, distance = best
    assert distance.max() < 1
    assert all(len(set(nearest_one[start : start + 25].tolist())) == 1 for start in range(0, 100, 25))
    assert torch.allclose(centers[nearest_one[0]], points[:25].mean(dim=0), atol=1e-5)


def test_no_cluster_stays_empty_while_points_differ():
    points = torch.cat([torch.zeros(30, 2), torch.arange(10.0).repeat(2, 1).T])
    for seed in range(8):
        _, nearest_one, _ = k_means(points, 5, generator=torch.Generator().manual_seed(seed))
        assert len(nearest_one.unique()) >= 4


def test_batches_have_several_of_each_class_and_repeat_for_a_seed():
    labels = np.array([0] * 40 + [1] * 10 + [2] * 10 + [-1] * 20)
    drawn = list(class_batches(labels, 16, 4, 3, 1))
    assert len(drawn) == 5
    for batch in drawn:
        classes, counts = np.unique(labels[batch], return_counts=True)
        assert (classes >= 0).all()
        assert len(classes) > 1
        assert (counts % 4 == 0).all()
    again = list(class_batches(labels, 16, 4, 3, 1))
    assert all((a == b).all() for a, b in zip(drawn, again, strict=True))
    other = list(class_batches(labels, 16, 4, 3, 2))
    assert any((a != b).any() for a, b in zip(drawn, other, strict=True))


def test_classes_of_one_image_do_not_count():
    pairs = material(config.Triplet()).pairs
    classes, labels = classes_of(dataclasses.replace(pairs, labels=["x", "x", "y", "y", "z", ""] + [""] * 10))
    assert classes == ["x", "y"]
    assert labels[:6].tolist() == [0, 0, 1, 1, -1, -1]
    with pytest.raises(UserError, match="fewer than two classes"):
        classes_of(dataclasses.replace(pairs, labels=["x"] * 16))


def test_the_margin_has_a_learned_boundary_for_each_class():
    method = build(choice := config.Margin(beta=0.3), material(choice))
    assert method.beta.shape == (3,)
    rows = nn.functional.normalize(torch.randn(8, 8), dim=1).requires_grad_()
    batch = Batch(None, None, torch.arange(8), step=4)
    loss = method.compare((rows,), batch)
    assert torch.equal(loss, method.compare((rows,), batch))
    loss.backward()
    assert method.beta.grad.abs().sum() > 0


def test_the_most_frequent_words_are_left_out():
    assert vocabulary_of([["a", "b"], ["a", "a", "c"], ["a", "b"]], 5, drop_frequent=1) == ["b", "c"]
    method = build(choice := config.OneVsAll(drop_frequent=1, vocabulary=4), material(choice))
    assert "a" not in method.words
    assert method.words[:2] == ["red", "ring"]
    with pytest.raises(UserError, match="Leave out fewer"):
        build(choice := config.OneVsAll(drop_frequent=100), material(choice))


def test_rare_words_are_drawn_as_often_as_frequent_ones():
    """Word 0 is in nine rows of ten, word 1 in one of a hundred, and five rows have no word."""
    bags = [[0]] * 90 + [[1]] + [[0, 2]] * 4 + [[]] * 5
    drawn = [batch for epoch in range(40) for batch in word_batches(bags, 50, 7, epoch)]
    assert all(len(batch) == 50 for batch in drawn)
    rows = np.concatenate(drawn)
    assert len(rows) == 40 * 100
    assert rows.max() < 95
    assert (rows == 90).mean() == pytest.approx(1 / 3, abs=0.03)
    assert ((rows > 90) & (rows < 95)).mean() == pytest.approx(1 / 3 + 4 / 94 / 3, abs=0.03)
    again = list(word_batches(bags, 50, 7, 3))
    assert all((a == b).all() for a, b in zip(again, drawn[6:8], strict=True))
    by_word, by_image = (
        build(choice := config.Multiclass(drop_frequent=1, class_uniform=uniform), material(choice))
        for uniform in (True, False)
    )
    assert len(np.unique(np.concatenate(by_image.order(16, 8, 0, 0)))) == 16
    many = np.concatenate([np.concatenate(by_word.order(16, 8, 0, epoch)) for epoch in range(200)])
    spoken = Counter(word for row in many for word in by_word.bags[row])
    assert max(spoken.values()) < 3 * min(spoken.values())


def test_frequent_tokens_are_dropped_and_the_gaps_close():
    counts = torch.tensor([0.0, 9000.0, 900.0, 90.0, 10.0], dtype=torch.float64)
    shares = kept_shares(counts, 1e-3)
    for count, share in zip([9000, 900, 90], shares[1:4].tolist(), strict=True):
        rarity = 1e-3 / (count / 10_000)
        assert share == pytest.approx(min(1.0, math.sqrt(rarity) + rarity), abs=1e-12)
    assert shares[4] == 1
    assert torch.equal(kept_shares(counts, 0.0), torch.ones(5, dtype=torch.float64))
    tokens = torch.tensor([[1, 5, 6, 7, 8, 9, 0], [1, 4, 3, 2, 9, 0, 0]])
    kept = torch.tensor([[False, True, False, True, True, False, False], [False] * 7])
    rows, spoken = closed_up(tokens, kept)
    assert rows[0, :3].tolist() == [5, 7, 8]
    assert spoken.tolist() == [[True] * 3 + [False] * 4, [False] * 7]


def test_word2vec_with_subsampling_sees_fewer_pairs_and_can_see_none():
    made = material(choice := config.Word2Vec(window=2))
    tokens = made.tokenizer.encode(CAPTIONS, 16)
    count = {}
    for share in (0.0, 0.05, 1e-9):
        method = build(dataclasses.replace(choice, subsample=share), made)
        count[share] = len(method.embed(made.towers, Batch(None, tokens))[0])
    assert count[0.0] > count[0.05] > count[1e-9] == 0


def test_contexts_lie_within_the_window_and_never_outside_the_text():
    tokens = torch.tensor([[1, 5, 6, 7, 9, 0]])
    spoken = torch.tensor([[False, True, True, True, False, False]])
    centers, contexts, captions = beside(tokens, spoken, 1, torch.Generator().manual_seed(0))
    assert sorted(zip(centers.tolist(), contexts.tolist(), strict=True)) == [(5, 6), (6, 5), (6, 7), (7, 6)]
    assert captions.tolist() == [0] * 4
    far = [beside(tokens, spoken, 2, torch.Generator().manual_seed(seed)) for seed in range(20)]
    found = [set(zip(a.tolist(), b.tolist(), strict=True)) for a, b, _ in far]
    assert any((5, 7) in pairs for pairs in found)
    assert any((5, 7) not in pairs for pairs in found)


def test_word2vec_skips_negatives_that_are_the_target():
    made = material(choice := config.Word2Vec(negatives=50))
    method = build(choice, made)
    tokens = made.tokenizer.encode(CAPTIONS[:4], 16)
    *_, negatives, skipped = method.embed(made.towers, Batch(None, tokens))
    assert skipped.any()
    assert not skipped.all()
    assert negatives.shape[:2] == skipped.shape
    center, context, drawn = torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 4, 3)
    mask = torch.tensor([[False, True, False, True]] * 2)
    assert losses.skip_gram(center, context, drawn, skipped=mask).item() == pytest.approx(
        losses.skip_gram(center, context, drawn[:, [0, 2]]).item(), abs=1e-6
    )
    assert math.isfinite(method.compare(method.embed(made.towers, Batch(None, tokens[:0])), Batch(None, tokens)).item())


def test_views_depend_on_seed_epoch_index_and_view_only():
    images = torch.from_numpy(material(config.SimClr()).pairs.images.copy())
    look, rows = ViewStrength(0.3, 0.5, 0.2, 0.5, flip=True), np.arange(16)
    whole = augmented_view(images, rows, look, seed=1, epoch=2, view=0)
    alone = augmented_view(images[5:6], rows[5:6], look, seed=1, epoch=2, view=0)
    assert torch.allclose(whole[5], alone[0], atol=1e-5)
    for other in (
        {"seed": 2, "epoch": 2, "view": 0},
        {"seed": 1, "epoch": 3, "view": 0},
        {"seed": 1, "epoch": 2, "view": 1},
    ):
        assert not torch.allclose(whole, augmented_view(images, rows, look, **other), atol=0.1)


def test_a_look_that_changes_nothing_gives_the_image():
    images = torch.from_numpy(material(config.SimClr()).pairs.images.copy())
    view = augmented_view(images, np.arange(16), ViewStrength(1.0, 0.0, 0.0, 0.0, flip=False), seed=0, epoch=0, view=0)
    # Crops keep the whole area, but their sides may differ by a third.
    assert view.mean() == pytest.approx(normalized(images).mean().item(), abs=0.05)
    gray = augmented_view(images, np.arange(16), ViewStrength(1.0, 0.0, 1.0, 0.0, flip=False), seed=0, epoch=0, view=0)
    pixels = gray * torch.tensor(DEVIATION)[:, None, None] + torch.tensor(MEAN)[:, None, None]
    assert (pixels[:, 0] - pixels[:, 2]).abs().max() < 1e-5


def test_one_sentence_of_a_caption_is_drawn_in_an_epoch():
    assert sentences("A red star, on sand. It is night!") == ["A red star", "on sand", "It is night"]
    assert sentences("3.5 stars") == ["3.5 stars"]
    assert sentences("...") == ["..."]
    tokenizer = train_tokenizer(CAPTIONS, 300)
    drawn = CaptionTokens(CAPTIONS, tokenizer, 16, seed=0, sample=True)
    rows = np.arange(len(CAPTIONS))
    seen = {tokenizer.decode(drawn.of(rows, epoch)[0].tolist()) for epoch in range(20)}
    assert seen == {"a red star", "on sand"}
    assert torch.equal(drawn.of(rows, 3)[4:6], drawn.of(rows[4:6], 3))
    whole = CaptionTokens(CAPTIONS, tokenizer, 16, seed=0, sample=False)
    assert torch.equal(whole.of(rows, 0), tokenizer.encode(CAPTIONS, 16))


def test_neighbors_vote_and_those_without_a_value_abstain():
    stored = np.float32([[1, 0], [0.8, 0.6], [0, 1]])
    rows, cosines = nearest(np.float32([[1, 0], [0, 1]]), stored, 2)
    assert rows.tolist() == [[0, 1], [2, 1]]
    assert accuracy(["a", "b"], ["a", "b", "b"], rows, cosines) == 1.0
    assert accuracy(["a", "a"], ["a", "b", "b"], rows, cosines) == 0.5
    assert accuracy(["a", "a"], ["", "a", "b"], rows, cosines) == 0.5
    assert accuracy(["c", ""], ["a", "b", "b"], rows, cosines) == 0.0
    assert math.isnan(accuracy(["", ""], ["a", "b", "b"], rows, cosines))


@pytest.mark.parametrize("softmax", ["full", "hierarchical"])
def test_word2vec_by_softmax_is_that_of_a_loop_and_of_parts(softmax: str):
    """Probabilities of each context by its center, a word at a time, over the pairs that were drawn."""
    made = material(choice := config.Word2Vec(window=2, softmax=softmax))
    method = build(choice, made)
    torch.nn.init.normal_(method.context.weight)
    batch = Batch(None, made.tokenizer.encode(CAPTIONS, 16), torch.arange(len(made.pairs)), None, 3)
    rows = method.embed(made.towers, batch)
    loss = method.compare(rows, batch)
    parts = [method.embed(made.towers, part) for part in batch.parts(2)]
    whole = [torch.cat(pieces) for pieces in zip(*parts, strict=True)]
    close = rounding(torch.float32, len(rows[0]), condition=4)  # of scores as large as the loss
    assert method.compare(tuple(whole), batch).item() == pytest.approx(loss.item(), rel=close)
    losses = []
    if softmax == "full":
        for logits, context in zip(rows[0].tolist(), rows[1].tolist(), strict=True):
            losses.append(math.log(sum(map(math.exp, logits))) - logits[context])
    else:
        for scores, signs, used in zip(*(part.tolist() for part in rows), strict=True):
            told = zip(scores, signs, used, strict=True)
            losses.append(sum(math.log1p(math.exp(-sign * score)) for score, sign, own in told if own))
    assert loss.item() == pytest.approx(sum(losses) / len(losses), abs=1e-5)


def sampled(picture: np.ndarray, x: float, y: float) -> np.ndarray:
    """Return the picture at a place, between pixels by straight lines, beyond its border the border."""
    height, width, _ = picture.shape
    across = min(max(((x + 1) * width - 1) / 2, 0), width - 1)
    down = min(max(((y + 1) * height - 1) / 2, 0), height - 1)
    left, top = int(across), int(down)
    right, bottom = min(left + 1, width - 1), min(top + 1, height - 1)
    a, b = across - left, down - top
    upper = (1 - a) * picture[top, left] + a * picture[top, right]
    lower = (1 - a) * picture[bottom, left] + a * picture[bottom, right]
    return (1 - b) * upper + b * lower


def test_turned_views_are_turned_moved_and_scaled_pixel_by_pixel():
    images = np.random.default_rng(3).integers(0, 256, (4, 9, 9, 3), dtype=np.uint8)
    look = ViewStrength(1.0, 0.0, 0.0, 0.0, flip=False, turn=20.0, tint=False)
    view = augmented_view(torch.from_numpy(images), np.arange(4), look, seed=5, epoch=1, view=0).numpy()
    drawn = 2 * uniform(np.arange(4), seed=5, epoch=1, purpose=(0x71E5, 0, 0x70)) - 1
    crops = placed(uniform(np.arange(4), seed=5, epoch=1, purpose=(0x71E5, 0), count=12)[:4], scale=1.0, ratio=4 / 3)
    mean, deviation = np.array(MEAN), np.array(DEVIATION)
    for k, picture in enumerate(np.float64(images) / 255):
        wide, middle, high, center = np.float64(crops[:, k])
        angle, scale = math.radians(20 * drawn[0, k]), 1 + 0.05 * drawn[3, k]
        for row in range(9):
            for column in range(9):
                x = ((2 * column + 1) / 9 - 1) * wide + middle
                y = ((2 * row + 1) / 9 - 1) * high + center
                across = scale * (x * math.cos(angle) - y * math.sin(angle)) + 0.2 * drawn[1, k]
                down = scale * (x * math.sin(angle) + y * math.cos(angle)) + 0.2 * drawn[2, k]
                expected = (sampled(picture, across, down) - mean) / deviation
                assert view[k, :, row, column] == pytest.approx(expected, abs=2e-4)


def test_jitter_without_tint_changes_brightness_and_contrast_alone():
    images = np.random.default_rng(4).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    plain, view = (
        augmented_view(torch.from_numpy(images), np.arange(6), look, seed=2, epoch=0, view=0).numpy()
        for look in (ViewStrength(1.0, color, 0.0, 0.0, flip=False, tint=False) for color in (0.0, 0.5))
    )
    drawn = uniform(np.arange(6), seed=2, epoch=0, purpose=(0x71E5, 0), count=12)
    for k, crop in enumerate(np.float64(plain)):
        picture = crop.transpose(1, 2, 0) * DEVIATION + MEAN
        bright = np.clip(picture * (1 + 0.4 * (2 * drawn[5, k] - 1)), 0, 1)
        middle = (bright * [0.299, 0.587, 0.114]).sum(axis=2).mean()
        expected = np.clip(middle + (1 + 0.4 * (2 * drawn[6, k] - 1)) * (bright - middle), 0, 1)
        assert view[k].transpose(1, 2, 0) == pytest.approx((expected - MEAN) / DEVIATION, abs=1e-4)


def test_convirt_sees_the_papers_views_if_asked():
    images = torch.from_numpy(np.random.default_rng(5).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8))
    rows = np.arange(4)
    plain = build(choice := config.ConVirt(), material(choice))
    assert plain.augmented(images, rows, epoch=0, view=0) is None
    made = material(choice := config.ConVirt(flip=True, turn=20.0, jitter=0.4, blur=0.5))
    run = dataclasses.replace(made.run, seed=7, optimizer=config.Optimizer(crop_scale=0.6))
    method = build(choice, dataclasses.replace(made, run=run))
    look = ViewStrength(0.6, 0.5, 0.0, 0.5, flip=True, turn=20.0, tint=False)
    expected = augmented_view(images, rows, look, seed=7, epoch=3, view=0)
    assert torch.equal(method.augmented(images, rows, epoch=3, view=0), expected)


def test_ranked_words_are_of_the_caption_and_of_the_others():
    method = build(choice := config.PairwiseRanking(drop_frequent=0, vocabulary=5), material(choice))
    for row, words in enumerate(method.bags):
        shares = (np.arange(200) + 0.5) / 200
        drawn = [method.drawn_words(row, share, share) for share in shares]
        if not words or len(words) == len(method.words):
            assert set(drawn) == {(0, 0)}
            continue
        right, wrong = (Counter(side) for side in zip(*drawn, strict=True))
        assert set(right) == set(words)
        assert set(wrong) == set(range(len(method.words))) - set(words)
        assert all(abs(count - 200 / len(side)) <= 1 for side in (right, wrong) for count in side.values()), "uniform"
