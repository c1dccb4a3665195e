"""Draw the panels of `trainer.charts` with Qt and pyqtgraph."""
