"""Items (benchmark problems) and the variants that reword them."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest, quoted, text_id
from proctor.domain.labels import LabelScheme
from proctor.domain.versions import added

#: Options are asked for by letter, so there can be no more than the alphabet has.
MAX_CHOICES = 26


class Item(Frozen):
    """One benchmark problem.

    `target` is the right answer's text; for a multiple-choice item it is one of `choices`, so that shuffling
    the options cannot make it wrong.
    """

    item_id: str = Field(min_length=1, max_length=256)
    question: str = Field(min_length=1)
    choices: tuple[str, ...] = Field(default=(), max_length=MAX_CHOICES)
    target: str
    dimension: str = ""
    cluster: str | None = Field(default=None, max_length=256, exclude_if=lambda cluster: cluster is None)
    """What it shares with others, e.g. a passage; None for an item that is a cluster of its own. A name and no number:
    it is compared for equality alone. Not written where there is none, so that stored items keep their digests."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _target_is_one_choice(self) -> Self:
        if self.choices and self.choices.count(self.target) != 1:
            raise ValueError(
                f"item {self.item_id!r}: the target {self.target!r} must be exactly one of the "
                f"{len(self.choices)} choices"
            )
        return self

    @property
    def content_hash(self) -> str:
        """Digest of what is asked and what is right; two items with equal hashes are the same problem."""
        return json_digest({"question": self.question, "choices": self.choices, "target": self.target})


class Measurements(Frozen):
    """What the admission gate measured between an item's question and a rewording of it."""

    semantic_distance: float
    """Cosine distance of the encoder's embeddings of the two questions, without their options; 0 to 2."""
    token_overlap: float
    """Jaccard overlap of the questions' word bigrams, and of their option order where they have options; 0 to 1."""
    edit_distance: float
    """Levenshtein distance over word tokens, divided by the longer length; 0 to 1."""
    containment: float | None = None
    """Share of the question's word 5-grams that the rewording holds; 0 to 1. None in rows of before it was measured."""
    margin: float | None = added(None, since=2)
    """How much nearer the rewording is to its item's question than to any other item's of the benchmark, as difference
    of the two distances; -2 to 2. None where the gate asks for none."""


class Variant(Frozen):
    """An admitted rewording of an item, with the measurements that admitted it."""

    item_id: str
    item_hash: str
    strategy: str
    level: int = 1
    question: str
    choices: tuple[str, ...] = ()
    measurements: Measurements
    provenance: dict[str, Any] = Field(default_factory=dict)
    labels: LabelScheme | None = Field(default=None, exclude_if=lambda labels: labels is None)
    """How the options are labelled; None for A., B., C., …. Not written then, so that rows, exports and their digests
    stay what they were before there were other labels."""

    @model_validator(mode="after")
    def _labels_are_enough(self) -> Self:
        if self.labels is not None and not 0 < len(self.choices) <= self.labels.most_options:
            raise ValueError(f"the labels {self.labels.value!r} do not fit {len(self.choices)} options")
        return self

    @property
    def variant_id(self) -> str:
        """Identifier over the content alone: the same rewording of the same item is the same variant."""
        # Canonical JSON written out, as in Trial.trial_id.
        choices = ",".join([quoted(choice) for choice in self.choices])
        labels = "" if self.labels is None else f',"labels":{quoted(self.labels)}'
        content = (
            f'{{"choices":[{choices}],"item":{quoted(self.item_hash)}{labels},"question":{quoted(self.question)}}}'
        )
        return text_id(content)


class Rejection(Frozen):
    """A rewording that the admission gate turned away, and why."""

    item_id: str
    reason: str
    detail: str = ""
