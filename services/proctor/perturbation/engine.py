"""The engine: candidates for every item, each distinct text embedded once, gated, kept in the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.manifest import VariantSet
from proctor.domain.suite import PerturbationSection
from proctor.domain.trial import Trial
from proctor.perturbation.admission.gate import Screened, rounded_distance, screen, weigh
from proctor.perturbation.admission.starvation import check_yield
from proctor.perturbation.attempts import Attempts
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.library.store import Outcome, VariantLibrary, library_key
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.strategies.model.calls import Answers, was_asked_about
from proctor.runtime.progress import note_step

#: Candidates tried for each variant that is wanted, at least this many in all: where most are turned away, an item
#: should not be given up after the first few, nor a hopeless one cost hundreds of embeddings.
_TRIES_PER_VARIANT: Final = 4
_MIN_TRIES: Final = 16
#: The same where a model is asked for each of them, which costs money.
_ASKED_PER_VARIANT: Final = 3


class ItemResult(NamedTuple):
    """What became of an item, and whether the library knew it."""

    outcome: Outcome
    from_library: bool


class Reworded(NamedTuple):
    """What became of each item, in their order; or, before that, what the model must be asked. One of them is empty."""

    results: tuple[ItemResult, ...]
    needed: tuple[Trial, ...]


def build(
    items: Sequence[Item],
    settings: PerturbationSection,
    *,
    chain: Chain,
    encoder: Encoder,
    library: VariantLibrary,
    others: OtherItems | None = None,
) -> VariantSet:
    """Reword items by a chain that asks no model; see `reword` and `variant_set`."""
    results = reword(items, settings, chain=chain, encoder=encoder, library=library, others=others)
    return variant_set(results, settings, chain=chain, encoder=encoder)


def variant_set(
    results: Sequence[ItemResult], settings: PerturbationSection, *, chain: Chain, encoder: Encoder
) -> VariantSet:
    """The variants and rejections of all items.

    An item without a variant is not audited, and its rejections say why. The same input and seed give the same bytes:
    variants and rejections stand in the order of the items and, within one, of the candidates.

    Raises:
        BadInputError: when fewer than `min_yield` of the items get a variant; the message counts the rejections by
            reason and names the mend.
    """
    check_yield([one.outcome for one in results], settings, chain.name)
    return collected(results, encoder)


def collected(results: Sequence[ItemResult], encoder: Encoder) -> VariantSet:
    """As `variant_set`, however few of the items got a variant."""
    outcomes = [one.outcome for one in results]
    return VariantSet(
        variants=tuple(variant for outcome in outcomes for variant in outcome.variants),
        rejections=tuple(rejection for outcome in outcomes for rejection in outcome.rejections),
        encoder=f"{encoder.name}@{encoder.digest}",
        from_library=sum(len(one.outcome.variants) for one in results if one.from_library),
    )


def reword(
    items: Sequence[Item],
    settings: PerturbationSection,
    *,
    chain: Chain,
    encoder: Encoder,
    library: VariantLibrary,
    others: OtherItems | None = None,
) -> list[ItemResult]:
    """What became of each item, in their order, whatever share of them got a variant: one batch of a stream.

    Up to `num_variants_per_item` variants are admitted an item; where candidates are turned away, further ones are
    tried.

    Raises:
        EncoderError: when distances cannot be measured.
        ValueError: for a chain that asks a model; see `reword_by_answers`.
    """
    if chain.asks_a_model:
        raise ValueError(f"{chain.name} asks a model: see engine.reword_by_answers")
    reworded = reword_by_answers(
        items, settings, chain=chain, encoder=encoder, library=library, answers={}, others=others
    )
    return list(reworded.results)


def reword_by_answers(
    items: Sequence[Item],
    settings: PerturbationSection,
    *,
    chain: Chain,
    encoder: Encoder,
    library: VariantLibrary,
    answers: Answers,
    measured: PairDistances | None = None,
    others: OtherItems | None = None,
) -> Reworded:
    """Reword as far as the model's answers reach.

    Call it again with the answers to what was needed, until nothing is. Every round makes the unfinished items' from
    their beginning, so the same answers give the same bytes however they were parted into rounds. Items are kept in
    the library as they are finished, but for those that a failing model left short of variants: a later build asks for
    these again, while this one uses what they got.

    Args:
        items: the items.
        settings: the suite's, with the window that a calibrated gate has learned.
        chain: the strategies.
        encoder: measures semantic distances.
        library: what was made before.
        answers: everything that the model has said about these items so far.
        measured: distances that earlier rounds measured with this encoder and window, added to; see `distances_for`.
        others: the questions of the whole benchmark, where the settings ask for a margin to them: the same ones
            whichever of its items are reworded together, so that no verdict depends on that.

    Raises:
        EncoderError: when distances cannot be measured.
    """
    if settings.gate != "fixed":
        raise ValueError("the window of a calibrated gate is not resolved: see calibration.with_window")
    if settings.min_margin is not None and others is None:
        raise ValueError("the settings ask for a margin to the benchmark's other items: see other_items")
    against = None if settings.min_margin is None or others is None else others.digest
    keys = [library_key(item, chain, settings, encoder.fingerprint, against) for item in items]
    known = library.find(keys)
    work = _attempts(
        {key: item for key, item in zip(keys, items, strict=True) if key not in known}, settings, chain, answers
    )
    _try_all(list(work.values()), settings, chain, measured or distances_for(settings, encoder, others))
    library.add({key: one.outcome for key, one in work.items() if not one.needed and one.settled})
    needed = tuple(trial for one in work.values() for trial in one.needed)
    if needed:
        return Reworded((), needed)
    outcomes = {**known, **{key: one.outcome for key, one in work.items()}}
    # What an earlier round of this build put into the library is this build's own work.
    mine = {key for key, item in zip(keys, items, strict=True) if answers and was_asked_about(item.item_id, answers)}
    results = tuple(
        ItemResult(outcomes[key].of_item(item.item_id), key in known and key not in mine)
        for key, item in zip(keys, items, strict=True)
    )
    return Reworded(results, ())


def distances_for(settings: PerturbationSection, encoder: Encoder, others: OtherItems | None = None) -> PairDistances:
    """Where the rounds of one build keep their embeddings, so that no text is embedded again in the next."""
    return PairDistances(
        encoder,
        window=(settings.min_semantic_distance, settings.max_semantic_distance),
        others=None if settings.min_margin is None else others,
        min_margin=settings.min_margin,
    )


def _attempts(
    items: Mapping[str, Item], settings: PerturbationSection, chain: Chain, answers: Answers
) -> dict[str, Attempts]:
    wanted = settings.num_variants_per_item
    limit = _ASKED_PER_VARIANT * wanted if chain.asks_a_model else max(_MIN_TRIES, _TRIES_PER_VARIANT * wanted)
    return {
        key: Attempts(item, chain.proposals(item, seed=settings.seed, limit=limit, answers=answers), wanted)
        for key, item in items.items()
    }


def _try_all(work: Sequence[Attempts], settings: PerturbationSection, chain: Chain, measured: PairDistances) -> None:
    """Go on with every item until it has its variants, has nothing left to try, or waits for the model."""
    # In rounds over all items, so that texts are embedded in full batches although most items need one round only.
    unfinished = list(work)
    while unfinished:
        note_step()
        _try_next(unfinished, settings, measured)
        unfinished = [one for one in unfinished if one.goes_on]
    for one in work:
        if one.came_to_nothing:
            reason, detail = chain.nothing_for(one.item, seed=settings.seed)
            one.rejections.append(Rejection(item_id=one.item.item_id, reason=reason, detail=detail))


def _try_next(work: Sequence[Attempts], settings: PerturbationSection, measured: PairDistances) -> None:
    """Gate the next candidates of every item."""
    screened: list[tuple[Attempts, Candidate, Screened]] = []
    for one in work:
        for attempt in one.take():
            if isinstance(attempt, Rejection):
                one.rejections.append(attempt)
                continue
            result = screen(one.item, attempt, settings)
            if isinstance(result, Rejection):
                one.rejections.append(result)
            else:
                screened.append((one, attempt, result))
    pairs = [(one.item.question, candidate.question) for one, candidate, _ in screened]
    for (one, candidate, result), placed in zip(screened, measured.placed(pairs), strict=True):
        one.distances.append(rounded_distance(placed.distance))
        verdict = weigh(one.item, candidate, result, placed, settings)
        if isinstance(verdict, Variant):
            one.variants.append(verdict)
        else:
            one.rejections.append(verdict)
