"""The help text of the Evaluate view."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
Zero-shot: a class is the mean of its prompts' unit embeddings, normalized again (Radford et al. 2021); \
the nearest class is predicted. CLOOB's Hopfield retrieval is used in training only. Mean per class weighs all classes \
equally.

A run can have several zero-shot accuracies: logged while it trained, of a snapshot in other views, and \
measured here. Each has its own split, n, classes, templates and step: they agree where these are equal, and can be \
compared only then.

Calibration: expected calibration error over 15 bins (Guo et al. 2017), at the run's own temperature, and at one \
fitted on a half of the images and measured on the other half.

Linear probe: logistic regression (L-BFGS) on image embeddings, directions scaled alike; the regularization is \
chosen on a fifth of the labeled images, then it is fitted on all of them. Few-shot: 1 to 16 labels a class, mean \
of 3 draws, the regularization chosen on up to 4 further labels a class. kNN: votes of 20 neighbors (Wu et al. \
2018). Probes read the unit embeddings, or, if asked, the features before the last layer of the image tower, as most \
papers do; the table says which.

Fine-tuning: the image tower and a linear head learn from 1 % or 10 % of the labels of each class (Chen et al. 2020, \
SimCLR), at least one of each; the linear probe on the very same labels and features is listed with it. SGD with \
Nesterov momentum, learning rate 0.05 x batch / 256, crops alone, 30 and 10 epochs. Other than in the paper the head \
begins as the probe and batch norms keep their statistics. The share is one of the whole training split.

Data efficiency: the score over the pairs seen, which are updates times the pairs of a batch, repetitions counted. The \
level is the worst of the groups' best means; how many pairs a group needed for it is read between two measurements. \
A model that predicts bags of words (Joulin et al. 2016) has no prompts: a class scores the mean of the logits of the \
words of its name, and a class none of whose words it learned is never predicted.

Robustness: Gaussian noise, contrast and JPEG as ImageNet-C (Hendrycks and Dietterich 2019), blur scaled to the \
image's side, and a covered square; five severities. Both runs get the same corrupted images.

Is the difference real? Both runs are evaluated on the same images, so the difference is paired: its 95 % \
interval is Newcombe's (1998, method 10), which is valid even where few images differ, p from McNemar's exact test, \
adjusted for the rows of the table (Holm). The test covers the choice of images only: another seed may give another \
result. Groups of runs over seeds are compared by Welch's t-test (Holm) and by permutation; with 3 seeds each, \
permutation cannot give less than 0.1.

Caveats: images are those of the run's own resolution. A sample is drawn by a hash of the file names and is the same \
for every run; n is shown. Published numbers were measured with other models, on whole test sets at full resolution: \
they are listed next to yours to show the order of magnitude, not for a test."""
