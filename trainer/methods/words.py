"""Words of captions: predicted from the image, or from neighboring words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from trainer import config
from trainer.analysis.huffman import huffman_paths
from trainer.data.augment import uniform
from trainer.data.order import word_batches
from trainer.device import sent
from trainer.errors import UserError
from trainer.losses import (
    multiclass_logistic,
    one_vs_all_logistic,
    pairwise_ranking,
    skip_gram,
    skip_gram_softmax,
    skip_gram_tree,
)
from trainer.methods.batch import Batch
from trainer.methods.method import Material, Method, generator_of, needed
from trainer.models import TwoTowers

_WORD: Final = re.compile(r"\w+")
_RANKED: Final = 0x9A12
"""Purpose of the numbers by which ranked words are drawn."""


class BagOfWords(Method):
    """Scores every word of the vocabulary for an image by a linear layer on its embedding.

    Attributes:
        bags: Of each pair, the numbers of its words in the vocabulary.
        loss: Of logits against the words of captions.
    """

    loss: ClassVar[Callable[..., Tensor]]

    def __init__(self, choice: config.BagOfWords, material: Material | None) -> None:
        super().__init__()
        material = needed(material)
        captions = [_WORD.findall(caption.lower()) for caption in material.pairs.captions]
        self.words = vocabulary_of(captions, choice.vocabulary, drop_frequent=choice.drop_frequent)
        if len(self.words) < 2:
            raise UserError(
                f"Of the words of {material.pairs.name} fewer than two are left once the {choice.drop_frequent} most "
                "frequent are gone. Leave out fewer."
            )
        self.scores = nn.Linear(material.sizes.embed_dim, len(self.words))
        indices = {word: number for number, word in enumerate(self.words)}
        self.bags = [[indices[word] for word in set(caption) if word in indices] for caption in captions]
        self._by_word = choice.class_uniform

    def order(self, n: int, batch_size: int, seed: int, epoch: int) -> Sequence[Int[np.ndarray, " batch"]]:
        """Return batches drawn by word if configured, so that rare words count as much as frequent ones."""
        if not self._by_word:
            return super().order(n, batch_size, seed, epoch)
        return list(word_batches(self.bags, batch_size, seed, epoch))

    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Float[Tensor, "n k"]]:
        """Return a logit for every word."""
        return (self.scores(towers.features(batch.images)).float(),)

    def compare(self, embedded: tuple[Float[Tensor, "n k"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of the logits against the words of the captions."""
        (logits,) = embedded
        bags = torch.zeros(logits.shape)
        for row, pair in zip(bags, batch.rows.tolist(), strict=True):
            row[self.bags[pair]] = 1
        return type(self).loss(logits, sent(bags, logits.device))


class OneVsAllWords(BagOfWords):
    """Decides for each word whether the caption has it."""

    loss = staticmethod(one_vs_all_logistic)


class MulticlassWords(BagOfWords):
    """Spreads one choice over the words of the caption."""

    loss = staticmethod(multiclass_logistic)


class RankedWords(BagOfWords):
    """Ranks one word of the caption above one that it lacks, both drawn again in every update."""

    def __init__(self, choice: config.PairwiseRanking, material: Material | None) -> None:
        super().__init__(choice, material)
        self._margin, self._seed = choice.margin, needed(material).run.seed

    def compare(self, embedded: tuple[Float[Tensor, "n k"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of the drawn words' logits; the draw of a pair depends on (seed, step, its index) only."""
        (logits,) = embedded
        rows = batch.rows.cpu().numpy()
        drawn = uniform(rows, seed=self._seed, epoch=batch.step, purpose=(_RANKED,), count=2)
        pairs = [self.drawn_words(int(row), *shares) for row, shares in zip(rows, drawn.T, strict=True)]
        right, wrong = sent(torch.tensor(pairs, dtype=torch.long).view(-1, 2).T, logits.device)
        positive, negative = (logits.gather(1, index[:, None])[:, 0] for index in (right, wrong))
        counted = [bool(self.bags[row]) and len(self.bags[row]) < logits.shape[1] for row in rows.tolist()]
        return pairwise_ranking(positive, negative, sent(torch.tensor(counted), logits.device), margin=self._margin)

    def drawn_words(self, row: int, right_share: float, wrong_share: float) -> tuple[int, int]:
        """Return a word of a caption and one that it lacks, each uniform; two zeros where there is none."""
        caption = sorted(self.bags[row])
        rest = len(self.words) - len(caption)
        if not caption or not rest:
            return 0, 0
        wrong = int(wrong_share * rest)
        for word in caption:  # the index among the others, moved past each word of the caption
            wrong += word <= wrong
        return caption[int(right_share * len(caption))], wrong


def vocabulary_of(captions: Sequence[Sequence[str]], size: int, *, drop_frequent: int) -> list[str]:
    """Return the `size` words that occur in most captions, after skipping the `drop_frequent` most frequent."""
    counts = Counter(word for caption in captions for word in set(caption))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return ranked[drop_frequent : drop_frequent + size]


class Word2VecTokens(Method):
    """Skip-gram: input vectors are the text tower's, output vectors are the method's own."""

    reads_images: ClassVar[bool] = False
    reads_texts: ClassVar[bool] = True

    def __init__(self, choice: config.Word2Vec, material: Material | None) -> None:
        super().__init__()
        material = needed(material)
        self._choice = choice
        self._seed = material.run.seed
        size = material.tokenizer.size
        self.context = nn.Embedding(size, material.sizes.embed_dim)
        nn.init.zeros_(self.context.weight)
        tokens = material.tokenizer.encode(material.pairs.captions, material.sizes.context_length)
        spoken = tokens[material.towers.text.spoken(tokens)]
        counts = torch.bincount(spoken, minlength=size).double()
        self._chances = torch.where(counts > 0, counts.pow(choice.power), 0.0)
        self._kept = kept_shares(counts, choice.subsample)
        if choice.softmax == "hierarchical":
            paths = huffman_paths(counts.numpy())
            self._paths = [torch.from_numpy(part) for part in (paths.nodes, paths.signs, paths.used)]

    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Float[Tensor, "n d"], ...]:
        """Return input vectors of centers, output vectors of contexts and negatives (flat), and a mask to ignore.

        Full softmax: logits of all words and the contexts; hierarchical: scores on the path, signs and what is used.
        """
        where = self.context.weight.device
        centers, contexts, drawn = self.examples(towers, batch)
        center = towers.text.vectors(sent(centers, where))
        if self._choice.softmax == "full":
            return center @ self.context.weight.T, sent(contexts, where)
        if self._choice.softmax == "hierarchical":
            nodes, signs, used = (sent(part, where) for part in self.path_of(contexts))
            return torch.einsum("nd,npd->np", center, self.context(nodes)), signs.to(center.dtype), used
        skipped = drawn == contexts[:, None]
        return center, self.context(sent(contexts, where)), self.context(sent(drawn, where)), sent(skipped, where)

    @property
    def softmax(self) -> str:
        """What a word is compared with."""
        return self._choice.softmax

    def examples(
        self, towers: TwoTowers, batch: Batch
    ) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"], Int[Tensor, "n k"]]:
        """Return the tokens of centers, contexts and drawn negatives, on the CPU; no negatives but of that softmax.

        They are drawn for the whole batch, of which a part takes those of its captions.
        """
        generator = generator_of(self._seed, batch.step, torch.device("cpu"))
        tokens = batch.all.host_tokens
        if tokens is None:
            assert batch.all.tokens is not None
            tokens = batch.all.tokens.cpu()
        spoken = towers.text.spoken(tokens)
        if self._choice.subsample:
            drawn = torch.rand(tokens.shape, generator=generator, dtype=torch.float64)
            tokens, spoken = closed_up(tokens, spoken & (drawn < self._kept[tokens]))
        centers, contexts, captions = beside(tokens, spoken, self._choice.window, generator)
        width = self._choice.negatives if self._choice.softmax == "negatives" else 0
        count = len(centers) * width
        negatives = torch.zeros(0, dtype=torch.long)
        if width:
            negatives = torch.multinomial(self._chances, max(1, count), True, generator=generator)[:count]
        negatives = negatives.view(len(centers), width)
        if batch.whole is not None:
            local = (captions >= batch.start) & (captions < batch.start + len(batch))
            centers, contexts, negatives = centers[local], contexts[local], negatives[local]
        return centers, contexts, negatives

    def path_of(
        self, contexts: Int[Tensor, " n"]
    ) -> tuple[Int[Tensor, "n p"], Float[Tensor, "n p"], Bool[Tensor, "n p"]]:
        """Return the nodes, signs and used places of each word's path; of the hierarchical softmax alone."""
        nodes, signs, used = (part[contexts] for part in self._paths)
        return nodes, signs, used

    def compare(self, embedded: tuple[Tensor, ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of every center with a context: against the drawn words, all words, or on its path."""
        if not len(embedded[0]):
            return embedded[0].sum() * 0  # captions of one word have no context
        if self._choice.softmax == "full":
            return skip_gram_softmax(*embedded)
        if self._choice.softmax == "hierarchical":
            return skip_gram_tree(*embedded)
        center, context, negatives, skipped = embedded
        return skip_gram(center, context, negatives, skipped=skipped)


def kept_shares(counts: Float[Tensor, " k"], threshold: float) -> Float[Tensor, " k"]:
    """Return the probability of keeping each token: `sqrt(t/f) + t/f`, at most 1, with f the token's share.

    As word2vec's code has it; equation 5 of Mikolov et al. 2013, https://arxiv.org/abs/1310.4546, lacks the second
    term. With a threshold of 0 everything is kept.
    """
    if not threshold:
        return torch.ones_like(counts)
    rarity = threshold * counts.sum() / counts.clamp(min=1)
    return (rarity.sqrt() + rarity).clamp(max=1)


def closed_up(
    tokens: Int[Tensor, "n length"], remaining: Bool[Tensor, "n length"]
) -> tuple[Int[Tensor, "n length"], Bool[Tensor, "n length"]]:
    """Return every row with kept tokens moved to the front in order, so that they become neighbors."""
    order = (~remaining).to(torch.int8).argsort(dim=1, stable=True)
    return tokens.gather(1, order), remaining.gather(1, order)


def beside(
    tokens: Int[Tensor, "n length"], spoken: Bool[Tensor, "n length"], window: int, generator: torch.Generator
) -> tuple[Int[Tensor, " m"], Int[Tensor, " m"], Int[Tensor, " m"]]:
    """Return every token, its neighbors up to a random distance, and the row of both.

    The distance is 1 to `window`, as in word2vec.
    """
    reach = torch.randint(1, window + 1, tokens.shape, generator=generator)
    row = torch.arange(len(tokens))[:, None].expand_as(tokens)
    centers, contexts, rows = [], [], []
    for distance in range(1, min(window, tokens.shape[1] - 1) + 1):
        left, right = slice(None, -distance), slice(distance, None)
        both = spoken[:, left] & spoken[:, right]
        for center, context in ((left, right), (right, left)):
            taken = both & (reach[:, center] >= distance)
            centers.append(tokens[:, center][taken])
            contexts.append(tokens[:, context][taken])
            rows.append(row[:, center][taken])
    return torch.cat(centers), torch.cat(contexts), torch.cat(rows)
