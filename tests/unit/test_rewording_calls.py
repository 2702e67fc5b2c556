"""What asking the model that rewords comes to, in the plan of an audit."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.domain.suite import Suite
from proctor.studies.rewording_calls import rewording_calls, rewording_note


def suite(strategy: str, **perturbation: Any) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "s",
            "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local-triton"},
            "dataset_config": {"benchmark_name": "sums"},
            "perturbation_config": {"perturbation_strategy": strategy, **perturbation},
        }
    )


@pytest.mark.parametrize(
    ("strategy", "calls"),
    [
        ("paraphrase_llm", 30),
        ("back_translation", 60),
        ("typo+paraphrase_llm+option_shuffle", 30),
        ("paraphrase_llm+back_translation", 90),
        ("typo", 0),
    ],
)
def test_a_variant_takes_the_calls_of_its_chain(strategy: str, calls: int) -> None:
    assert rewording_calls(suite(strategy, num_variants_per_item=3), 10) == calls


def test_the_note_names_the_model_what_is_asked_first_and_at_most_and_the_ceiling_of_an_answer() -> None:
    decoding = {"decoding": {"max_tokens": 300}}
    asking = suite("paraphrase_llm", num_variants_per_item=4, paraphrase_model="org/rewriter", paraphraser=decoding)
    note = rewording_note(asking, 500)
    assert note is not None
    for part in ("org/rewriter", "up to 2,000 prompts", "6,000 at most", "at most 300 tokens"):
        assert part in note


def test_without_a_strategy_that_asks_there_is_no_note() -> None:
    assert rewording_note(suite("typo", paraphrase_model="org/rewriter"), 10) is None


def test_a_strategy_that_asks_without_a_model_is_said_to_need_one() -> None:
    note = rewording_note(suite("paraphrase_llm"), 10)
    assert note is not None
    assert "perturbation_config.paraphrase_model" in note
