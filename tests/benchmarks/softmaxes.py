"""word2vec's three softmaxes: processor time of a batch's loss and gradient, by the size of the vocabulary."""

import argparse
import json
import time
from typing import Any, Final

import numpy as np

HELP = "word2vec by negative sampling, full and hierarchical softmax: time of loss and gradient by the vocabulary"

NEGATIVES: Final = 5
KINDS: Final = ("negative sampling", "full", "hierarchical")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--words", type=int, nargs="+", default=[64, 1_024, 16_384], metavar="V")
    parser.add_argument("--pairs", type=int, default=1_024, help="of a center and a context in a batch")
    parser.add_argument("--width", type=int, default=128, help="numbers of a word's vector")
    parser.add_argument("--seeds", type=int, default=5, help="batches, in turn over the kinds")


def run(args: argparse.Namespace) -> int:
    """Print a row for each size and kind: products a pair, and milliseconds of processor time over the batches."""
    import torch

    torch.set_num_threads(1)
    rows = [row for words in args.words for row in measured(words, args.pairs, args.width, args.seeds)]
    print(json.dumps(rows) if args.json else table(rows))
    return 0


def measured(words: int, pairs: int, width: int, seeds: int) -> list[dict[str, Any]]:
    """Return what each kind takes at this vocabulary; words are as frequent as 1 / rank."""
    import torch

    from trainer.analysis.huffman import huffman_paths
    from trainer.losses import skip_gram, skip_gram_softmax, skip_gram_tree

    chances = 1 / np.arange(1, words + 1)
    chances /= chances.sum()
    tree = huffman_paths(chances)
    paths = [torch.from_numpy(part) for part in (tree.nodes, tree.signs, tree.used)]
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for seed in range(seeds + 1):  # the first warms up
        rng = np.random.default_rng([seed, words])
        inner, outer = (torch.from_numpy(rng.standard_normal((words, width)).astype(np.float32)) for _ in range(2))
        seen, beside = (torch.from_numpy(rng.choice(words, pairs, p=chances)) for _ in range(2))
        drawn = torch.from_numpy(rng.choice(words, (pairs, NEGATIVES), p=chances))
        for kind in KINDS:
            tables = [one.clone().requires_grad_() for one in (inner, outer)]
            begun = time.process_time()
            center = tables[0][seen]
            if kind == "full":
                loss = skip_gram_softmax(center @ tables[1].T, beside)
            elif kind == "hierarchical":
                nodes, signs, used = (part[beside] for part in paths)
                loss = skip_gram_tree(torch.einsum("nd,npd->np", center, tables[1][nodes]), signs.float(), used)
            else:
                loss = skip_gram(center, tables[1][beside], tables[1][drawn], skipped=drawn == beside[:, None])
            loss.backward()
            if seed:
                took[kind].append(1_000 * (time.process_time() - begun))
    products = {
        "negative sampling": NEGATIVES + 1.0,
        "full": float(words),
        "hierarchical": float(chances @ tree.lengths),
    }
    return [
        {"words": words, "kind": kind, "products": products[kind], "milliseconds": sorted(took[kind])} for kind in KINDS
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Return Markdown: products a pair, the median and the range of the milliseconds."""
    lines = ["| words | softmax | products a pair | loss and gradient, ms (range) |", "|---:|---|---:|---:|"]
    for row in rows:
        low, middle, high = (np.quantile(row["milliseconds"], at) for at in (0, 0.5, 1))
        spread = f"{middle:.1f} ({low:.1f} to {high:.1f})"
        lines.append(f"| {row['words']:,} | {row['kind']} | {row['products']:,.1f} | {spread} |")
    return "\n".join(lines)
