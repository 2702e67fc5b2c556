"""Trials, the shards that carry them, and what comes back: completions and grades."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from pydantic_core.core_schema import json_or_python_schema, no_info_after_validator_function

from proctor.domain.base import Frozen, Section
from proctor.domain.canonical import quoted, text_id
from proctor.domain.labels import LabelScheme

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

#: The stages of an audit: items are reworded by a model, solvers answer both wordings, routers pass them on, the model
#: under audit answers.
PARAPHRASE_STAGE = "paraphrase"
CHECK_STAGE = "check"
TRANSMIT_STAGE = "transmit"
ANSWER_STAGE = "answer"

FinishReason = Literal["stop", "length", "error", "unknown"]


class Arm(StrEnum):
    """The condition under which an item is asked."""

    CANONICAL = "canonical"
    PERTURBED = "perturbed"
    CLEAN_ROUTER_1 = "clean_router_1"
    CLEAN_ROUTER_2 = "clean_router_2"
    CLEAN_ROUTER_3 = "clean_router_3"
    CLEAN_ROUTER_4 = "clean_router_4"
    CLEAN_ROUTER_5 = "clean_router_5"
    CLEAN_ROUTER_6 = "clean_router_6"
    CLEAN_ROUTER_7 = "clean_router_7"
    CLEAN_ROUTER_8 = "clean_router_8"
    CLEAN_ROUTER_9 = "clean_router_9"
    NOISY_ROUTER_1 = "noisy_router_1"
    NOISY_ROUTER_2 = "noisy_router_2"
    NOISY_ROUTER_3 = "noisy_router_3"
    NOISY_ROUTER_4 = "noisy_router_4"
    NOISY_ROUTER_5 = "noisy_router_5"
    NOISY_ROUTER_6 = "noisy_router_6"
    NOISY_ROUTER_7 = "noisy_router_7"
    NOISY_ROUTER_8 = "noisy_router_8"
    NOISY_ROUTER_9 = "noisy_router_9"
    FRESH = "fresh"
    CONTROL_CANONICAL = "control_canonical"
    CONTROL_PERTURBED = "control_perturbed"

    @property
    def is_direct(self) -> bool:
        """Whether the model is asked an item of the benchmark itself, in some wording, and not through routers."""
        return self in DIRECT_ARMS


#: The arms in which the benchmark's items are asked themselves, in some wording.
DIRECT_ARMS: Final = frozenset({Arm.CANONICAL, Arm.PERTURBED})
#: The same, the canonical wording first.
WORDED_ARMS: Final = (Arm.CANONICAL, Arm.PERTURBED)
#: Those in which control items are asked as the benchmark's are, the canonical wording first.
CONTROL_ARMS: Final = (Arm.CONTROL_CANONICAL, Arm.CONTROL_PERTURBED)
#: Those in which routers pass them on.
ROUTED_ARMS: Final = frozenset(arm for arm in Arm if "_router_" in arm)


class Trial(Frozen):
    """One prompt to one model."""

    stage: str = ANSWER_STAGE
    arm: Arm
    item_id: str
    variant_id: str | None = None
    router_index: int = 0
    replicate: int = 0
    prompt: str
    choices: tuple[str, ...] = ()
    """The options in the order in which this prompt shows them."""
    labels: LabelScheme | None = Field(default=None, exclude_if=lambda labels: labels is None)
    """How this prompt labels them; None for A., B., C., …. Left out of what is written where it is not set."""

    @property
    def trial_id(self) -> str:
        """Identifier within its audit, over the key of design.md (stage, arm, item, variant, router, replicate)."""
        # Canonical JSON written out, because every service does this for every trial; short_id takes twice as long.
        variant = "null" if self.variant_id is None else quoted(self.variant_id)
        key = f"[{quoted(self.stage)},{quoted(self.arm)},{quoted(self.item_id)},{variant}"
        return text_id(f"{key},{self.router_index},{self.replicate}]")


class Decoding(Section):
    """How answers are drawn from the model."""

    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """0 is greedy decoding."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Nucleus of the sampling; 1 keeps every token."""
    max_tokens: int = Field(default=512, ge=1, le=131_072)
    """Ceiling of generated tokens; an answer that reaches it is counted as truncated."""
    seed: int | None = Field(default=None, ge=0, le=2**53 - 1)
    """The seed of the sampling, where the endpoint takes one."""
    stop: tuple[str, ...] = Field(default=(), max_length=16)
    """Texts at which an answer ends."""


class Shard(Frozen):
    """Trials of one arm and stage that travel as one message (by reference)."""

    shard_id: str
    stage: str
    arm: Arm
    trials: tuple[Trial, ...] = Field(min_length=1, max_length=256)


def _storable(text: str) -> str:
    return text if text.isascii() else _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


class _StoredAsItIs:
    """JSON that can be read at all holds no half of a pair, so what comes out of a store needs no look in Python."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = handler(source)
        return json_or_python_schema(text, no_info_after_validator_function(_storable, text))


#: Text of a model: a JSON answer may hold half of a surrogate pair, which is no text and cannot be encoded.
StorableText = Annotated[str, _StoredAsItIs]


class Completion(Frozen):
    """What the model returned for a trial. `error` is set when nothing came back; that is not a wrong answer."""

    trial_id: str
    text: StorableText = ""
    finish_reason: FinishReason = "unknown"
    input_tokens: int | None = None
    output_tokens: int | None = None
    model_digest: str | None = None
    endpoint: str = ""
    latency_ms: float = 0.0
    error: StorableText | None = None
    retryable: bool = False
    """With `error`: whether asking again may help (an unreachable endpoint, a deadline), or not (a refused prompt)."""


class Outcome(StrEnum):
    """What a grader says of one completion."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    INVALID = "invalid"


class Grade(Frozen):
    """A graded completion, with the extracted answer and the extractor's name."""

    trial_id: str
    outcome: Outcome
    extracted: str | None = None
    extractor: str
