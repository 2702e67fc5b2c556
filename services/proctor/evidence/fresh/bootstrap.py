"""How sure the excess over the fresh items is: a bootstrap over items and reference models, and the models' scatter.

All models answer the same items, so an item is drawn for all of them at once: a benchmark sample that happens to be
easy is easy for the panel too, and drops out. Reference models are drawn as well where there are at least five. What a
bootstrap does not show is that a clean model need not lie *on* the curve: models differ in what they are good at. That
scatter is what the panel's own distances from the curve have beyond the noise of items, and a panel that agrees with
its own fresh results within three points only cannot convict a model of four.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from proctor.evidence.answers import FloatArray
from proctor.evidence.fresh.hardness import MODELS_FOR_SLOPE, Hardness, fit_hardness, parameters

#: Weights drawn at a time, so that 10,000 items do not take gigabytes. The answer does not depend on it.
_BATCH_CELLS = 4_000_000
#: Variance of an accuracy that is rounding and not noise: a million items, all but one right, have this much.
_NO_NOISE = 1e-12


@dataclass(frozen=True, eq=False)
class FreshAnswers:
    """Right answers of the audited model, and of K reference models, on n benchmark items and m fresh ones.

    Every model answered every item: an item with an error row of any of them is to be left out beforehand.
    """

    benchmark: FloatArray
    """Shape (1 + K, n), 0 or 1; the audited model first."""
    fresh: FloatArray
    """Shape (1 + K, m), 0 or 1; the audited model first, reference models in the same order."""
    paired: bool = False
    """Whether fresh item i was made from benchmark item i; n = m."""

    @classmethod
    def of(
        cls,
        benchmark: npt.ArrayLike,
        fresh: npt.ArrayLike,
        reference_benchmark: npt.ArrayLike | None = None,
        reference_fresh: npt.ArrayLike | None = None,
        *,
        paired: bool = False,
    ) -> Self:
        """Build from the audited model's answers (n,) and (m,) and the panel's (K, n) and (K, m), in one order.

        Raises:
            ValueError: where shapes do not fit, or a value is neither 0 nor 1.
        """
        on_benchmark, on_fresh = _stacked(benchmark, reference_benchmark), _stacked(fresh, reference_fresh)
        if len(on_benchmark) != len(on_fresh):
            known = f"{len(on_benchmark) - 1} on the benchmark and {len(on_fresh) - 1} on fresh items"
            raise ValueError(f"every reference model needs answers on both sets, and there are {known}")
        if paired and on_benchmark.shape != on_fresh.shape:
            raise ValueError(f"{on_benchmark.shape[1]} benchmark and {on_fresh.shape[1]} fresh items cannot be paired")
        return cls(on_benchmark, on_fresh, paired)

    @property
    def models(self) -> int:
        """Number of reference models, K."""
        return len(self.benchmark) - 1


def _stacked(audited: npt.ArrayLike, panel: npt.ArrayLike | None) -> FloatArray:
    own = np.asarray(audited, dtype=np.float64)
    others = np.zeros((0, own.size)) if panel is None else np.asarray(panel, dtype=np.float64)
    if own.ndim != 1 or others.ndim != 2 or others.shape[1] != own.size:
        raise ValueError(f"reference models of shape {others.shape} do not fit answers of shape {own.shape}")
    stacked = np.vstack([own[None], others])
    if not bool(np.isin(stacked, (0.0, 1.0)).all()):
        raise ValueError("every answer is right (1) or wrong (0)")
    return stacked


class Excess(NamedTuple):
    """Benchmark accuracy beyond what the fresh items lead to expect; fractions."""

    value: float
    """From the answers as they are."""
    expected: float
    """Benchmark accuracy that the fresh items lead to expect."""
    centre: float
    """With pseudo-items: the middle of the interval."""
    error: float
    scatter: float
    """Standard deviation of clean models about the curve; 0 where the panel shows none, or there are fewer than 2."""
    freedom: float
    """Degrees of freedom of `error`: those of the panel's distances, twice as many where these show no scatter, and
    infinite where fewer than two reference models leave none."""


def measure_excess(answers: FreshAnswers, *, chance: float, rng: np.random.Generator, replicates: int) -> Excess:
    """The audited model's excess and its standard error.

    Pseudo-items keep the error of a near-deterministic model from vanishing: one right and one wrong answer of the
    audited model in each set (Agresti and Caffo 2000, American Statistician 54, 280–288), or the four pairs of
    `intervals` where items are paired; reference models have their own accuracy on them. Without a panel the variance
    is known in closed form, and nothing is drawn.
    """
    benchmark, fresh = _padded(answers.benchmark, answers.fresh, answers.paired)
    actual, expected, _ = _excess(answers.benchmark.mean(axis=1), answers.fresh.mean(axis=1), answers, chance)
    padded_actual, padded_expected, fit = _excess(benchmark.mean(axis=1), fresh.mean(axis=1), answers, chance)
    centre = float(padded_actual - padded_expected)
    if fit is None:
        variance, scatter, freedom = _variance_without_panel(benchmark[0], fresh[0], answers.paired), 0.0, math.inf
    else:
        variance, scatter, freedom = _variance(benchmark, fresh, answers, fit, chance, rng, replicates)
    return Excess(float(actual - expected), float(expected), centre, math.sqrt(variance), scatter, freedom)


def _excess(
    benchmark: FloatArray, fresh: FloatArray, answers: FreshAnswers, chance: float
) -> tuple[FloatArray, FloatArray, Hardness | None]:
    """Actual and expected accuracy of the audited model from accuracies of all models; shape (..., 1 + K)."""
    if answers.models == 0:
        return benchmark[..., 0], fresh[..., 0], None
    fit = fit_hardness(benchmark[..., 1:], fresh[..., 1:], answers.benchmark.shape[1], answers.fresh.shape[1], chance)
    return benchmark[..., 0], fit.expected(fresh[..., :1])[..., 0], fit


def _padded(benchmark: FloatArray, fresh: FloatArray, paired: bool) -> tuple[FloatArray, FloatArray]:
    pseudo = ((1.0, 1.0, 0.0, 0.0), (1.0, 0.0, 1.0, 0.0)) if paired else ((1.0, 0.0), (1.0, 0.0))

    def padded(answers: FloatArray, audited: tuple[float, ...]) -> FloatArray:
        extra = np.repeat(answers.mean(axis=1, keepdims=True), len(audited), axis=1)
        extra[0] = audited
        return np.hstack([answers, extra])

    return padded(benchmark, pseudo[0]), padded(fresh, pseudo[1])


def _variance_without_panel(benchmark: FloatArray, fresh: FloatArray, paired: bool) -> float:
    if paired:
        return float((benchmark - fresh).var(ddof=1)) / benchmark.size
    return float(benchmark.var()) / benchmark.size + float(fresh.var()) / fresh.size


def _variance(
    benchmark: FloatArray,
    fresh: FloatArray,
    answers: FreshAnswers,
    fit: Hardness,
    chance: float,
    rng: np.random.Generator,
    replicates: int,
) -> tuple[float, float, float]:
    """Variance of the excess, the models' scatter, and the degrees of freedom."""
    models = answers.models
    on_benchmark, on_fresh = _resampled(benchmark, fresh, answers.paired, rng, replicates)
    actual, expected, fits = _excess(on_benchmark, on_fresh, answers, chance)
    assert fits is not None
    variance = float((actual - expected).var())
    panel = fit.expected(fresh[1:].mean(axis=1))
    found = _scatter(
        distances=benchmark[1:].mean(axis=1) - panel,
        noise=(on_benchmark[:, 1:] - fits.expected(on_fresh[:, 1:])).var(axis=0),
        steepness=fit.steepness(panel) * np.sqrt(np.maximum(1 - fit.leverages, 0.0)),
    )
    free = models - parameters(models)
    if found.logits == 0.0:
        # A few models may lie close to their curve by luck. Taking them at their word covers 92 % where clean models
        # scatter, the panel's own degrees of freedom 99 % where they do not; twice as many hold 95 % in between.
        return variance, 0.0, 2.0 * free if free else math.inf
    own = fit.expected(fresh[:1].mean(axis=1))
    scatter = found.logits * float(fit.steepness(own)[0])
    variance += scatter**2
    if models < MODELS_FOR_SLOPE:
        variance += scatter**2 * float((fit.shares**2).sum())
    else:
        # The noise of items in the panel's distances moved the curve in the first bootstrap already.
        variance += found.share * _curve_variance(benchmark, fresh, answers, chance, rng, replicates)
    return variance, scatter, float(free)


class _Scatter(NamedTuple):
    logits: float
    """Standard deviation of clean models about the curve; 0 where items' noise explains the panel's distances."""
    share: float
    """Of the panel's squared distances, what items' noise does not explain."""


def _scatter(distances: FloatArray, noise: FloatArray, steepness: FloatArray) -> _Scatter:
    """Moment estimate of the scatter: DerSimonian and Laird (1986), Controlled Clinical Trials 7, 177–188.

    Args:
        distances: of the reference models from their curve, as accuracies; shape (K,).
        noise: variance of each that items alone would cause.
        steepness: of the curve at each, for models scatter alike in logits and hence little near 0 and 1; less what
            the curve follows the model.
    """
    measured = noise > _NO_NOISE
    if distances.size == parameters(distances.size) or not bool(measured.any()):
        return _Scatter(0.0, 0.0)
    heterogeneity = float((distances[measured] ** 2 / noise[measured]).sum())
    beyond = heterogeneity - np.count_nonzero(measured)
    scale = float((steepness[measured] ** 2 / noise[measured]).sum())
    if beyond <= 0 or scale <= 0:
        return _Scatter(0.0, 0.0)
    return _Scatter(math.sqrt(beyond / scale), beyond / heterogeneity)


def _curve_variance(
    benchmark: FloatArray,
    fresh: FloatArray,
    answers: FreshAnswers,
    chance: float,
    rng: np.random.Generator,
    replicates: int,
) -> float:
    """Variance of the expected accuracy over panels drawn from this one with replacement, items as they are."""
    models = answers.models
    drawn = rng.integers(1, models + 1, size=(replicates, models))
    audited = np.zeros((replicates, 1), dtype=np.int64)
    places = np.concatenate([audited, drawn], axis=1)
    _, expected, _ = _excess(benchmark.mean(axis=1)[places], fresh.mean(axis=1)[places], answers, chance)
    return float(expected.var())


def _resampled(
    benchmark: FloatArray, fresh: FloatArray, paired: bool, rng: np.random.Generator, replicates: int
) -> tuple[FloatArray, FloatArray]:
    """Accuracies of all models on items drawn with replacement; shape (replicates, 1 + K) each."""

    def drawn(*sets: FloatArray) -> list[FloatArray]:
        n = sets[0].shape[1]
        at_once = max(1, _BATCH_CELLS // n)
        parts = []
        for start in range(0, replicates, at_once):
            rows = min(at_once, replicates - start)
            places = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
            weights = np.bincount(places.ravel(), minlength=rows * n).reshape(rows, n) / n
            parts.append([weights @ values.T for values in sets])
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    if paired:
        first, second = drawn(benchmark, fresh)
        return first, second
    return drawn(benchmark)[0], drawn(fresh)[0]


def t_quantile(freedom: float, probability: float) -> float:
    """Quantile of t, of the normal distribution where the degrees of freedom are infinite."""
    return float(special.ndtri(probability) if math.isinf(freedom) else special.stdtrit(freedom, probability))


def t_upper_tail(freedom: float, t: float) -> float:
    """P(T >= t)."""
    return float(special.ndtr(-t) if math.isinf(freedom) else special.stdtr(freedom, -t))
