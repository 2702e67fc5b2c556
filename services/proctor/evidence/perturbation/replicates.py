"""What several answers to each wording tell beside the comparison: a ranking, where the spread is, and what is luck.

Replicates may rank items, and flag none by themselves: that a single item's canonical wording is right five times of
five and its rewordings never is as likely for the one easy wording of four as for a leak. What decides is over items
(`measured.measured_replicates`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from proctor.domain.evidence import ItemEvidence, Replicates
from proctor.domain.lottery import Lottery
from proctor.domain.trial import Outcome
from proctor.evidence.clusters import item_sums
from proctor.evidence.perturbation.ranking import leaked_posterior
from proctor.evidence.protocol.lottery import lottery
from proctor.evidence.replicated_answers import ReplicatedAnswers, WordingAnswer
from proctor.evidence.written_numbers import counted, points

#: Answers beside the first that a strict majority of them means something.
_VOTERS = 2


class Spread(NamedTuple):
    """Variance of a right answer (0 or 1) by where it comes from. They add up to that of a single answer."""

    items: float
    wordings: float
    """Of an item's wordings, canonical and others, about its mean."""
    answers: float
    """Of the answers to one wording."""


class _Errors(NamedTuple):
    """Standard error of D, as a fraction."""

    now: float
    once: float
    """Were each wording asked once."""
    best: float
    """Were it asked without end."""


def replicate_figures(answers: ReplicatedAnswers, rows: Iterable[WordingAnswer], *, level: float) -> Replicates:
    """The figures of the report.

    Args:
        answers: the sample.
        rows: the answers that it was counted from, for the lottery.
        level: confidence level.
    """
    spread, errors = variance_components(answers), _standard_errors(answers)
    luck = canonical_lottery(rows, level=level)
    n_replicates = int(answers.asked.max(initial=0))
    return Replicates(
        n_replicates=n_replicates,
        n_answers=int(answers.asked.sum()),
        variance_of_items=spread.items,
        variance_of_wordings=spread.wordings,
        variance_of_answers=spread.answers,
        standard_error_points=None if errors is None else 100 * errors.now,
        standard_error_once_points=None if errors is None else 100 * errors.once,
        standard_error_at_best_points=None if errors is None else 100 * errors.best,
        lottery=luck,
        conclusion=_conclusion(n_replicates, spread, errors, luck),
    )


def variance_components(answers: ReplicatedAnswers) -> Spread:
    """Between items, between an item's wordings, and between the answers to a wording; each at least 0.

    Moment estimators of a nested design with unequal numbers, over the wordings that were answered twice or more and
    the items with two such or more: the spread of shares is freed of the part that the answers' own spread makes of it.
    """
    several = answers.asked > 1
    asked = np.where(several, answers.asked, 2)
    shares = answers.shares
    # Unbiased variance of one answer of a wording, from its share: p(1 − p) · m / (m − 1).
    single = np.where(several, shares * (1 - shares) * asked / (asked - 1), 0.0)
    n_several = several.sum(axis=1)
    used = n_several > 1
    if not used.any():
        return Spread(0.0, 0.0, 0.0)
    shares, several, single, asked = shares[used], several[used], single[used], asked[used]
    n_several = n_several[used]
    of_answers = float(single.sum() / n_several.sum())
    means = np.where(several, shares, 0.0).sum(axis=1) / n_several
    about = np.where(several, (shares - means[:, None]) ** 2, 0.0).sum(axis=1) / (n_several - 1)
    noise = np.where(several, single / asked, 0.0).sum(axis=1) / n_several
    within = about - noise
    of_wordings = max(0.0, float(within.mean()))
    between = float(means.var(ddof=1)) if means.size > 1 else 0.0
    of_items = max(0.0, between - float((about / n_several).mean()))
    return Spread(of_items, of_wordings, of_answers)


def _standard_errors(answers: ReplicatedAnswers) -> _Errors | None:
    """Over independent items, after pseudo-items; None where no wording was answered twice."""
    if answers.n < 2 or not bool((answers.asked > 1).any()):
        return None
    asked, shares = answers.asked, answers.shares
    single = np.where(asked > 1, shares * (1 - shares) * asked / np.maximum(asked - 1, 1), 0.0)
    weights = np.where(asked > 0, 1.0, 0.0)
    weights[:, 1:] /= answers.wordings[:, None] ** 2
    now = float((weights * single / np.maximum(asked, 1)).sum(axis=1).mean())
    once = float((weights * single).sum(axis=1).mean())
    moments = item_sums(answers).with_pseudo_items()
    best = max(0.0, moments.var_d - now)
    return _Errors(*(math.sqrt(variance / moments.n) for variance in (moments.var_d, best + once, best)))


def canonical_lottery(rows: Iterable[WordingAnswer], *, level: float) -> Lottery | None:
    """The first answer to each canonical wording against a strict majority of the others to it.

    Only items with all of their canonical answers take part. None where there are not two others, or no such item.
    """
    right: dict[str, dict[int, bool]] = {}
    lost = set[str]()
    most = 0
    for row in rows:
        if row.wording is not None:
            continue
        most = max(most, row.replicate)
        if row.outcome is None:
            lost.add(row.item_id)
        else:
            right.setdefault(row.item_id, {})[row.replicate] = row.outcome is Outcome.CORRECT
    whole = [right[item] for item in sorted(right) if item not in lost and len(right[item]) == most + 1]
    if most < _VOTERS or not whole:
        return None
    table = np.array([[one[number] for number in range(most + 1)] for one in whole], dtype=np.bool_)
    return lottery(table[:, 0], table[:, 1:], level=level)


def _conclusion(
    n_replicates: int,
    spread: Spread,
    errors: _Errors | None,
    luck: Lottery | None,
) -> str:
    said = (
        f"Each prompt was asked {counted(n_replicates, 'time')}, and each wording counts by its share of right answers."
    )
    total = sum(spread)
    if total > 0:
        shares = [
            f"{100 * part / total:.0f} % between {name}"
            for name, part in zip(("items", "an item's wordings", "answers to one wording"), spread, strict=True)
        ]
        said += f" Of the variance of a single answer {', '.join(shares)}."
    if errors is not None:
        now, once, best = (points(100 * error) for error in errors)
        said += (
            f" The standard error of score inflation is {now}; asked once it would be about {once}, and asked without "
            f"end {best}."
        )
    if luck is not None and luck.rate.value is not None:
        said += (
            f" Of {counted(luck.greedy_wrong, 'wrong first answer')} to a canonical wording {luck.rescued:,} "
            f"({100 * luck.rate.value:.1f} %) are right by a strict majority of the others."
        )
    return said


def ranked_replicates(answers: ReplicatedAnswers, *, flagged_at_least: float = 0.0) -> tuple[ItemEvidence, ...]:
    """Items by `leaked_posterior` over shares, most suspected first; ties by difference, then by id.

    Args:
        answers: the sample.
        flagged_at_least: share of all items that the sample's evidence is known to flag.
    """
    if answers.n == 0:
        return ()
    canonical, wordings, differences = answers.canonical_share, answers.wordings, answers.differences
    # Rounding lets equal shares of unequal counts (2/4, 3/6) be one pattern whatever the order of addition.
    rows = np.column_stack([canonical, np.round(answers.shares[:, 1:].sum(axis=1), 9), wordings])
    patterns, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    posterior = leaked_posterior(
        counts.astype(np.int64), patterns[:, 0], patterns[:, 1], patterns[:, 2].astype(np.int64)
    )
    scores = np.where(differences > 0, posterior[inverse.ravel()], 0.0).tolist()
    order = sorted(range(answers.n), key=lambda i: (-scores[i], -differences[i], answers.item_ids[i]))
    n_flagged = math.floor(max(flagged_at_least, 0.0) * answers.n)
    return tuple(
        ItemEvidence(
            item_id=answers.item_ids[i],
            canonical_correct=bool(2 * answers.right[i, 0] > answers.asked[i, 0]),
            canonical_right=int(answers.right[i, 0]),
            canonical_asked=int(answers.asked[i, 0]),
            perturbed_correct=int(answers.right[i, 1:].sum()),
            perturbed_total=int(answers.asked[i, 1:].sum()),
            suspicion=scores[i],
            rank=place if scores[i] > 0 else None,
            flagged=place <= n_flagged and scores[i] > 0,
        )
        for place, i in enumerate(order, start=1)
    )
