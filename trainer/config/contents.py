"""Everything that `trainer.config` offers by its own name."""

from trainer.config.checking import check, check_ranks, faults, problems
from trainer.config.data import (
    TORCHVISION_FILES,
    ClassFolder,
    Data,
    Folder,
    HubDataset,
    Named,
    Scenes,
    Shards,
    Table,
    absolute,
    data_name,
    dataset_name,
    missing_path,
    unused_fields,
)
from trainer.config.elsewhere import (
    ELSEWHERE,
    ImagesElsewhere,
    NoData,
    NoModel,
    PairsElsewhere,
    TextsElsewhere,
    Vectors,
    run_elsewhere,
)
from trainer.config.fields import ConfigError, check_fields, field_type
from trainer.config.fine_tuning import (
    FINE_TUNING,
    LORA,
    by_weights,
    continues_training,
    fine_tuning_of,
    is_pretrained,
    mix_of,
    origins,
    weights_words,
)
from trainer.config.model import Model, OpenClip, TinyTowers
from trainer.config.names import meant
from trainer.config.objectives import *  # noqa: F403  (the objectives, by the names of their __all__)
from trainer.config.objectives import __all__ as _objectives
from trainer.config.optimizer import Optimizer
from trainer.config.reading import difference, flatten, from_dict, from_toml, read, replace, to_toml
from trainer.config.run import SECTIONS, Run, Watching, choices
from trainer.config.run_name import MOST_LETTERS, name_fault, repaired_name
from trainer.config.tuning import OF_START, Tuning

__all__ = [
    "TORCHVISION_FILES",
    "ELSEWHERE",
    "FINE_TUNING",
    "LORA",
    "MOST_LETTERS",
    "OF_START",
    "SECTIONS",
    "ClassFolder",
    "ConfigError",
    "Data",
    "Folder",
    "HubDataset",
    "ImagesElsewhere",
    "Model",
    "Named",
    "NoData",
    "NoModel",
    "OpenClip",
    "Optimizer",
    "PairsElsewhere",
    "Run",
    "Scenes",
    "Shards",
    "Table",
    "TextsElsewhere",
    "TinyTowers",
    "Tuning",
    "Vectors",
    "Watching",
    "absolute",
    "by_weights",
    "missing_path",
    "check",
    "check_fields",
    "check_ranks",
    "choices",
    "data_name",
    "dataset_name",
    "difference",
    "faults",
    "field_type",
    "flatten",
    "from_dict",
    "from_toml",
    "fine_tuning_of",
    "continues_training",
    "is_pretrained",
    "mix_of",
    "origins",
    "meant",
    "name_fault",
    "problems",
    "read",
    "repaired_name",
    "replace",
    "run_elsewhere",
    "to_toml",
    "unused_fields",
    "weights_words",
    *_objectives,
]
