"""The embedding map's one point layer: `PointMap` is all that views use."""

from explorer.widgets.point_map.point_map import PointMap

__all__ = ["PointMap"]
