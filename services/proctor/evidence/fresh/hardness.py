"""The hardness correction: which benchmark accuracy a clean model with this accuracy on the fresh items would have.

Dekoninck, Müller and Vechev (2024), "ConStat: Performance-Based Contamination Detection in Large Language Models",
NeurIPS 2024, fit the accuracies of reference models on the benchmark over those on the reference set, and read the
expected accuracy of the audited model off the curve: their hardness correction function. They fit a smoothing spline
through the panel and a model that guesses (eth-sri/ConStat, src/constat/detection.py). Here the curve is a line on the
logit scale of accuracy above chance, logit(benchmark) = a + b · logit(fresh), which runs through the guessing model and
the perfect one by construction, is monotone, and has one parameter where the panel is small and two where it is not. A
spline's smoothness has to be chosen from the same few models; item response models differ from the line by about a
point at most over a panel's range.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy import special

from proctor.evidence.answers import FloatArray

#: Below this many reference models the slope is 1, that is, fresh items are harder for everyone alike. ConStat refuses
#: fewer than five.
MODELS_FOR_SLOPE: Final = 5
#: Standard deviation of the slope about 1 before the panel is seen. Items of one distribution have slopes near 1; the
#: prior decides only where the panel's models are about equally able and would leave the slope to noise.
_SLOPE_DEVIATION: Final = 0.5


class Hardness(NamedTuple):
    """Fitted lines, one for each place of the leading axes."""

    fresh_centre: FloatArray
    benchmark_centre: FloatArray
    slope: FloatArray
    shares: FloatArray
    """Weight of each reference model in the centre; sums to 1 over them."""
    leverages: FloatArray
    """How far the curve follows each reference model, 0 to 1; the models' number of parameters in sum, or less."""
    chance: float
    n_benchmark: int
    n_fresh: int

    def expected(self, fresh: FloatArray) -> FloatArray:
        """Benchmark accuracy expected of clean models with these accuracies on the fresh items.

        Args:
            fresh: accuracies, 0 to 1; the leading axes are those of the fit.
        """
        # Below chance is bad luck. Mirroring the curve there keeps luck of either sign from adding up to an excess.
        luck = fresh - self.chance
        steps = _logit(self.chance + np.abs(luck), self.n_fresh, self.chance) - self.fresh_centre
        drawn_in = special.expit(self.benchmark_centre + self.slope * steps)
        above = np.clip((drawn_in * (self.n_benchmark + 1) - 0.5) / self.n_benchmark, 0.0, 1.0)
        accuracy: FloatArray = np.maximum(self.chance + np.sign(luck) * (1 - self.chance) * above, 0.0)
        return accuracy

    def steepness(self, accuracy: FloatArray) -> FloatArray:
        """Change of an expected accuracy for a small step of its logit; 0 at chance and below."""
        steepness: FloatArray = np.maximum(accuracy - self.chance, 0.0) * (1 - accuracy) / (1 - self.chance)
        return steepness


def parameters(models: int) -> int:
    """Parameters of the curve for this many reference models: a shift, and a slope from five models up."""
    return 2 if models >= MODELS_FOR_SLOPE else 1


def fit_hardness(benchmark: FloatArray, fresh: FloatArray, n_benchmark: int, n_fresh: int, chance: float) -> Hardness:
    """Least squares on the logit scale, corrected for the noise of the fresh accuracies.

    Each model is weighted by the inverse of its sampling variance. Uncorrected, the slope would be drawn towards 0, for
    the accuracies that it is fitted over are measured on a sample of items themselves, and every model better than the
    panel would be suspected; so the noise that is known from the number of items is taken off their spread (Fuller
    1987, Measurement Error Models, section 1.3). Deming's regression was rejected: on a panel of equally able models
    its slope has no bounds. A slope below 0 becomes 0.

    Args:
        benchmark: accuracies of K >= 1 reference models on the benchmark; shape (..., K).
        fresh: their accuracies on the fresh items; shape (..., K).
        n_benchmark: number of benchmark items.
        n_fresh: number of fresh items.
        chance: accuracy of a model that guesses, on both sets alike.

    Accuracies at or below chance, and of 1, are drawn in by half an item.
    """
    x, y = _logit(fresh, n_fresh, chance), _logit(benchmark, n_benchmark, chance)
    x_noise, y_noise = _logit_variance(x, n_fresh, chance), _logit_variance(y, n_benchmark, chance)
    weights = 1 / (x_noise + y_noise)
    share = weights / weights.sum(axis=-1, keepdims=True)
    x_centre, y_centre = (share * x).sum(axis=-1, keepdims=True), (share * y).sum(axis=-1, keepdims=True)
    slope, leverages = np.ones_like(x_centre), share
    if x.shape[-1] >= MODELS_FOR_SLOPE:
        prior = 1 / _SLOPE_DEVIATION**2
        xy = (weights * (x - x_centre) * (y - y_centre)).sum(axis=-1, keepdims=True)
        seen = (weights * (x - x_centre) ** 2).sum(axis=-1, keepdims=True)
        noise = (weights * x_noise * (1 - share)).sum(axis=-1, keepdims=True)
        xx = np.maximum(seen - noise, 0.0) + prior
        slope = np.maximum((xy + prior) / xx, 0.0)
        leverages = share + weights * (x - x_centre) ** 2 / (seen + prior)
    return Hardness(x_centre, y_centre, slope, share, leverages, chance, n_benchmark, n_fresh)


def _logit(accuracy: FloatArray, n: int, chance: float) -> FloatArray:
    above = np.clip((accuracy - chance) / (1 - chance), 0.0, 1.0)
    logit: FloatArray = special.logit((above * n + 0.5) / (n + 1))
    return logit


def _logit_variance(logit: FloatArray, n: int, chance: float) -> FloatArray:
    above = special.expit(logit)
    accuracy = chance + (1 - chance) * above
    variance: FloatArray = accuracy * (1 - accuracy) / n / ((1 - chance) * above * (1 - above)) ** 2
    return variance
