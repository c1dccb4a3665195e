"""The objectives as pure functions of tensors: one loss, one file, one test file.

Row k of every pair of arguments belongs together. Embeddings are unit rows unless a loss says otherwise;
similarities, retrievals and log-sum-exps are computed in float32 at least, outside autocast (bfloat16 costs 8 %
of the gradient).
"""

from trainer.losses.autoregressive import autoregressive
from trainer.losses.byol import byol
from trainer.losses.caption_prediction import caption_prediction
from trainer.losses.cloob import cloob
from trainer.losses.contrastive_margin import contrastive_margin
from trainer.losses.convirt import convirt
from trainer.losses.cross_entropy import cross_entropy
from trainer.losses.dcl import dcl
from trainer.losses.denoising import denoising
from trainer.losses.dhn_nce import dhn_nce
from trainer.losses.hopfield_info_nce import hopfield_info_nce
from trainer.losses.hopfield_retrieval import hopfield_retrieval
from trainer.losses.info_loob import info_loob
from trainer.losses.info_loob_pair import info_loob_pair
from trainer.losses.info_nce import info_nce, info_nce_one_way
from trainer.losses.margin import margin
from trainer.losses.margin_triplet import margin_triplet
from trainer.losses.moco import moco
from trainer.losses.multiclass_logistic import multiclass_logistic
from trainer.losses.nt_logistic import nt_logistic
from trainer.losses.nt_xent import nt_xent
from trainer.losses.one_vs_all_logistic import one_vs_all_logistic
from trainer.losses.pairwise_ranking import pairwise_ranking
from trainer.losses.proto_nce import concentration, proto_nce
from trainer.losses.siglip import siglip
from trainer.losses.simsiam import simsiam
from trainer.losses.skip_gram import skip_gram
from trainer.losses.skip_gram_softmax import skip_gram_softmax
from trainer.losses.skip_gram_tree import skip_gram_tree
from trainer.losses.swav import swav
from trainer.losses.triplet import triplet
from trainer.losses.variational_bound import variational_bound

__all__ = [
    "autoregressive",
    "byol",
    "caption_prediction",
    "cloob",
    "concentration",
    "contrastive_margin",
    "convirt",
    "cross_entropy",
    "dcl",
    "denoising",
    "dhn_nce",
    "hopfield_info_nce",
    "hopfield_retrieval",
    "info_loob",
    "info_loob_pair",
    "info_nce",
    "info_nce_one_way",
    "margin",
    "margin_triplet",
    "moco",
    "multiclass_logistic",
    "nt_logistic",
    "nt_xent",
    "one_vs_all_logistic",
    "pairwise_ranking",
    "proto_nce",
    "siglip",
    "simsiam",
    "skip_gram",
    "skip_gram_softmax",
    "skip_gram_tree",
    "swav",
    "triplet",
    "variational_bound",
]
