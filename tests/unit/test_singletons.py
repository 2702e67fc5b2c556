"""Items right in one wording alone: counted, compared with their share, and never a reason to approve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from proctor.domain.evidence import Verdict
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.singletons import singletons
from tests.unit.samples import consistent, paired, samples


@given(samples())
def test_the_counts_are_those_of_the_definition(answers: PairedAnswers) -> None:
    rows = list(zip(answers.canonical, answers.right, answers.total, strict=True))
    single = [(c, t) for c, r, t in rows if int(c) + r == 1]
    found = singletons(answers)
    assert (found.singletons, found.canonical) == (len(single), sum(bool(c) for c, _ in single))
    assert found.expected == pytest.approx(sum(1 / (t + 1) for _, t in single))
    assert found.excess == pytest.approx(found.canonical - found.expected)
    assert 0.0 <= found.p_value <= 1.0


@pytest.mark.parametrize(("canonical", "other"), [(0, 7), (5, 6), (12, 3), (9, 0)])
def test_with_one_number_of_variants_the_tail_is_binomial(canonical: int, other: int) -> None:
    answers = paired([1] * canonical + [0] * other, [0] * canonical + [1] * other, [3] * (canonical + other))
    assert singletons(answers).p_value == pytest.approx(stats.binom.sf(canonical - 1, canonical + other, 0.25))


def test_with_differing_numbers_of_variants_the_tail_is_that_of_the_sum_of_binomials() -> None:
    answers = paired([1, 1, 0, 1, 0], [0, 0, 1, 0, 1], [1, 1, 1, 4, 4])
    halves, fifths = stats.binom(3, 1 / 2), stats.binom(2, 1 / 5)
    wanted = sum(halves.pmf(i) * fifths.pmf(j) for i in range(4) for j in range(3) if i + j >= 3)
    assert singletons(answers).p_value == pytest.approx(wanted)


def test_a_very_large_sample_is_approximated_and_says_so() -> None:
    found = singletons(paired([1] * 7_700 + [0] * 22_300, [0] * 7_700 + [1] * 22_300, [3] * 30_000))
    assert found.p_value == pytest.approx(stats.binom.sf(7_699, 30_000, 0.25), rel=1e-3)
    assert "saddlepoint" in found.method


def test_without_a_singleton_there_is_nothing_to_describe() -> None:
    found = singletons(paired([1, 0], [3, 0], [3, 3]))
    assert (found.singletons, found.expected, found.p_value) == (0, 0.0, 1.0)
    assert singletons(paired([], [], [])).p_value == 1.0


def test_a_contaminated_model_may_have_no_excess_at_all() -> None:
    """Every leaked item is also guessed in one rewording of three: none is a singleton, and D is 10 points."""
    answers = paired([1] * 300 + [1] * 60 + [0] * 40, [3] * 300 + [1] * 60 + [0] * 40, [3] * 400)
    found = singletons(answers)
    assert (found.excess, found.p_value) == (0.0, 1.0)
    assert "never a ground for approval" in found.note
    weighed = perturbation_evidence(answers, ScoringSection(), GovernanceSection(), None)
    assert weighed.verdict is Verdict.CONTAMINATED


def test_the_conclusion_names_both_numbers() -> None:
    found = singletons(paired([1] * 9 + [0] * 3 + [1] * 88, [0] * 9 + [1] * 3 + [3] * 88, [3] * 100))
    assert found.conclusion == (
        "12 items of 100 are right in one wording alone; in 9 of them it is the canonical one, where 3.0 would be its "
        "share (p = 0.0004)."
    )


def test_leaks_are_seen_and_luck_is_not() -> None:
    rng = np.random.default_rng(9)
    clean = [singletons(consistent(rng, 600, variants=3, noise=0.05)).p_value for _ in range(300)]
    assert stats.binomtest(sum(p <= 0.05 for p in clean), 300, 0.05, alternative="greater").pvalue > 1e-3
    leaked = [singletons(consistent(rng, 600, variants=3, noise=0.05, leaked=0.1)).p_value for _ in range(50)]
    assert max(leaked) < 1e-6
