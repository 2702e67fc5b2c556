"""What each policy was measured to find of planted problems, in percent: the table of docs/exposure.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VERBATIM: Final = "verbatim"
REPHRASED: Final = "rephrased by GPT-4"
FALSE_POSITIVES: Final = "false positives"
_ROWS: Final = (
    VERBATIM,
    "re-wrapped",
    "markdown",
    "typos in 10 % of words",
    "first 90 % of words",
    "first 50 % of words",
    "embedded in a longer text",
    REPHRASED,
    FALSE_POSITIVES,
)
_MEASURED: Final[Mapping[str, tuple[float, ...]]] = {
    "article_8gram_80": (100.0, 100.0, 100.0, 6.7, 99.6, 0.0, 100.0, 0.0, 0.0),
    "idf_containment": (100.0, 100.0, 100.0, 14.3, 100.0, 0.0, 100.0, 0.0, 0.0),
    "verbatim_item": (100.0, 100.0, 100.0, 2.4, 0.0, 0.0, 100.0, 0.0, 0.0),
    "gpt3_13gram": (100.0, 100.0, 100.0, 82.9, 100.0, 94.0, 100.0, 0.0, 0.2),
    "palm_8gram_70": (100.0, 100.0, 100.0, 13.6, 100.0, 0.0, 100.0, 0.0, 0.0),
    "any_ngram": (100.0, 100.0, 100.0, 82.9, 100.0, 94.0, 100.0, 0.0, 0.2),
}
#: Policy, with n-grams of its own size → what was done to a problem → how many of such it found.
RECALL_PCT: Final[Mapping[str, Mapping[str, float]]] = {
    policy: dict(zip(_ROWS, found, strict=True)) for policy, found in _MEASURED.items()
}
#: The size of n-grams with which each was measured.
MEASURED_WITH: Final[Mapping[str, int]] = {
    "article_8gram_80": 8, "idf_containment": 5, "verbatim_item": 5, "gpt3_13gram": 13, "palm_8gram_70": 8,
    "any_ngram": 13,
}  # fmt: skip


def recall_of(policy: str, ngram: int) -> Mapping[str, float]:
    """What was measured of a policy with n-grams of this size; empty where nothing was."""
    return RECALL_PCT.get(policy, {}) if MEASURED_WITH.get(policy) == ngram else {}
