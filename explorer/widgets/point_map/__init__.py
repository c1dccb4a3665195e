"""The map's point layer; views use `PointMap` only."""

from explorer.widgets.point_map.point_map import PointMap

__all__ = ["PointMap"]
