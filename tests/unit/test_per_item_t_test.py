"""The article's rule: as its own code computes it, with the degenerate cases defined."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.per_item_t_test import per_item_p_values, per_item_t_test
from tests.unit.samples import paired, sample, samples


def article(canonical: bool, flags: list[bool], alpha: float = 0.05) -> tuple[float, bool]:
    """`compute_contamination_score` as printed, without its rounding."""
    baseline, perturbed = float(canonical), np.array(flags, dtype=float)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        t_stat, p_value = stats.ttest_1samp(perturbed, popmean=baseline)
    one_tailed = p_value / 2 if t_stat < 0 else 1.0
    score = (baseline - perturbed.mean()) / baseline if baseline > 0 else 0.0
    return float(one_tailed), bool(score > 0.1 and one_tailed < alpha)


@given(samples(min_items=1))
def test_it_is_the_articles_own_code(answers: PairedAnswers) -> None:
    p_values = per_item_p_values(answers)
    found = per_item_t_test(answers, threshold=0.1, alpha=0.05, block_above_pct=5.0)
    for i in range(answers.n):
        flags = [True] * int(answers.right[i]) + [False] * int(answers.total[i] - answers.right[i])
        wanted, flagged = article(bool(answers.canonical[i]), flags)
        assert p_values[i] == pytest.approx(wanted, rel=1e-9)
        assert (answers.item_ids[i] in found.flagged_items) == flagged


def test_equal_answers_have_a_p_value() -> None:
    answers = paired([1, 1, 0, 0, 1], [0, 3, 0, 3, 0], [3, 3, 3, 3, 1])
    assert per_item_p_values(answers).tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


def test_a_share_past_the_limit_would_block() -> None:
    answers = paired([1] * 20, [0] + [3] * 19, [3] * 20)
    at_limit = per_item_t_test(answers, threshold=0.1, alpha=0.05, block_above_pct=5.0)
    assert (at_limit.flagged_items, at_limit.flagged_pct, at_limit.would_block) == (("item-00000",), 5.0, False)
    assert per_item_t_test(answers, threshold=0.1, alpha=0.05, block_above_pct=4.9).would_block


def test_no_items_flag_nothing() -> None:
    found = per_item_t_test(paired([], [], []), threshold=0.1, alpha=0.05, block_above_pct=5.0)
    assert (found.flagged_items, found.flagged_pct, found.would_block) == ((), 0.0, False)


def test_it_flags_clean_items_as_its_note_says() -> None:
    rng = np.random.default_rng(1)
    flagged = {}
    for variants in (3, 10):
        answers = sample(rng, rng.beta(1, 1, 4_000), variants=variants)
        flagged[variants] = per_item_t_test(answers, threshold=0.1, alpha=0.05, block_above_pct=5.0).flagged_pct
    assert 1.0 <= flagged[3] <= 7.0
    assert 20.0 <= flagged[10] <= 28.5
    assert "up to 28 % at 9 or 10" in per_item_t_test(answers, threshold=0.1, alpha=0.05, block_above_pct=5.0).note
