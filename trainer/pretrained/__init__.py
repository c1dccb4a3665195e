"""Published models: located, validated, and loaded into this project's towers.

`find` says what a configuration's model is and reads its weights; `read_architecture` knows a run's ever after.
Files are read without running code: tensors only, and only as many bytes as the file has.
"""

from trainer.pretrained.errors import PretrainedError
from trainer.pretrained.register_run import run_of
from trainer.pretrained.resolved_model import BLUEPRINT, ResolvedModel, find, read_architecture, start_from
from trainer.pretrained.specification import model_of
from trainer.pretrained.tokenizers import tokenizer_by_name

__all__ = [
    "BLUEPRINT",
    "PretrainedError",
    "ResolvedModel",
    "find",
    "model_of",
    "read_architecture",
    "run_of",
    "start_from",
    "tokenizer_by_name",
]
