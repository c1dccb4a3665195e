"""Everything without a window: data, models, objectives, the training loop, analyses, figures and the store."""
