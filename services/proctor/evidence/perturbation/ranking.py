"""Which items look leaked: a ranking, and flags that the whole sample's evidence backs.

An item's own p-value is never below 1 / (V + 1), so no item can convict itself. What ranks items is the posterior of a
two-group model over the whole sample. In the exchangeable group, an item's canonical and reworded answers are right
with one chance; in the leaked group the canonical answer is right and the reworded ones with a chance below one half.
Both groups' chances have distributions that are left free: weights on a grid, estimated by EM, whose likelihood has one
maximum (Laird 1978, JASA 73, 805–811). Items that are right in rewordings only say how much luck to expect of the
opposite pattern, so a clean model's lucky guesses get little suspicion.

Zero suspicion is exact: an item whose canonical answer is wrong, or which is right in every wording, was answered no
better in its canonical wording than reworded (its difference is at most 0), so that no answer of it speaks of memory.
The same holds where a posterior is too small for a float. Such items tie, whatever their answers, so they have no rank,
and a precision among the first k means something up to the number of ranked items alone.
"""

from __future__ import annotations

import math

import numpy as np

from proctor.domain.evidence import ItemEvidence
from proctor.evidence.answers import FloatArray, IntArray, PairedAnswers

_CHANCES: FloatArray = np.linspace(0.01, 0.99, 25)
#: Ranks settle long before; a fixed number gives the same bytes on every machine's path through the loop.
_ITERATIONS = 200
#: Leaked items are those that rewording breaks: known ones that leaked as well cannot be told from known ones.
_REWORDED_CHANCES: FloatArray = np.linspace(0.01, 0.49, 13)
_FIRST_LEAKED_SHARE = 0.05
#: Chance of a wrong answer to a memorised wording, where it is asked repeatedly.
_SLIP = 0.01


def suspicion(answers: PairedAnswers) -> FloatArray:
    """Posterior chance of each item to be in the leaked group; 0 to 1.

    An item whose canonical answer is wrong, or which is right in every wording, has none: memory changed no answer
    of it that this audit could see.

    Assumes independent answers within an item given its chance. Where they are not, ranks stay good and the scale is
    off, which is one reason why it never flags by itself. An item right in one rewording of many may rank above one
    right in none: lucky guesses look like the latter.
    """
    if answers.n == 0:
        return np.zeros(0)
    patterns = answers.patterns
    posterior = leaked_posterior(patterns.counts, patterns.canonical.astype(np.float64), patterns.right, patterns.total)
    changed = patterns.canonical & (patterns.right < patterns.total)
    return np.where(changed, posterior, 0.0)[patterns.inverse]


def leaked_posterior(
    counts: IntArray, canonical: FloatArray, right: IntArray | FloatArray, total: IntArray
) -> FloatArray:
    """Posterior chance of the leaked group for each pattern; 0 to 1.

    Args:
        counts: items of each pattern.
        canonical: the canonical wording's share of right answers: 0 or 1, or a share where it was asked repeatedly.
        right: sum over the rewordings of their shares of right answers; an integer where each was asked once.
        total: number of rewordings.

    A share enters the likelihood as one answer of that much: repeated answers to a wording are one observation of it,
    however many they are, for what differs between wordings does not average out over them. Shares of 0 and 1 give the
    likelihood of single answers.
    """
    right, total, canonical = right[:, None], total[:, None], canonical[:, None]
    all_right = right + canonical
    log_exchangeable = all_right * np.log(_CHANCES) + (total + 1 - all_right) * np.log1p(-_CHANCES)
    log_leaked = right * np.log(_REWORDED_CHANCES) + (total - right) * np.log1p(-_REWORDED_CHANCES)
    log_recited = (1 - canonical) * math.log(_SLIP)
    logs = np.concatenate([log_exchangeable, np.where(canonical > 0, log_leaked + log_recited, -np.inf)], axis=1)
    # Only ratios within a pattern matter, so each is scaled to its best; else 100 rewordings underflow.
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    leaked = np.arange(logs.shape[1]) >= _CHANCES.size
    weights = np.where(leaked, _FIRST_LEAKED_SHARE / _REWORDED_CHANCES.size, (1 - _FIRST_LEAKED_SHARE) / _CHANCES.size)
    joint = likelihood * weights
    n = int(counts.sum())
    for _ in range(_ITERATIONS):
        found = (joint * (counts / joint.sum(axis=1))[:, None]).sum(axis=0)
        # One item's worth of prior for a clean model.
        leaked_share = float(found[leaked].sum()) / (n + 1)
        weights = found * np.where(leaked, 1 / (n + 1), (1 - leaked_share) / found[~leaked].sum())
        joint = likelihood * weights
    posterior: FloatArray = joint[:, leaked].sum(axis=1) / joint.sum(axis=1)
    return np.clip(posterior, 0.0, 1.0)


def ranked_items(answers: PairedAnswers, *, flagged_at_least: float) -> tuple[ItemEvidence, ...]:
    """Items, most suspected first; ties by difference, then by item id, which carries no truth.

    Ranks are those of the items above zero suspicion; the others follow without one.

    Args:
        answers: the sample.
        flagged_at_least: the share of items that the sample as a whole shows to be inflated: the lower bound of D as
            a fraction where the verdict is contaminated, else 0. The first ⌊share × n⌋ items of the ranking are
            flagged, as far as their suspicion is above 0.
    """
    scores, differences = suspicion(answers).tolist(), answers.differences.tolist()
    order = sorted(range(answers.n), key=lambda i: (-scores[i], -differences[i], answers.item_ids[i]))
    flags = math.floor(max(flagged_at_least, 0.0) * answers.n)
    return tuple(
        ItemEvidence(
            item_id=answers.item_ids[i],
            canonical_correct=bool(answers.canonical[i]),
            perturbed_correct=int(answers.right[i]),
            perturbed_total=int(answers.total[i]),
            suspicion=scores[i],
            rank=place + 1 if scores[i] > 0 else None,
            flagged=place < flags and scores[i] > 0,
        )
        for place, i in enumerate(order)
    )
