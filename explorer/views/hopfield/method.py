"""The help text of the Hopfield lab."""

METHOD = """\
A retrieval averages the stored patterns with the weights softmax(beta * stored . query) (Ramsauer et al., Hopfield \
Networks is All You Need, 2020, equation 3). CLOOB makes one such update and normalizes its result (Fuerst et al., \
CLOOB, 2022): U_x and U_y are what the image and the text of a pair retrieve from the images of the batch, V_x and V_y \
what they retrieve from its texts. The pair itself is stored and not masked.

Entropy is that of the weights, in nats; its exponential is the effective number of patterns, from 1 to n. Energy: \
-lse(beta, X xi) + xi.xi / 2 + ln(n) / beta + max |x|^2 / 2 (equation 1), which no update raises; for that the state \
is not normalized here. A fixed point is a single pattern if it averages at most 1.5 patterns, the global average if \
it averages more than half of all, and metastable between. The three kinds are the paper's, the two bounds are ours.

Self-weight: the share of a stored pattern in its own retrieval, e^beta / (e^beta + N - 1) where the others lie at \
cosine 0. The rule beta = 8 + ln((N - 1) / 511) keeps it; it is derived here, not from the paper.

Caveats: only training and this lab retrieve; recall, zero-shot and all other views use the raw embeddings. Here the \
stored patterns are a whole held-out snapshot, while training stores one batch: choose a class or selected pairs, or \
read the batch-size panel. The path is drawn on two principal components, a picture only: of the stored patterns, or \
of all images and texts together, which is what the Map shows by PCA (it turns B's to face A's). One retrieval \
narrows the covariance of given embeddings; what the paper says it enriches are the embeddings that \
training with it learns."""
