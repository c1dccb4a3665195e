"""Scenes, the built-in data set: two colored shapes in a spatial relation on a textured ground.

Drawn from a seed, so it needs no download; written once, as ordinary image files, so a person can open the folder.
"""

from trainer.data.scenes.plan import SPLITS, Scene, Thing, plan_scenes, unseen_things
from trainer.data.scenes.words import COLORS, GROUNDS, RELATIONS, SHAPES
from trainer.data.scenes.writing import folder_of, is_drawn, pictures, planned_sources, sources, write

__all__ = [
    "COLORS",
    "GROUNDS",
    "RELATIONS",
    "SHAPES",
    "SPLITS",
    "Scene",
    "Thing",
    "folder_of",
    "is_drawn",
    "pictures",
    "plan_scenes",
    "planned_sources",
    "sources",
    "unseen_things",
    "write",
]
