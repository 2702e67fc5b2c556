"""What the exposure channel found, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proctor.evidence.exposure.recall import FALSE_POSITIVES, REPHRASED, VERBATIM
from proctor.evidence.written_numbers import counted

NO_TUNING_DATA: Final = (
    "No data of a stage of tuning were searched, so that nothing is known of labels that leaked there."
)
NOTHING_TO_LOOK_FOR: Final = "No item is long enough for the policy's rule, so that nothing could be looked for."
_TYPOS: Final = "typos in 10 % of words"


class Found(NamedTuple):
    """What there is to say something of."""

    policy: str
    ngram: int
    stages: tuple[str, ...]
    """That were searched."""
    found_in: tuple[str, ...]
    """Those in which any item was found."""
    n_items: int
    n_exposed: int
    n_labelled: int
    """Exposed with their label, in data of tuning."""
    allowed_pct: float
    recall: Mapping[str, float]


def nothing_found(found: Found) -> str:
    """That none was found, and how little that says."""
    return (
        f"None of the {counted(found.n_items, 'item')} was found in the {_data(found.stages)} by {found.policy}"
        f"{_recall(found)}. That is no sign that they were not seen."
    )


def past_limit(found: Found) -> str:
    """Why the channel says contaminated."""
    return f"{_exposed(found)}, more than the {found.allowed_pct:g} % that the suite allows{_labels(found)}."


def within_limit(found: Found) -> str:
    """That some were found, and no more than is allowed."""
    return (
        f"{_exposed(found)}, within the {found.allowed_pct:g} % that the suite allows{_labels(found)}. Of the others "
        f"nothing follows{_recall(found, begins='; the policy')}."
    )


def no_copies(found: Found) -> str:
    """That more were found than is allowed, by a rule that says little."""
    return f"{_exposed(found)}, more than the {found.allowed_pct:g} % that the suite allows{_labels(found)}."


def phrases_in_common(found: Found) -> str:
    """Why such a rule contaminates nothing."""
    return (
        f"{found.policy} also counts items that share no more than a phrase with a document, so it settles nothing; a "
        "policy of copies, e.g. article_8gram_80, would."
    )


def unread(why: str) -> str:
    """Why nothing follows."""
    return f"The training data could not be searched well enough: {why}."


def too_short(n: int, of: int) -> str:
    """That some could not be looked for."""
    return f"{n:,} of the {counted(of, 'item')} {'is' if n == 1 else 'are'} too short for the policy's rule."


def _exposed(found: Found) -> str:
    stand = "stands" if found.n_exposed == 1 else "stand"
    share = 100 * found.n_exposed / found.n_items
    return (
        f"{found.n_exposed:,} of the {counted(found.n_items, 'item')} ({share:.1f} %) {stand} in the "
        f"{_data(found.found_in)} by {found.policy}"
    )


def _labels(found: Found) -> str:
    return f"; {found.n_labelled:,} of them with their label in data of tuning" if found.n_labelled else ""


def _data(stages: tuple[str, ...]) -> str:
    return f"{' and '.join(stages)} data"


def _recall(found: Found, *, begins: str = ", which") -> str:
    if not found.recall:
        return f"{begins} was not measured with {found.ngram}-grams"
    return (
        f"{begins} finds {found.recall[VERBATIM]:g} % of verbatim copies, {found.recall[_TYPOS]:g} % of those with "
        f"typos in a tenth of their words and {found.recall[REPHRASED]:g} % of rephrased ones, with "
        f"{found.recall[FALSE_POSITIVES]:g} % false positives"
    )
