"""What is told of truncation: the bases on which it is known, rates, arms, comparisons and the whole."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from proctor.domain.base import Frozen
from proctor.domain.evidence import Verdict
from proctor.evidence.protocol.channel import MAX_INVALID_SHARE, TOLERANCE

NULL_HYPOTHESIS: Final = "an item's answer is as likely to be cut in one run as in the other"


class Basis(StrEnum):
    """What a run's truncation is known from, the best first."""

    FINISH_REASON = "finish_reason"
    TOKENS = "tokens"
    """The token count reached the limit."""
    TEXT = "text"
    """A guess from the text: it ends in mid-sentence without an answer. Never the ground of `invalid` or `clean`."""
    UNKNOWN = "unknown"

    @property
    def is_fact(self) -> bool:
        """Whether the log says it, and nothing was guessed."""
        return self in (Basis.FINISH_REASON, Basis.TOKENS)


class RateName(StrEnum):
    """What is counted of a run's answers."""

    TRUNCATED = "truncated"
    EMPTY = "empty"
    """The text is empty or white space."""
    UNREADABLE = "unreadable"
    """There is a text, and the log's extractor found no answer in it."""
    ERROR = "error"
    """Nothing came back, or it was not graded."""


#: Corrected together; truncation is the one question asked, and has a test of its own as in `proctor compare`.
FAMILY: Final = (RateName.EMPTY, RateName.UNREADABLE, RateName.ERROR)


class Rate(Frozen):
    """A count among the answers of which it is known, with Wilson's interval. A rate of none is None."""

    n: int
    count: int
    rate: float | None
    rate_ci: tuple[float | None, float | None]


class TruncationArm(Frozen):
    """One run. `rate_ci` is Wilson's interval."""

    run: str
    format: str
    """Which format the log was read as, and of which distribution where a plug-in read it."""
    n: int
    """Answers of which it is known (or guessed, see `basis`) whether they were cut; error rows are not among them."""
    truncated: int
    rate: float | None
    rate_ci: tuple[float | None, float | None]
    basis: Basis
    token_limit: int | None
    unknown: int
    """Answers of which it is not known."""
    graded: int
    correct: int
    wrong_and_truncated: int
    wrong_and_unknown: int
    """Wrong answers of which it is not known whether they were cut."""
    accuracy_low: float | None
    """Accuracy as logged: every cut answer that is wrong stays wrong. None without a graded answer."""
    accuracy_high: float | None
    """Accuracy if every answer that was cut, or of which it is not known, had been right. None where `basis` is
    unknown."""
    empty: Rate
    unreadable: Rate
    error: Rate

    @property
    def mostly_cut(self) -> bool:
        """Whether more than half of the answers are known to have been cut."""
        return self.basis.is_fact and self.truncated > MAX_INVALID_SHARE * self.n


class RateComparison(Frozen):
    """A rate compared between two runs over the items that both hold. Differences are fractions, the first minus the
    second."""

    rate: RateName
    n: int
    only_a: int
    only_b: int
    difference: float
    difference_ci: tuple[float | None, float | None]
    p_value: float
    """McNemar's exact test."""
    p_holm: float | None
    """Corrected over the family; None for truncation, which is not in it."""
    p_equivalence: float
    """Of two one-sided score tests that the difference is within the tolerance."""

    def differs(self, alpha: float) -> bool:
        """Beyond chance, and by more than the tolerance."""
        p_value = self.p_value if self.p_holm is None else self.p_holm
        return p_value < alpha and abs(self.difference) > TOLERANCE


class TruncationEvidence(Frozen):
    """What is known of truncation in one run, or in two."""

    verdict: Verdict
    conclusion: str
    arms: tuple[TruncationArm, ...]
    difference: float | None
    """Truncation rate of the first run minus that of the second over common items; None for one run, or where one is
    known and the other guessed or unknown."""
    difference_ci: tuple[float | None, float | None]
    p_value: float | None
    comparisons: tuple[RateComparison, ...]
    null_hypothesis: str = NULL_HYPOTHESIS
    family: str = "p_holm is corrected over empty, unreadable and error rows; truncation is tested by itself"
    tolerance: float = TOLERANCE
    alpha: float
