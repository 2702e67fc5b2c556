"""Singletons: items that are right in exactly one of their wordings, and how often that one is the canonical wording.

A model that recites the canonical wording and nothing else leaves canonical singletons; a lucky guess leaves singletons
in any wording alike, so V / (V + 1) of a clean model's lie in rewordings. The excess over that share is a picture of
the sample that a reader grasps at once, and no more: **it is never a ground for approval.** It sees only the items that
memory made right in one wording and guesses made right in no other. A leaked item that is also guessed in one rewording
is no singleton, nor is one that leaked together with its rewordings, nor one that the model would have known anyway; so
a contaminated model may have no excess at all. Nor does the excess convict: it says nothing of its cause, which may be
a rewording that is simply harder. Decisions use D, which counts every changed answer.
"""

from __future__ import annotations

import numpy as np

from proctor.domain.evidence import Singletons
from proctor.evidence.answers import FloatArray, PairedAnswers
from proctor.evidence.clusters import clustered_test, clusters_of
from proctor.evidence.perturbation.exchangeability import EXACT_LIMIT, exact_upper_tail, saddlepoint_upper_tail
from proctor.evidence.written_numbers import counted, p_text

NULL_HYPOTHESIS = "Of an item that is right in one wording alone, that wording is each of its V + 1 equally often."
NOTE = "A description of the sample. It is never a ground for approval: a contaminated model may show no excess."


def singletons(answers: PairedAnswers) -> Singletons:
    """Count the singletons and compare the canonical ones with their share.

    Null hypothesis: `NULL_HYPOTHESIS`; the number of canonical singletons is then binomial with 1 / (V + 1), or
    Poisson-binomial where items differ in V. It is the stratum t = 1 of the exchangeability test, and like that test
    assumes wordings that do not depend on each other. Exact up to `EXACT_LIMIT` singletons, the saddlepoint
    approximation above. Without a singleton the p-value is 1. Where items come in clusters it is no smaller than that
    of the mean excess over clusters.
    """
    patterns = answers.patterns
    single = patterns.right + patterns.canonical == 1
    counts, wordings = patterns.counts[single], patterns.total[single] + 1
    n = int(counts.sum())
    canonical = int(counts[patterns.canonical[single]].sum())
    distinct, places = np.unique(wordings, return_inverse=True)
    items = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(items, places.ravel(), counts)
    expected = float((items / distinct).sum())
    if n == 0:
        p_value, method = 1.0, "no singleton"
    elif n <= EXACT_LIMIT:
        p_value, method = exact_upper_tail(items, 1 / distinct, canonical), "exact upper tail given the singletons"
    else:
        p_value, method = saddlepoint_upper_tail(items, 1 / distinct, canonical), "saddlepoint (Lugannani–Rice)"
    clusters = clusters_of(answers)
    if clusters is not None and n:
        p_value = max(p_value, clustered_test(_beyond_share(answers), clusters))
        method += "; the larger of it and t over clusters"
    share = f"{expected:.1f} would be its share ({p_text(p_value)})"
    return Singletons(
        n_items=answers.n,
        singletons=n,
        canonical=canonical,
        expected=expected,
        excess=canonical - expected,
        p_value=p_value,
        method=method,
        null_hypothesis=NULL_HYPOTHESIS,
        note=NOTE,
        conclusion=(
            f"{counted(n, 'item')} of {answers.n:,} {'is' if n == 1 else 'are'} right in one wording alone; in "
            f"{canonical:,} of them it is the canonical one, where {share}."
        ),
    )


def _beyond_share(answers: PairedAnswers) -> FloatArray:
    """Of each item, how much more of a canonical singleton it is than its share; 0 for an item that is none."""
    single = answers.right + answers.canonical == 1
    result: FloatArray = single * (answers.canonical - 1 / (answers.total + 1))
    return result
