"""The engine: candidates for every item, each distinct text embedded once, gated, kept in the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.manifest import VariantSet
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import Screened, rounded_distance, screen, weigh
from proctor.perturbation.admission.starvation import check_yield
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.library.store import Outcome, VariantLibrary, library_key
from proctor.perturbation.strategies.compose import Chain

#: Candidates tried for each variant that is wanted, at least this many in all: where most are turned away, an item
#: should not be given up after the first few, nor a hopeless one cost hundreds of embeddings.
_TRIES_PER_VARIANT: Final = 4
_MIN_TRIES: Final = 16


class ItemResult(NamedTuple):
    """What became of an item, and whether the library knew it."""

    outcome: Outcome
    from_library: bool


@dataclass
class _Work:
    """An item that the library does not know, and how far it has come."""

    item: Item
    candidates: list[Candidate]
    next_candidate: int = 0
    variants: list[Variant] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)

    def take(self, wanted: int) -> list[Candidate]:
        """The next candidates, as many as variants are still missing."""
        stop = self.next_candidate + wanted - len(self.variants)
        taken = self.candidates[self.next_candidate : stop]
        self.next_candidate += len(taken)
        return taken

    def unfinished(self, wanted: int) -> bool:
        """Whether variants are missing and candidates left."""
        return len(self.variants) < wanted and self.next_candidate < len(self.candidates)

    @property
    def outcome(self) -> Outcome:
        return Outcome(
            variants=tuple(self.variants), rejections=tuple(self.rejections), distances=tuple(self.distances)
        )


def build(
    items: Sequence[Item],
    settings: PerturbationSection,
    *,
    chain: Chain,
    encoder: Encoder,
    library: VariantLibrary,
) -> VariantSet:
    """Reword items.

    Up to `num_variants_per_item` variants are admitted an item; where candidates are turned away, further ones are
    tried. An item without a variant is not audited, and its rejections say why. The same input and seed give the
    same bytes: variants and rejections stand in the order of the items and, within one, of the candidates.

    Raises:
        BadInputError: when fewer than `min_yield` of the items get a variant; the message counts the rejections by
            reason and names the mend.
        EncoderError: when distances cannot be measured.
    """
    reworded = reword(items, settings, chain=chain, encoder=encoder, library=library)
    outcomes = [one.outcome for one in reworded]
    check_yield(outcomes, settings, chain.name)
    return VariantSet(
        variants=tuple(variant for outcome in outcomes for variant in outcome.variants),
        rejections=tuple(rejection for outcome in outcomes for rejection in outcome.rejections),
        encoder=f"{encoder.name}@{encoder.digest}",
        from_library=sum(len(one.outcome.variants) for one in reworded if one.from_library),
    )


def reword(
    items: Sequence[Item],
    settings: PerturbationSection,
    *,
    chain: Chain,
    encoder: Encoder,
    library: VariantLibrary,
) -> list[ItemResult]:
    """What became of each item, in their order, whatever share of them got a variant: one batch of a stream.

    Raises:
        EncoderError: when distances cannot be measured.
    """
    if settings.gate != "fixed":
        raise ValueError("the window of a calibrated gate is not resolved: see calibration.with_window")
    keys = [library_key(item, chain, settings, encoder.fingerprint) for item in items]
    known = library.find(keys)
    fresh = _make(
        {key: item for key, item in zip(keys, items, strict=True) if key not in known}, settings, chain, encoder
    )
    library.add(fresh)
    return [
        ItemResult((known.get(key) or fresh[key]).of_item(item.item_id), key in known)
        for key, item in zip(keys, items, strict=True)
    ]


def _make(items: dict[str, Item], settings: PerturbationSection, chain: Chain, encoder: Encoder) -> dict[str, Outcome]:
    wanted = settings.num_variants_per_item
    limit = max(_MIN_TRIES, _TRIES_PER_VARIANT * wanted)
    work = {key: _Work(item, chain.candidates(item, seed=settings.seed, limit=limit)) for key, item in items.items()}
    for one in work.values():
        if not one.candidates:
            reason, detail = chain.nothing_for(one.item, seed=settings.seed)
            one.rejections.append(Rejection(item_id=one.item.item_id, reason=reason, detail=detail))
    measured = PairDistances(encoder)
    # In rounds over all items, so that texts are embedded in full batches although most items need one round only.
    unfinished = list(work.values())
    while unfinished:
        _try_next(unfinished, settings, wanted, measured)
        unfinished = [one for one in unfinished if one.unfinished(wanted)]
    return {key: one.outcome for key, one in work.items()}


def _try_next(work: Sequence[_Work], settings: PerturbationSection, wanted: int, measured: PairDistances) -> None:
    """Gate the next candidates of every item."""
    screened: list[tuple[_Work, Candidate, Screened]] = []
    for one in work:
        for candidate in one.take(wanted):
            result = screen(one.item, candidate, settings)
            if isinstance(result, Rejection):
                one.rejections.append(result)
            else:
                screened.append((one, candidate, result))
    pairs = [(one.item.question, candidate.question) for one, candidate, _ in screened]
    for (one, candidate, result), distance in zip(screened, measured.of(pairs), strict=True):
        one.distances.append(rounded_distance(distance))
        verdict = weigh(one.item, candidate, result, distance, settings)
        if isinstance(verdict, Variant):
            one.variants.append(verdict)
        else:
            one.rejections.append(verdict)
