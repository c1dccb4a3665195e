"""Objectives of the words of captions: predicted from the image, or from each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from trainer.config.fields import ConfigError, option
from trainer.config.objectives.base import ObjectiveBase, Towers, nearest_divisor

if TYPE_CHECKING:
    from trainer.config.optimizer import Optimizer


@dataclass(frozen=True, kw_only=True)
class BagOfWords(ObjectiveBase):
    """The base class of objectives that predict words from images."""

    family: ClassVar[str] = "Words of the captions"
    towers: ClassVar[Towers] = "image"
    predicts_texts: ClassVar[bool] = True

    vocabulary: int = option(
        1_000, "Words", "Most frequent words of the captions that are predicted.", low=2, high=100_000
    )
    drop_frequent: int = option(
        3,
        "Words left out",
        "The very most frequent words, which say nothing of an image; 3 suit Scenes, 10 the paper's web captions.",
        low=0,
        high=10_000,
    )
    class_uniform: bool = option(
        True,
        "Draw by word",
        "Batches are drawn by word: every word is equally likely, then every image with it. Rare words are seen as "
        "often as frequent ones, as in the paper. Otherwise every image is seen once in an epoch.",
    )


@dataclass(frozen=True, kw_only=True)
class OneVsAll(BagOfWords):
    """One-against-all logistic loss on the words of a caption, with balanced classes.

    Joulin et al., Learning Visual Features from Large Weakly Supervised Data, 2015,
    https://arxiv.org/abs/1511.02251
    """

    kind: ClassVar[str] = "one_vs_all"
    label: ClassVar[str] = "Bag of words, one-vs-all"
    paper: ClassVar[str] = "https://arxiv.org/abs/1511.02251"


@dataclass(frozen=True, kw_only=True)
class Multiclass(BagOfWords):
    """Multi-class logistic loss with its target spread over the words of a caption.

    Joulin et al., Learning Visual Features from Large Weakly Supervised Data, 2015,
    https://arxiv.org/abs/1511.02251
    """

    kind: ClassVar[str] = "multiclass"
    label: ClassVar[str] = "Bag of words, multi-class"
    paper: ClassVar[str] = "https://arxiv.org/abs/1511.02251"


@dataclass(frozen=True, kw_only=True)
class PairwiseRanking(BagOfWords):
    """Pairwise ranking: a word of the caption scores a margin above a word that the caption lacks.

    Weston, Bengio and Usunier, WSABIE, 2011, https://www.ijcai.org/Proceedings/11/Papers/460.pdf; considered by Joulin
    et al., Learning Visual Features from Large Weakly Supervised Data, 2015, https://arxiv.org/abs/1511.02251
    """

    kind: ClassVar[str] = "pairwise_ranking"
    label: ClassVar[str] = "Bag of words, ranking"
    paper: ClassVar[str] = "https://arxiv.org/abs/1511.02251"

    margin: float = option(1.0, "Margin", "By how much the word of the caption must lead.", low=0.01, high=100.0)


@dataclass(frozen=True, kw_only=True)
class CaptionPrediction(ObjectiveBase):
    """Caption prediction: a transformer says the caption word by word from the image's embedding.

    The baseline of Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021,
    https://arxiv.org/abs/2103.00020, figure 2; as VirTex, https://arxiv.org/abs/2006.06666, but forward only and from
    one vector an image.
    """

    kind: ClassVar[str] = "caption_prediction"
    label: ClassVar[str] = "Caption prediction"
    paper: ClassVar[str] = "https://arxiv.org/abs/2103.00020"
    family: ClassVar[str] = "Words of the captions"
    towers: ClassVar[Towers] = "image"
    predicts_texts: ClassVar[bool] = True

    decoder_width: int = option(128, "Decoder width", "Channels of a token in the decoder.", low=16, high=2048)
    decoder_layers: int = option(2, "Decoder layers", "Transformer blocks of the decoder.", low=1, high=24)
    decoder_heads: int = option(
        4, "Decoder heads", "Attention heads; divides the decoder width.", low=1, high=32, advanced=True
    )

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that the heads share the width evenly."""
        if self.decoder_width % self.decoder_heads:
            better = nearest_divisor(self.decoder_width, self.decoder_heads)
            raise ConfigError(
                f"objective.decoder_heads {self.decoder_heads} does not divide objective.decoder_width "
                f"{self.decoder_width}: choose {better}.",
                field="objective.decoder_heads",
                better=better,
            )


@dataclass(frozen=True, kw_only=True)
class Word2Vec(ObjectiveBase):
    """Skip-gram with negative sampling on the captions; a caption is the mean of its tokens' vectors.

    Mikolov et al., Distributed Representations of Words and Phrases and their Compositionality, 2013,
    https://arxiv.org/abs/1310.4546
    """

    kind: ClassVar[str] = "word2vec"
    label: ClassVar[str] = "word2vec"
    paper: ClassVar[str] = "https://arxiv.org/abs/1310.4546"
    family: ClassVar[str] = "Words of the captions"
    towers: ClassVar[Towers] = "words"

    softmax: Literal["negatives", "full", "hierarchical"] = option(
        "negatives",
        "Softmax",
        "negatives: a few drawn words, as usual. full: all words of the vocabulary. hierarchical: decisions in a "
        "Huffman tree.",
    )
    window: int = option(
        5, "Window", "Farthest context; for each center a width up to it is drawn.", low=1, high=100, unit="tokens"
    )
    negatives: int = option(5, "Negatives", "Drawn for each center and context.", low=1, high=1000)
    power: float = option(
        0.75, "Power", "Negatives are drawn by their frequency to this power.", low=0.0, high=1.0, advanced=True
    )
    subsample: float = option(
        0.0,
        "Subsampling",
        "Tokens more frequent than this share of the text are dropped the more often the more frequent they are; 0: "
        "none. 1e-3 suits texts of many thousand different words, and would leave little of Scenes' forty.",
        low=0.0,
        high=1.0,
        advanced=True,
    )

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check that batches are not cut: pairs of words do not depend on each other."""
        if optimizer.micro_batch:
            raise ConfigError(
                f"optimizer.micro_batch {optimizer.micro_batch} cannot be used with {self.label}, whose pairs of "
                "words do not depend on each other: choose 0 and a smaller batch.",
                field="optimizer.micro_batch",
                better=0,
            )
