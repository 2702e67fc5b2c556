"""The speed benchmark measures what it says: the article's rule, the channel's figures, logs that can be compared.

Nothing is timed here.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np

import bench_evidence
from benchmarking import article, report, tails
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.per_item_t_test import per_item_t_test
from proctor.evidence.planning.families import FAMILIES
from proctor.formats.logs.reading import read_log


def test_the_articles_loop_flags_what_proctors_form_of_its_rule_flags() -> None:
    sample = bench_evidence.draw(300, np.random.default_rng(0))
    answers = bench_evidence.pair(sample)
    ours = per_item_t_test(answers, threshold=0.10, alpha=0.05, block_above_pct=5.0).flagged_items
    # Where no rewording varies the article divides by 0, and an infinite t is a NaN p in some versions of scipy.
    varied = np.flatnonzero((answers.right > 0) & (answers.right < answers.total)).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        theirs = [
            sample.item_ids[i]
            for i in varied
            if article.compute_contamination_score(
                bool(sample.canonical[i]), sample.reworded[i].tolist()
            ).is_contaminated
        ]
    assert theirs
    assert theirs == [sample.item_ids[i] for i in varied if sample.item_ids[i] in ours]


def test_what_is_timed_are_the_figures_that_the_channel_reports() -> None:
    sample = bench_evidence.draw(200, np.random.default_rng(1))
    exact, studentised, inflation, score, canonical, reworded = bench_evidence.weigh(sample)
    reported = perturbation_evidence(bench_evidence.pair(sample), ScoringSection(), GovernanceSection(), None)
    assert max(exact.p_value, studentised) == reported.p_value
    assert (inflation, score) == (reported.score_inflation, reported.contamination_score)
    assert (canonical, reworded) == (reported.accuracy_canonical, reported.accuracy_perturbed)


def test_the_approximated_tail_is_within_a_millionth_of_the_exact_one() -> None:
    errors = list(tails.tail_errors(FAMILIES["beta_1_1"], 10, (1_000, 5_000, 30_000)))
    assert [error.exact for error in errors] == [
        "against the exact convolution",
        "against the exact convolution",
        "against a convolution by Fourier transform",
    ]
    assert max(error.relative for error in errors) < 1e-6


def test_a_written_log_is_read_with_every_answer(tmp_path: Path) -> None:
    right = np.random.default_rng(2).random(20) < 0.5
    bench_evidence.write_log(tmp_path / "a.csv", right)
    (log,) = read_log(tmp_path / "a.csv")
    assert [answer.correct for answer in log.answers] == right.tolist()


def test_tasks_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []
    medians = report.medians_s({name: partial(order.append, name) for name in "ab"}, rounds=2)
    assert order == ["a", "b"] * 3
    assert set(medians) == {"a", "b"}


def test_a_claim_holds_on_the_right_side_of_its_bound() -> None:
    claim = report.Claim
    document = json.loads(
        report.as_json({"cores": 2}, [], [claim("fast", 0.1, 0.2), claim("ratio", 10.0, 1_500.0, at_least=True)])
    )
    assert document["machine"] == {"cores": 2}
    assert document["claims"] == [
        {"name": "fast", "value": 0.1, "at_most": 0.2, "holds": True},
        {"name": "ratio", "value": 10.0, "at_least": 1_500.0, "holds": False},
    ]
