"""What an exposure policy says of one item."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ExposureVerdict(StrEnum):
    """What an item's result may be taken for, by a policy; the worst of its stages of training."""

    CLEAN_COMPARABLE = "clean_comparable"
    """The policy's rule does not hold. Nothing is said of what the policy cannot see."""
    SCOPE_LIMITED = "scope_limited"
    """It stands in training data, or was asked by another template: the result says nothing of unseen items."""
    INVALID_EVIDENCE = "invalid_evidence"
    """Its label leaked into data that the model was tuned on: the result is no evidence."""
    UNSCORABLE = "unscorable"
    """It is too short for the policy's rule."""


#: Stages in which a model is shown what to answer, by the names in use.
TUNING_STAGES: Final = frozenset(("tune", "finetune", "instruct", "sft", "rlhf", "dpo"))


#: Policies that a suite may name. Its items are thousands, and the one by sets of tokens is for small histories alone.
AUDIT_POLICIES: Final = (
    "article_8gram_80", "idf_containment", "verbatim_item", "gpt3_13gram", "palm_8gram_70", "any_ngram",
)  # fmt: skip
#: Those of whose finds every one is a copy, whole or nearly: by the others an item may count as exposed that shares a
#: phrase with a document.
OF_COPIES: Final = frozenset(("article_8gram_80", "idf_containment", "verbatim_item", "palm_8gram_70"))

#: Name of the form in which items and documents are compared (`proctor.text.overlap_words`), as a protocol card has it.
NORMALISATION: Final = "words-1"
MARKUP_REMOVED: Final = "+without-markup"


def exposure_form(without_markup: bool) -> str:
    """The name of the form, with or without what is taken out before."""
    return NORMALISATION + (MARKUP_REMOVED if without_markup else "")
