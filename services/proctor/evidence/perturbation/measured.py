"""What a sample of items says before it is held against anything: estimates, tests, and what it could have found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.domain.evidence import Estimate
from proctor.evidence.answers import Exclusion, PairedAnswers
from proctor.evidence.clusters import (
    Clusters,
    clustered_contamination_score,
    clustered_score_inflation,
    clustered_share,
    clustered_test,
    clusters_of,
    sums_of,
)
from proctor.evidence.intervals import Sums, inflation_estimate, mean_share, score_estimate, wilson
from proctor.evidence.perturbation.exchangeability import TailResult, exchangeability_test
from proctor.evidence.perturbation.power import minimum_detectable_inflation
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.perturbation.wording_exchange import wording_exchangeability
from proctor.evidence.replicated_answers import ReplicatedAnswers


class Estimates(NamedTuple):
    """What a sample says of a model, each with its interval."""

    canonical: Estimate
    reworded: Estimate
    inflation: Estimate
    score: Estimate


class Measured(NamedTuple):
    """Figures of a sample, over clusters where its items come in such."""

    n: int
    n_variants: int
    """Most rewordings of an item."""
    excluded: tuple[Exclusion, ...]
    sums: Sums
    clusters: Clusters | None
    inflation: Estimate
    score: Estimate
    exact: TailResult
    studentised: float
    detectable: float
    """Smallest D, in points, that is found with 80 % power."""
    canonical: Estimate
    reworded: Estimate

    @property
    def p_value(self) -> float:
        """The larger of both tests'."""
        return max(self.exact.p_value, self.studentised)


def measured(answers: PairedAnswers, *, level: float, alpha: float) -> Measured:
    """Of items that were asked once in each wording."""
    sums, clusters = sums_of(answers), clusters_of(answers)
    estimates = estimates_of(answers, level)
    return Measured(
        n=answers.n,
        n_variants=int(answers.total.max()) if answers.n else 0,
        excluded=answers.excluded,
        sums=sums,
        clusters=clusters,
        exact=exchangeability_test(answers),
        studentised=studentised_test(answers) if clusters is None else clustered_test(answers.differences, clusters),
        detectable=100 * minimum_detectable_inflation(sums, alpha=alpha),
        **estimates._asdict(),
    )


def measured_replicates(answers: ReplicatedAnswers, *, level: float, alpha: float) -> Measured:
    """Of items whose wordings were asked several times: each wording counts by its share of right answers, and the item
    stays the unit.

    Where every wording was asked once, all figures are those of `measured`. Nothing is assumed of how replicates depend
    on each other.
    """
    sums, clusters = sums_of(answers), clusters_of(answers)
    over = Clusters.single(answers.n) if clusters is None else clusters
    return Measured(
        n=answers.n,
        n_variants=int(answers.wordings.max(initial=0)),
        excluded=answers.excluded,
        sums=sums,
        clusters=clusters,
        exact=wording_exchangeability(answers.right, answers.asked),
        studentised=clustered_test(answers.differences, over),
        detectable=100 * minimum_detectable_inflation(sums, alpha=alpha),
        **estimates_of(answers, level)._asdict(),
    )


def estimates_of(answers: PairedAnswers | ReplicatedAnswers, level: float) -> Estimates:
    """Accuracies, D and Contamination Score of one item or more, over clusters where they come in such."""
    clusters = clusters_of(answers)
    if isinstance(answers, ReplicatedAnswers):
        over = Clusters.single(answers.n) if clusters is None else clusters
        differences, canonical = answers.differences, answers.canonical_share
        return Estimates(
            canonical=clustered_share(canonical, over, level),
            reworded=clustered_share(canonical - differences, over, level),
            inflation=clustered_score_inflation(differences, canonical, over, level),
            score=clustered_contamination_score(differences, canonical, over, level),
        )
    sums = sums_of(answers)
    inflation, score = inflation_estimate(sums, level), score_estimate(sums, level)
    if clusters is None:
        right = wilson(int(np.count_nonzero(answers.canonical)), answers.n, level)
        reworded = mean_share(answers.patterns.reworded_share, answers.patterns.counts, level)
        return Estimates(right, reworded, inflation, score)
    return Estimates(
        clustered_share(answers.canonical_share, clusters, level),
        clustered_share(answers.right / answers.total, clusters, level),
        inflation,
        score,
    )
