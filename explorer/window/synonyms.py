"""Other words that commands are looked for by: those of other tools, and what a command is wanted for."""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QAction

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "newRun": ("Train", "Batch size", "Hyperparameters", "Start a run", "Fit", "Create run"),
    "watchTraining": ("open_clip logs", "Lightning", "transformers Trainer", "Companion", "Follow", "Monitor"),
    "startDemo": ("Example", "Sample", "Try it", "Tutorial", "Getting started"),
    "showSettingsAction": ("Preferences", "Options", "Configuration", "Appearance"),
    "theme-dark": ("Dark mode", "Night mode", "Appearance", "Colors"),
    "theme-light": ("Light mode", "Appearance", "Colors"),
    "theme-system": ("Appearance", "Colors"),
    "showMethod": ("Tutorial", "Documentation", "Manual", "How does this work", "Formula", "Paper"),
    "showKeysAction": ("Keys", "Shortcuts", "Cheat sheet", "Hotkeys"),
    "changeKeys": ("Keys", "Hotkeys", "Customize", "Rebind"),
    "exportFigure": ("Export", "Save figure", "SVG", "PDF", "PNG", "CSV", "Parquet", "Download"),
    "exportBundle": ("Report", "Archive", "Share", "Supplement"),
    "copyLink": ("Share", "URL"),
    "zoomIn": ("Font size", "Text size", "Larger"),
    "zoomOut": ("Font size", "Text size", "Smaller"),
    "closeWindow": ("Quit", "Exit"),
    "evaluate-action-go": ("Accuracy", "Zero-shot accuracy", "Measure", "Benchmark", "Linear probe"),
    "showCharts": ("Gallery", "All charts", "Plots", "Figures"),
    "similarity-action-matrix": ("Similarity matrix", "Confusion of captions", "Heat map"),
    "similarity-action-words": ("Word importance", "Leave one out", "Tokens"),
    "similarity-action-axes": ("Text axes", "Semantic axes", "Projection on sentences"),
    "geometry-action-concepts": ("Sparse autoencoder", "Features", "Dictionary"),
    "geometry-action-prototypes": ("Clusters", "k-means", "PCL", "SwAV"),
    "geometry-action-word-map": ("word2vec", "Vocabulary", "Synonyms"),
    "hopfield-action-hopfield-batch-size": ("Number of stored patterns", "Capacity"),
    "hopfield-action-hopfield-spectrum": ("Eigenvalues", "Covariance", "Whitening"),
    "hopfield-action-retrieval-share": ("Mixing", "CLOOB share"),
    "explaining-action-embedding-spectrum": ("Effective rank", "Collapse", "Eigenvalues", "PCA"),
    "explaining-action-gradient-saturation": ("Vanishing gradient", "InfoNCE saturation"),
    "explaining-action-replayed-step": ("Time machine", "One update", "Debug a step"),
    "explaining-action-generative-classes": ("PixelCNN samples", "Bayes' rule", "Class-conditional"),
    "explaining-action-attribute-probes": ("Linear probe", "Explaining away", "Features used"),
    "losslab-action-softmax-cost": ("word2vec", "Negative sampling", "Hierarchical softmax"),
    "losslab-action-sampling-variance": ("Noise contrastive estimation", "Variance of negatives"),
    "changes-action-representation-similarity": ("CKA", "RSA", "Procrustes", "SVCCA"),
    "run_comparison-action-small-multiples": ("Grid of maps", "Facets"),
    "run_comparison-action-parallel-coordinates": ("Hyperparameters", "Sweep"),
    "run_comparison-action-field-importance": ("Hyperparameters", "Sweep", "Feature importance"),
    "run_comparison-action-field-grid": ("Heat map of settings", "Interaction", "Sweep"),
    "run_comparison-action-effective-robustness": ("Distribution shift", "Out of distribution"),
    "evaluate-action-evaluation-curves": ("Reliability diagram", "Few-shot", "Corruptions"),
    "evaluate-action-evaluation-scores": ("Recall", "Retrieval"),
    "evaluate-action-groups": ("Seeds", "Error bars", "Mean and deviation"),
    "evaluate-action-data-efficiency": ("Scaling", "Learning from fewer pairs"),
    "goTo-evaluate": ("Accuracy", "Zero-shot accuracy"),
    "goToPlace-evaluate": ("Accuracy", "Zero-shot accuracy"),
    "goTo-map": ("Embedding", "Scatter", "Clusters", "Color by class"),
    "goTo-search": ("Nearest neighbors", "Retrieval"),
    "goTo-timeline": ("Checkpoints", "Snapshots", "Epochs"),
    "openModel": ("Checkpoint", "Weights", "Hugging Face"),
    "openVectors": ("Embeddings", "npy", "Parquet"),
    "queue-slots": ("Queue", "Scheduler"),
    "metric-train/inv_tau": ("Temperature", "Tau", "Logit scale"),
    "metric-val/loss": ("Overfitting", "Held-out loss"),
    "metric-val/image_to_text_R@1": ("Recall", "Retrieval"),
    "metric-val/text_to_image_R@1": ("Recall", "Retrieval"),
    "metric-val/knn_acc1": ("Nearest neighbors",),
    "map-action-show-pca": ("PCA", "Principal components"),
    "map-action-show-umap": ("UMAP", "Projection"),
    "map-action-color-by": ("Color", "Legend", "Classes"),
}
"""Object name of an action -> its other names."""


def synonyms_of(action: QAction) -> tuple[str, ...]:
    """Return the other names of a command, and what its tool tip says of it: the question of a chart."""
    tip = action.toolTip()
    return (*SYNONYMS.get(action.objectName(), ()), *((tip,) if tip != action.text().replace("&", "") else ()))
