"""Judging a collection that has no judgments: what to judge next, what is known so far, and when to stop.

    from sdretrieval import Index, read_topics
    from sdretrieval.learn.judging import Project

    project = Project(Index("indexes/mine"), "pilot")
    project.add_topics(read_topics("topics.tsv"))
    offer = project.next("1", who="ann")                 # the learner's choice in the whole collection
    project.judge("1", offer.docid, 1, who="ann", way=offer.way)
    print(project.recall("1"))                           # a lower bound, with its assumption
    write_qrels("qrels.txt", project.qrels())

Reading order: journal.py, every click on disk; project.py, what one does with it; learner.py, the classifier behind the
offers; stopping.py, bounds of recall; estimates.py and bounds.py, measures of runs by what is judged so far.
"""

from __future__ import annotations

from sdretrieval.learn.judging.agreement import Agreement
from sdretrieval.learn.judging.estimates import Better, Contest, Measured
from sdretrieval.learn.judging.learner import Features, Learner
from sdretrieval.learn.judging.project import Judgment, Offer, Project, judging_folder, projects, read_judged
from sdretrieval.learn.judging.stopping import Price, RecallBound, certificate, price, recall_bound

__all__ = [
    "Agreement",
    "Better",
    "Contest",
    "Features",
    "Judgment",
    "Learner",
    "Measured",
    "Offer",
    "Price",
    "Project",
    "RecallBound",
    "certificate",
    "judging_folder",
    "price",
    "projects",
    "read_judged",
    "recall_bound",
]
