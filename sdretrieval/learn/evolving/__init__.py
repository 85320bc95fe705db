"""Evolving classifiers: semi-supervised classification of documents that come in frames (months, weeks, days).

Jia, Yan & Zhang 2009, *Semi-Supervised Classification on Evolutionary Data* (SSL-E). See docs/EVOLVING.md.

=====================  ================================================================================
:class:`SSL`           manifold regularisation (1), each frame on its own
:class:`SSLNaive`      the same on the current and the previous frame together
:class:`SSLE`          online (12): each frame's classifier stays near the previous one's, (18)
:class:`SSLEOffline`   offline (6): the classifiers of all frames at once
=====================  ================================================================================

graph.py            the neighbour graph (19), (3) and its Laplacian
solver.py           the linear systems, solved without an inverse and without K where there is a cheaper way
functions.py        what a classifier is between frames: a vector of weights, or an expansion in kernels
frames.py           documents to frames; which are labelled in an experiment; records, spatial cost and AUC of frames
frame_classifier.py what the four share: frames, labels, predictions; state.py saves it
estimators.py       the four classes
run.py              a dated corpus from counts to predictions, resumable; plots.py draws costs and AUC over time
"""

from sdretrieval.learn.evolving.estimators import SSL, SSLE, SSLEOffline, SSLNaive

__all__ = ["SSL", "SSLE", "SSLEOffline", "SSLNaive"]
