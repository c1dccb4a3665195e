"""`trainer bench gpu` on the stand-in where no extra can be imported: `python torch_alone.py LIBRARY DOCUMENT`.

A process of its own, because the library and what is absent come before torch and the trainer.
"""

import ctypes
import sys
from dataclasses import replace

ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
EXTRAS = ("open_clip", "tokenizers", "torchvision", "umap", "timm", "transformers", "huggingface_hub")
sys.modules.update(dict.fromkeys(EXTRAS))  # type: ignore[arg-type]  # their import fails

import torch

from tests.trainer.device import stand_in
from trainer.__main__ import main
from trainer.training import torch_alone

filled_in = torch_alone.fill_in


def small() -> str:
    """Fill in where the command does, and make the large product a small one."""
    sentence = filled_in()
    from trainer.training import gpu_bench

    gpu_bench.ON_GPU = replace(gpu_bench.ON_GPU, dimension=16, repeats=1, product=64)  # type: ignore[misc]
    return sentence


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch_alone.fill_in = small
    words = ["bench", "gpu", "--device", "cuda", "--pairs", "32", "--towers", "tiny", "--batch", "8", "--steps", "2"]
    with stand_in.card(bfloat16=True, memory=1 << 24):
        sys.exit(main([*words, "--minutes", "1000", "--out", sys.argv[2]]))
