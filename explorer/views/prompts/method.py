"""The help text of the Prompts view."""

METHOD = """\
Every image of the snapshot that has one of the labels as its class is classified without training: the class vector \
is the unit mean of the embeddings of its sentences, one per template (Radford et al. 2021, section 3.1.4), and the \
probability of class c is softmax over the labels of cosine / tau; for SigLIP the sigmoid of cosine / tau + bias, of \
each class by itself, and another tau divides the bias as well.

Calibration (Guo et al. 2017): images are put into 15 bins by their largest probability. Reliability compares a \
bin's mean confidence with its share of right answers; ECE is the mean distance of the two, weighed by the bin's \
images. NLL is the mean of -log p(class), in nats; for SigLIP the sum over all classes of an image, each of which is \
its class or not. The temperature does not change which class is nearest, so accuracy is constant; only the \
confidence changes. The best tau has the smallest NLL on these same images: it shows the best that a run's cosines \
allow, not a held-out gain. ECE depends on the bins, and chance makes it larger: its tooltip gives a 95 % interval \
(labels resampled with larger and smaller gaps) and the value of a perfectly calibrated run on the same number of \
images.

CLIP learns its tau, CLOOB keeps it fixed; tau of training serves the objective and need not be calibrated. \
Probabilities are comparable across runs; cosines are not.

Templates: accuracy of each class (recall) with one template alone; the difference is to the mean ensemble of all \
templates. A weight of 0 leaves a template out. Weights are chosen on the images they are judged by: a gain of a point \
or two may be chance (standard error of a share p of n images: sqrt(p (1 - p) / n)).

Labels and templates are yours to edit; they are kept. The class of an image is read from the column in which most \
images have one of the labels. Very large splits are sampled; n says how many were used."""
