"""Building a suite's variants in this process, batch by batch, so that what is made is kept when it is interrupted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from proctor.cli.variants.opening import SuiteVariants
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.trial import Completion, Trial
from proctor.perturbation.admission.starvation import check_yield
from proctor.perturbation.engine import ItemResult, distances_for, reword_by_answers
from proctor.perturbation.library.store import VariantLibrary

#: Items gated together: their texts fill the encoder's batches, and no more than these are lost by an interruption.
_BATCH_ITEMS: Final = 64
#: Commands that take longer than this say what they are doing, and not more often.
_QUIET_S: Final = 2.0


Ask = Callable[[Sequence[Trial]], Mapping[str, Completion]]
"""Asks the rewording model: one completion for every trial, by its identifier, with an error where there is none."""


class BuildSummary(NamedTuple):
    """What a build came to. Lists of items are in the suite's order."""

    suite: str
    benchmark: str
    strategy: str
    encoder: str
    encoder_loaded: bool
    """False where everything came from the library."""
    wanted: int
    """Variants an item."""
    items: int
    items_from_library: int
    items_with_variants: int
    variants: int
    variants_from_library: int
    rejected: dict[str, int]
    """Candidates that were turned away, by reason, most frequent first."""
    short: tuple[str, ...]
    """Items with some variants, and fewer than wanted."""
    without: dict[str, str]
    """Items without a variant, which are not audited, and the reasons."""
    notes: tuple[str, ...]

    @property
    def conclusion(self) -> str:
        """The build in one sentence."""
        share = 100 * self.items_with_variants / self.items
        whence = (
            "all of it from the library, and no text was embedded"
            if self.items_from_library == self.items
            else f"{self.items_from_library:,} items from the library"
        )
        return (
            f"{self.items_with_variants:,} of {self.items:,} items ({share:.1f} %) have a variant, {self.variants:,} "
            f"variants in all; {whence}."
        )

    def document(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {**self._asdict(), "conclusion": self.conclusion}


def build_suite(
    opened: SuiteVariants, library: VariantLibrary, progress: Callable[[str], None], ask: Ask | None = None
) -> BuildSummary:
    """Reword a suite's items, or find them reworded in the library.

    Args:
        opened: the suite.
        library: where outcomes are looked up and kept.
        progress: told now and then, after the first two seconds, how far the build has come.
        ask: asks the rewording model, where a strategy needs one.

    Raises:
        BadInputError: when fewer than `min_yield` of the items get a variant; what was made is kept. Also when a model
            must be asked and there is no `ask`.
        EncoderError: when distances cannot be measured.
    """
    results: list[ItemResult] = []
    admitted, reasons = 0, Counter[str]()
    told = time.monotonic()
    for start in range(0, len(opened.items), _BATCH_ITEMS):
        batch = opened.items[start : start + _BATCH_ITEMS]
        made = _reword(batch, opened, library, ask)
        results.extend(made)
        admitted += sum(len(one.outcome.variants) for one in made)
        reasons.update(rejection.reason for one in made for rejection in one.outcome.rejections)
        if time.monotonic() - told > _QUIET_S:
            told = time.monotonic()
            progress(f"{len(results):,} of {len(opened.items):,} items, {admitted:,} admitted, {counted(reasons)}")
    check_yield([one.outcome for one in results], opened.section, opened.chain.name)
    return _summary(opened, results, reasons)


def _reword(
    batch: Sequence[Item], opened: SuiteVariants, library: VariantLibrary, ask: Ask | None
) -> tuple[ItemResult, ...]:
    """One batch, asking the model as often as it takes."""
    answers: dict[str, Completion] = {}
    measured = distances_for(opened.section, opened.encoder, opened.others)
    while True:
        reworded = reword_by_answers(
            batch,
            opened.section,
            chain=opened.chain,
            encoder=opened.encoder,
            library=library,
            answers=answers,
            measured=measured,
            others=opened.others,
        )
        if not reworded.needed:
            return reworded.results
        if ask is None:
            raise BadInputError(
                f"perturbation_strategy {opened.chain.name!r} asks a model, and this command does not ask one: the "
                "audit does (`proctor audit run`), and keeps what it makes in the library"
            )
        answers.update(ask(reworded.needed))


def counted(reasons: Mapping[str, int]) -> str:
    """Rejections by reason, most frequent first, in words."""
    if not reasons:
        return "none rejected"
    return "rejected: " + ", ".join(f"{count:,} {reason}" for reason, count in ranked(reasons).items())


def ranked(reasons: Mapping[str, int]) -> dict[str, int]:
    """The reasons, most frequent first."""
    return dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))


def _summary(opened: SuiteVariants, results: list[ItemResult], reasons: Counter[str]) -> BuildSummary:
    wanted = opened.section.num_variants_per_item
    numbers = [len(one.outcome.variants) for one in results]
    named = [item.item_id for item in opened.items]
    return BuildSummary(
        suite=opened.suite.audit_suite_id,
        benchmark=opened.benchmark,
        strategy=opened.chain.name,
        encoder=opened.encoder_name,
        encoder_loaded=opened.encoder.loaded,
        wanted=wanted,
        items=len(results),
        items_from_library=sum(one.from_library for one in results),
        items_with_variants=sum(map(bool, numbers)),
        variants=sum(numbers),
        variants_from_library=sum(n for n, one in zip(numbers, results, strict=True) if one.from_library),
        rejected=ranked(reasons),
        short=tuple(item_id for item_id, n in zip(named, numbers, strict=True) if 0 < n < wanted),
        without={
            item_id: ", ".join(sorted({rejection.reason for rejection in one.outcome.rejections}))
            for item_id, one in zip(named, results, strict=True)
            if not one.outcome.variants
        },
        notes=opened.notes,
    )
