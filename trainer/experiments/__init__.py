"""Experiments: arms over seeds with one outcome fixed before they start, and the verdict on their runs. No torch."""
