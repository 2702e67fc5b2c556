"""The fresh channel: the benchmark against freshly made items of the same distribution, suspicious when the benchmark
is answered better than a clean model with that result on the fresh items would.

It finds what the perturbation channel cannot: a model trained on the rewordings as well answers every wording alike.
Reference models show how much harder the fresh items are for everyone (Dekoninck, Müller and Vechev 2024, "ConStat",
NeurIPS 2024); without them the fresh items are trusted to be as hard. As everywhere, verdicts come from intervals: a
test that finds nothing is not a clean model.
"""

from __future__ import annotations

import numpy as np

from proctor.domain.evidence import Estimate, FreshEvidence, Verdict
from proctor.domain.levels import POWER
from proctor.evidence.fresh import statements
from proctor.evidence.fresh.bootstrap import Excess, FreshAnswers, measure_excess, t_quantile, t_upper_tail
from proctor.evidence.fresh.hardness import MODELS_FOR_SLOPE
from proctor.evidence.intervals import wilson, z_quantile

REPLICATES = 2_000


def fresh_evidence(
    answers: FreshAnswers,
    *,
    allowed_points: float,
    block_points: float,
    alpha: float,
    level: float,
    guess_chance: float = 0.0,
    seed: int = 0,
    replicates: int = REPLICATES,
) -> FreshEvidence:
    """Weigh benchmark answers against fresh ones.

    Args:
        answers: of the audited model and of the reference models, if any.
        allowed_points: `clean` needs the upper bound of the excess within it.
        block_points: `contaminated` needs the lower bound past it, and p < alpha.
        alpha: of the one-sided test.
        level: of the intervals.
        guess_chance: accuracy of a guess on either set, 0 where nothing can be guessed; the curve starts there.
        seed: of the bootstrap.
        replicates: of the bootstrap.

    Null hypothesis: see `wording.null_hypothesis`. Assumes that items of each set are independent draws, that
    reference models are clean, and that the audited model, if clean, scatters about their curve as they do. Bounds and
    p are of Student's t with the bootstrap's standard error, on the degrees of freedom of the scatter's share in it.
    `invalid` without a benchmark item or without a fresh one, `inconclusive` with a single reference model.

    Raises:
        ValueError: for a guess chance outside [0, 1).
    """
    if not 0.0 <= guess_chance < 1.0:
        raise ValueError(f"the guess chance {guess_chance!r} is not a fraction below 1")
    n, m, models = answers.benchmark.shape[1], answers.fresh.shape[1], answers.models
    method = _method(models, answers.paired)
    if n == 0 or m == 0:
        measured, excess, p_value, detectable = None, _undefined(level, method), 1.0, 100.0
    else:
        measured = measure_excess(answers, chance=guess_chance, rng=np.random.default_rng(seed), replicates=replicates)
        excess = _interval(measured, level, method)
        p_value = t_upper_tail(measured.freedom, measured.centre / measured.error)
        reach = t_quantile(measured.freedom, 1 - alpha) + z_quantile(POWER)
        detectable = min(100.0, 100 * reach * measured.error)
    outside = _outside(answers) if measured is not None else None
    scatter = 100 * measured.scatter if measured is not None else 0.0
    verdict: Verdict
    reasons: tuple[str, ...]
    if excess.low is None or excess.high is None:
        verdict, reasons = Verdict.INVALID, (statements.missing(n, m),)
    elif models == 1:
        verdict, reasons = Verdict.INCONCLUSIVE, (statements.one_reference_model(excess),)
    elif excess.low > block_points and p_value < alpha:
        verdict, reasons = Verdict.CONTAMINATED, (statements.past_limit(excess, block_points, p_value, alpha),)
    elif excess.high <= allowed_points:
        verdict, reasons = Verdict.CLEAN, (statements.within_limit(excess, allowed_points),)
    else:
        verdict, reasons = Verdict.INCONCLUSIVE, statements.not_excluded(excess, allowed_points, p_value, detectable)
    return FreshEvidence(
        verdict=verdict,
        reasons=reasons + statements.caveats(models, MODELS_FOR_SLOPE, scatter, outside),
        null_hypothesis=statements.null_hypothesis(models),
        method=method,
        n_benchmark=n,
        n_fresh=m,
        n_reference_models=models,
        paired=answers.paired,
        accuracy_benchmark=wilson(int(answers.benchmark[0].sum()), n, level),
        accuracy_fresh=wilson(int(answers.fresh[0].sum()), m, level),
        expected_accuracy=None if measured is None else measured.expected,
        excess=excess,
        p_value=p_value,
        scatter_points=scatter,
        minimum_detectable_points=detectable,
        extrapolated=outside is not None,
        seed=seed,
        replicates=replicates if models and measured is not None else 0,
    )


def _method(models: int, paired: bool) -> str:
    items = "paired items" if paired else "two samples of items"
    if models == 0:
        return f"difference of accuracies over {items}, pseudo-items added"
    if models < MODELS_FOR_SLOPE:
        return f"shift in logits fitted to the reference models; bootstrap over {items} shared by all models"
    return f"line in logits fitted to the reference models; bootstrap over {items} and over models"


def _undefined(level: float, method: str) -> Estimate:
    return Estimate(value=None, low=None, high=None, level=level, method=method)


def _interval(measured: Excess, level: float, method: str) -> Estimate:
    half = t_quantile(measured.freedom, 0.5 + level / 2) * measured.error
    low, high = max(-1.0, measured.centre - half), min(1.0, measured.centre + half)
    return Estimate(
        value=100 * measured.value,
        low=100 * min(low, measured.value),
        high=100 * max(high, measured.value),
        level=level,
        method=method,
    )


def _outside(answers: FreshAnswers) -> tuple[float, float, float] | None:
    """The audited model's fresh accuracy and the panel's lowest and highest, where it lies outside of them."""
    if answers.models == 0:
        return None
    own, *panel = answers.fresh.mean(axis=1).tolist()
    return None if min(panel) <= own <= max(panel) else (own, min(panel), max(panel))
