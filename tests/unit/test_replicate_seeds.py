"""How often a prompt is asked, and by which seed: what a suite may say, and what goes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proctor.domain.replicates import MAX_REPLICATES, AnswerDecoding, of_replicate
from proctor.domain.suite import Suite
from proctor.domain.trial import Decoding
from tests.suites.examples import SMALL


def suite(decoding: dict[str, Any], **sections: Any) -> Suite:
    return Suite.model_validate({**SMALL, **sections, "decoding_config": decoding})


def test_greedy_answers_are_asked_once() -> None:
    with pytest.raises(ValidationError, match="asks each prompt 3 times at temperature 0"):
        suite({"replicates": 3})
    assert suite({"replicates": 3, "temperature": 0.01}).decoding.replicates == 3
    assert suite({"replicates": 1}).decoding.replicates == 1


@pytest.mark.parametrize("replicates", [0, -1, MAX_REPLICATES + 1, 2.5, "many"])
def test_what_is_no_number_of_answers_is_refused(replicates: Any) -> None:
    with pytest.raises(ValidationError):
        suite({"replicates": replicates, "temperature": 0.7})


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"scoring_config": {"method": "per_item_t_test"}}, "scoring_config.method per_item_t_test"),
        ({"protocol_config": {"protocol": "router_worker"}}, "protocol_config.protocol router_worker"),
    ],
)
def test_what_takes_each_prompt_as_asked_once_is_refused_beside_them(sections: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        suite({"replicates": 2, "temperature": 0.7}, **sections)


def test_a_suite_that_asks_once_keeps_its_bytes() -> None:
    assert "replicates" not in suite({"temperature": 0.7}).plain()["decoding_config"]
    assert suite({"temperature": 0.7, "replicates": 2}).plain()["decoding_config"]["replicates"] == 2


def test_how_one_answer_is_drawn_says_nothing_of_the_others() -> None:
    decoding = AnswerDecoding(temperature=0.5, seed=3, max_tokens=7, stop=("x",), replicates=4)
    assert decoding.of_one == Decoding(temperature=0.5, seed=3, max_tokens=7, stop=("x",))
    assert type(decoding.of_one) is Decoding


@given(st.one_of(st.none(), st.integers(0, 2**53 - 1)))
def test_each_replicate_has_a_seed_of_its_own_that_the_suite_s_seed_decides(seed: int | None) -> None:
    decoding = Decoding(temperature=0.5, seed=seed)
    seeds = [of_replicate(decoding, number).seed for number in range(MAX_REPLICATES)]
    assert seeds[0] == (seed or 0)
    assert len(set(seeds)) == MAX_REPLICATES
    assert all(one is not None and 0 <= one < 2**31 for one in seeds[1:])
    assert seeds == [of_replicate(decoding, number).seed for number in range(MAX_REPLICATES)]
