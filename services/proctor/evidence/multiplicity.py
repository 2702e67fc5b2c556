"""Corrections of a family of tests, and the family as it stands in a report.

Holm's correction is for decisions: it bounds the chance of a single false rejection, however the tests depend on each
other. Benjamini and Hochberg's is for screening many models or items: it bounds the expected share of false ones among
the rejections, where the tests are independent or depend positively on each other. A family is named beforehand; a
test that is left out of it because of its result makes either bound void.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from proctor.domain.base import Frozen


class Correction(StrEnum):
    """How a family of p-values is corrected."""

    HOLM = "holm"
    BENJAMINI_HOCHBERG = "benjamini_hochberg"


class FamilyTest(Frozen):
    """One test of a family."""

    label: str
    p_value: float
    p_adjusted: float
    rejected: bool
    """Whether the adjusted p is below the family's alpha."""


class Family(Frozen):
    """A family of tests and what is left of it after correction, in the order in which the tests were given."""

    name: str
    method: Correction
    controls: str
    """The error rate that alpha bounds, in words."""
    alpha: float
    n_tests: int
    tests: tuple[FamilyTest, ...]

    @property
    def rejected(self) -> tuple[str, ...]:
        """Labels of the tests whose null hypothesis is rejected."""
        return tuple(test.label for test in self.tests if test.rejected)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given (Holm 1979, Scandinavian Journal of Statistics 6, 65–70)."""
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Benjamini and Hochberg's adjusted p-values, in the order given (1995, JRSS B 57, 289–300).

    Controls the false discovery rate for independent tests, and for positively dependent ones (Benjamini and Yekutieli
    2001, Annals of Statistics 29, 1165–1188). No correction for arbitrary dependence is offered: where that is feared,
    Holm's holds.
    """
    n = len(p_values)
    adjusted = [1.0] * n
    running = 1.0
    for rank, index in enumerate(sorted(range(n), key=lambda i: -p_values[i])):
        running = min(running, n / (n - rank) * p_values[index])
        adjusted[index] = running
    return tuple(adjusted)


_ADJUST: dict[Correction, Callable[[Sequence[float]], tuple[float, ...]]] = {
    Correction.HOLM: holm,
    Correction.BENJAMINI_HOCHBERG: benjamini_hochberg,
}
_CONTROLS = {
    Correction.HOLM: "the chance of one false rejection or more in the family, under any dependence of its tests",
    Correction.BENJAMINI_HOCHBERG: (
        "the expected share of false rejections among all rejections, for independent or positively dependent tests"
    ),
}


def correct_family(
    name: str, p_values: Mapping[str, float], *, alpha: float, method: Correction = Correction.HOLM
) -> Family:
    """Correct a family and write it down.

    Args:
        name: what the tests have in common, as a reader should find it in the report.
        p_values: raw p-value by the label of its test. An empty family is allowed and rejects nothing.
        alpha: level of the family; a test is rejected where its adjusted p is below it.
        method: Holm for decisions, Benjamini–Hochberg for screening.

    Raises:
        ValueError: for a p-value outside 0 to 1, or one that is no number.
    """
    for label, p_value in p_values.items():
        if not 0.0 <= p_value <= 1.0:
            raise ValueError(f"{p_value!r} of {label!r} in the family {name!r} is no p-value")
    adjusted = _ADJUST[method](tuple(p_values.values()))
    return Family(
        name=name,
        method=method,
        controls=_CONTROLS[method],
        alpha=alpha,
        n_tests=len(p_values),
        tests=tuple(
            FamilyTest(label=label, p_value=raw, p_adjusted=corrected, rejected=corrected < alpha)
            for (label, raw), corrected in zip(p_values.items(), adjusted, strict=True)
        ),
    )
