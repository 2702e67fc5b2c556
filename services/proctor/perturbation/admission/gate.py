"""The admission gate: is a rewording the same question in other words? Pure; the distance is measured elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.labels import labelled
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.renaming import undone
from proctor.perturbation.candidate import Candidate
from proctor.text.answers import keeps_open
from proctor.text.invariants import broken_invariants
from proctor.text.normalise import canonical_text, has_lone_surrogate
from proctor.text.option_labels import stand_apart
from proctor.text.relations import keeps_relations
from proctor.text.surface import containment, token_overlap, word_edit_distance
from proctor.text.told_options import told_options

EMPTY: Final = "empty"
NOT_TEXT: Final = "not_text"
TOO_LONG: Final = "too_long"
OPTIONS_CHANGED: Final = "options_changed"
LABELS_UNCLEAR: Final = "labels_unclear"
OPTION_TOLD: Final = "option_told"
RELATIONS: Final = "relations"
UNCHANGED: Final = "unchanged"
YES_OR_NO: Final = "yes_or_no"
SURFACE_TOO_CLOSE: Final = "surface_too_close"
TOO_CLOSE: Final = "too_close"
TOO_FAR: Final = "too_far"
ANOTHER_ITEM: Final = "another_item"

#: Raise with any change to what the gate decides, so that the library does not answer with an older gate's verdicts.
GATE_VERSION: Final = "4"
#: No benchmark question is longer; embedding a longer one would only cost time.
MAX_QUESTION_CHARACTERS: Final = 200_000
#: Embeddings of the same text differ by about 1e-7 with the batch that it was in; four digits are what is meant.
_DISTANCE_DIGITS: Final = 4
_SHARE_DIGITS: Final = 4


class Placed(NamedTuple):
    """Where the encoder puts a rewording."""

    distance: float
    """Cosine distance from its item's question, both without their options; 0 to 2."""
    margin: float | None = None
    """How much farther the nearest question of another item is. None where nobody asked, and where the rewording has
    its item's question as it stands: there is nothing that it could be taken for instead."""


class Screened(NamedTuple):
    """What the surface said of a candidate that kept the answer invariants."""

    token_overlap: float
    edit_distance: float
    containment: float


def screen(item: Item, candidate: Candidate, settings: PerturbationSection) -> Screened | Rejection:
    """The checks that need no encoder: is it text, answer invariants, surface difference."""
    reason = _unusable(item, candidate)
    if reason is not None:
        return Rejection(item_id=item.item_id, reason=reason[0], detail=reason[1])
    # Names that a strategy declares to have replaced are put back, so that any other change of a name is seen.
    question = undone(candidate.question, candidate.provenance)
    broken = broken_invariants(item.question, question)
    if broken:
        # Counted once, by the first: the order is that of severity.
        detail = f"does not keep: {', '.join(broken)}"
        return Rejection(item_id=item.item_id, reason=broken[0], detail=detail)
    reason = _misread(item, question, settings)
    if reason is not None:
        return Rejection(item_id=item.item_id, reason=reason[0], detail=reason[1])
    screened = surface(item, candidate)
    too_close = _surface_faults(screened, settings)
    if too_close:
        return Rejection(item_id=item.item_id, reason=SURFACE_TOO_CLOSE, detail="; ".join(too_close))
    return screened


def surface(item: Item, candidate: Candidate) -> Screened:
    """How different a candidate looks, whatever it means."""
    # Behind other labels every option looks different, as it does behind another option.
    shown = candidate.choices if candidate.labels is None else labelled(candidate.choices, candidate.labels)
    overlap = token_overlap(item.question, candidate.question, item.choices, shown)
    return Screened(
        token_overlap=round(overlap, _SHARE_DIGITS),
        edit_distance=round(word_edit_distance(item.question, candidate.question), _SHARE_DIGITS),
        containment=round(containment(item.question, candidate.question), _SHARE_DIGITS),
    )


def weigh(
    item: Item, candidate: Candidate, screened: Screened, placed: Placed, settings: PerturbationSection
) -> Variant | Rejection:
    """The semantic window and the margin to other items, for a candidate that passed `screen`.

    Args:
        item: the item that is reworded.
        candidate: its rewording.
        screened: what `screen` measured.
        placed: where the encoder puts it.
        settings: the suite's window and margin.

    Raises:
        ValueError: when the settings ask for a margin that was not measured.
    """
    distance = rounded_distance(placed.distance)
    low, high = settings.min_semantic_distance, settings.max_semantic_distance
    if not low <= distance <= high:
        close = distance < low
        return Rejection(
            item_id=item.item_id,
            reason=TOO_CLOSE if close else TOO_FAR,
            detail=f"semantic distance {distance:.4f} is {'below' if close else 'above'} {low if close else high}",
        )
    margin = None if placed.margin is None or settings.min_margin is None else rounded_margin(placed.margin)
    if margin is not None and margin < (settings.min_margin or 0.0):
        return Rejection(
            item_id=item.item_id,
            reason=ANOTHER_ITEM,
            detail=(
                f"nearer to its own item ({distance:.4f}) than to another one of the benchmark by {margin:.4f}, which "
                f"is below {settings.min_margin}"
            ),
        )
    if margin is None and settings.min_margin is not None and candidate.question != item.question:
        raise ValueError("the settings ask for a margin to the benchmark's other items, and none was measured")
    return Variant(
        item_id=item.item_id,
        item_hash=item.content_hash,
        strategy=candidate.strategy,
        level=candidate.level,
        question=candidate.question,
        choices=candidate.choices,
        measurements=Measurements(
            semantic_distance=distance,
            token_overlap=screened.token_overlap,
            edit_distance=screened.edit_distance,
            containment=screened.containment,
            margin=margin,
        ),
        provenance=dict(candidate.provenance),
        labels=candidate.labels,
    )


def admit(
    item: Item, candidate: Candidate, distance: float, settings: PerturbationSection, margin: float | None = None
) -> Variant | Rejection:
    """The whole gate, in order: answer invariants, surface difference, semantic distance, margin to other items."""
    screened = screen(item, candidate, settings)
    if isinstance(screened, Rejection):
        return screened
    return weigh(item, candidate, screened, Placed(distance, margin), settings)


def rounded_distance(distance: float) -> float:
    """The distance as it is weighed and kept; rounding error below 0 is 0."""
    return max(0.0, round(distance, _DISTANCE_DIGITS))


def rounded_margin(margin: float) -> float:
    """The margin as it is weighed and kept."""
    return round(margin, _DISTANCE_DIGITS) + 0.0


def _surface_faults(screened: Screened, settings: PerturbationSection) -> list[str]:
    """In which respects a rewording looks too much like the original."""
    faults = []
    if screened.token_overlap > settings.max_token_overlap:
        faults.append(f"token overlap {screened.token_overlap:.4f} is above {settings.max_token_overlap}")
    if screened.containment > settings.max_containment:
        faults.append(f"containment {screened.containment:.4f} is above {settings.max_containment}")
    if screened.edit_distance < settings.min_edit_distance:
        faults.append(f"edit distance {screened.edit_distance:.4f} is below {settings.min_edit_distance}")
    return faults


def _misread(item: Item, question: str, settings: PerturbationSection) -> tuple[str, str] | None:
    if not keeps_open(item.question, question, item.choices):
        return YES_OR_NO, "asks for yes or no, which none of the options says"
    told = told_options(item.question, question, item.choices)
    if told:
        numbers = ", ".join(str(place + 1) for place in told)
        return OPTION_TOLD, f"the question tells the option{'' if len(told) == 1 else 's'} {numbers}"
    if settings.strict_relations and not keeps_relations(item.question, question):
        return RELATIONS, "what is more or less than something else, and by how much, is not the same"
    return None


def _unusable(item: Item, candidate: Candidate) -> tuple[str, str] | None:
    question = candidate.question
    if not question.strip():
        return EMPTY, "the rewording is empty"
    if has_lone_surrogate(question) or any(has_lone_surrogate(choice) for choice in candidate.choices):
        return NOT_TEXT, "the rewording is not valid Unicode"
    if len(question) > MAX_QUESTION_CHARACTERS:
        return TOO_LONG, f"the rewording has {len(question)} characters; at most {MAX_QUESTION_CHARACTERS} are read"
    if candidate.choices != item.choices and Counter(candidate.choices) != Counter(item.choices):
        return OPTIONS_CHANGED, "the options are not the item's options in some order"
    if candidate.labels is not None:
        if not stand_apart(candidate.labels, question, candidate.choices):
            return LABELS_UNCLEAR, f"the labels {candidate.labels.value!r} could be taken for a part of the text"
        return None
    if candidate.choices == item.choices and canonical_text(question) == canonical_text(item.question):
        return UNCHANGED, "the rewording is the original"
    return None
