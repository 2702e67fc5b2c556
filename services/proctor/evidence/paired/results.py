"""What a comparison of two runs found: under each extractor, and over all of them."""

from __future__ import annotations

from enum import StrEnum

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError
from proctor.domain.evidence import Estimate
from proctor.domain.recorded_card import ProtocolComparison

NULL_HYPOTHESIS = "both runs have the same accuracy on these items"


class PairedVerdict(StrEnum):
    """What a comparison of two runs says."""

    A_BETTER = "a_better"
    B_BETTER = "b_better"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    EXTRACTOR_DECIDES = "extractor_decides"


class ExcludedItem(Frozen):
    """An item that is not compared."""

    id: str
    run: str
    """Whose log is the reason: a, b or both."""
    reason: str


class TruncationComparison(Frozen):
    """Answers cut at a token limit, over the items of which both logs say whether they were."""

    n: int
    a: int
    b: int
    only_a: int
    only_b: int
    p_value: float
    differs: bool
    """Significantly, and by more than two points."""
    basis: str
    """What the logs tell it by: finish reasons, token counts against the limit, or both."""


class EquivalenceResult(Frozen):
    """Two one-sided tests against a tolerance; differences are fractions."""

    tolerance: float
    p_value: float
    interval: tuple[float, float]
    level: float


class ExtractorComparison(Frozen):
    """Two runs compared under one extractor. Differences are fractions, A minus B."""

    extractor: str
    regraded: bool
    """Whether Proctor graded the texts again; otherwise the grades are the logs' own."""
    votes: bool
    """Whether its verdict counts: always for the logs' own grades; for texts graded again where the extractor found an
    answer in at least half of each run's compared texts."""
    n: int
    n_a_correct: int
    n_b_correct: int
    both: int
    only_a: int
    only_b: int
    neither: int
    accuracy_a: Estimate
    accuracy_b: Estimate
    delta: Estimate
    delta_bootstrap: Estimate
    p_value: float
    p_holm: float | None
    """Corrected over the extractors that vote; None for one that does not."""
    mde: float | None
    """Smallest difference that these items show with 80 % power; None where none would be shown."""
    items_needed: int | None
    """Items at which a difference such as the one seen is found with 80 % power."""
    equivalence: EquivalenceResult | None
    unread_a: int
    """Compared answers of A in which the extractor found nothing, as far as the log says."""
    unread_b: int
    paired_by_content: int
    excluded: tuple[ExcludedItem, ...]
    verdict: PairedVerdict


class ProtocolsDifferError(BadInputError):
    """Two runs that were made under different protocols, and that nobody asked to compare all the same."""

    def __init__(self, text: str, protocol: ProtocolComparison) -> None:
        self.protocol = protocol
        super().__init__(text)


class Comparison(Frozen):
    """Two runs compared. `extractors` holds the primary one first; `verdict` is over all of them."""

    a: str
    b: str
    format_a: str
    """Which format the log was read as, and of which distribution where a plug-in read it."""
    format_b: str
    verdict: PairedVerdict
    conclusion: str
    null_hypothesis: str = NULL_HYPOTHESIS
    alpha: float
    seed: int
    truncation: TruncationComparison | None
    """None where the logs do not both say which answers were cut."""
    protocol: ProtocolComparison
    """The cards of both runs under the primary extractor: what differs, and what a log does not record."""
    extractors: tuple[ExtractorComparison, ...]
    only_in_one: tuple[str, ...]
    """Extractors that one log alone has, and which are therefore not compared."""

    @property
    def voting(self) -> tuple[ExtractorComparison, ...]:
        """The extractors whose verdicts count."""
        return tuple(one for one in self.extractors if one.votes)

    @property
    def sensitivity(self) -> tuple[float, float] | None:
        """The lowest and the highest difference over the extractors that vote; None where none does."""
        differences = [one.delta.value for one in self.voting if one.delta.value is not None]
        return (min(differences), max(differences)) if differences else None

    @property
    def primary(self) -> ExtractorComparison:
        """The comparison under the logs' primary extractor, or the one that was asked for."""
        return self.extractors[0]
