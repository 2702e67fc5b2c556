"""Identifiers of trials and variants, and what completions can hold."""

from __future__ import annotations

import hashlib
import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proctor.domain.item import Measurements, Variant
from proctor.domain.labels import LabelScheme
from proctor.domain.manifest import CompletionSet
from proctor.domain.trial import Arm, Completion, Trial

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    stage=_TEXT,
    arm=st.sampled_from(Arm),
    item_id=_TEXT,
    variant_id=st.none() | _TEXT,
    router_index=st.integers(0, 9),
    replicate=st.integers(0, 2**31),
)
def test_a_trial_is_named_by_the_canonical_json_of_its_key(**key: str | int | None) -> None:
    trial = Trial.model_validate({**key, "prompt": "?"})
    canonical = rfc8785.dumps([str(value) if name == "arm" else value for name, value in key.items()])
    assert trial.trial_id == hashlib.sha256(canonical).hexdigest()[:16]


@given(
    item=_TEXT,
    question=_TEXT,
    choices=st.lists(_TEXT, min_size=1, max_size=8),
    labels=st.none() | st.sampled_from(LabelScheme),
)
def test_a_variant_is_named_by_the_canonical_json_of_its_content(
    item: str, question: str, choices: list[str], labels: LabelScheme | None
) -> None:
    variant = Variant(
        item_id="i", item_hash=item, strategy="s", question=question, choices=tuple(choices), labels=labels,
        measurements=Measurements(semantic_distance=0.1, token_overlap=0.2, edit_distance=0.3),
    )  # fmt: skip
    content = {"item": item, "question": question, "choices": choices}
    content |= {} if labels is None else {"labels": labels.value}
    assert variant.variant_id == hashlib.sha256(rfc8785.dumps(content)).hexdigest()[:16]


@pytest.mark.parametrize("half", ["\ud83d", "b\udfff"])
def test_a_name_over_half_of_a_surrogate_pair_is_refused(half: str) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        _ = Trial(arm=Arm.CANONICAL, item_id=half, prompt="?").trial_id


def test_what_a_trial_asks_is_no_part_of_its_name() -> None:
    trial = Trial(arm=Arm.PERTURBED, item_id="i", variant_id="v", prompt="?")
    assert trial.model_copy(update={"prompt": "!", "choices": ("a", "b")}).trial_id == trial.trial_id
    assert trial.model_copy(update={"variant_id": None}).trial_id != trial.trial_id


@pytest.mark.parametrize("half", ["\ud83d", "z\udfff", "a\ud800b\U0001f600", "\ude00\ud83d"])
def test_half_of_a_surrogate_pair_is_replaced_so_that_the_completion_can_be_stored(half: str) -> None:
    completion = Completion(trial_id="t", text=half, error=half)
    assert completion.text == "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in half)
    assert completion.text == completion.error == Completion.model_validate({"trial_id": "t", "text": half}).text
    assert Completion.model_validate_json(completion.model_dump_json()) == completion


def test_a_stored_document_with_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValidationError, match="Invalid JSON"):
        CompletionSet.model_validate_json('{"completions":[{"trial_id":"t","text":"\\ud83d"}]}')


@given(text=_TEXT)
def test_every_other_text_is_kept_as_it_is(text: str) -> None:
    completion = Completion(trial_id="t", text=text, error=text)
    assert (completion.text, completion.error) == (text, text)
    written = json.dumps({"trial_id": "t", "text": text, "error": text})
    assert Completion.model_validate_json(written) == completion


def test_the_schema_of_a_completion_calls_its_texts_strings() -> None:
    properties = Completion.model_json_schema()["properties"]
    assert properties["text"]["type"] == "string"
    assert [one["type"] for one in properties["error"]["anyOf"]] == ["string", "null"]
