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
