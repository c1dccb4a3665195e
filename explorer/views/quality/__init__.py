"""The Data quality view: suspected mispairs, near-duplicates, leaks and outliers, and what was decided about them."""

from explorer.views.quality.view import QualityView

__all__ = ["QualityView"]
