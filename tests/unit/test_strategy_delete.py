"""Deletion: a stated share goes, the last sentence stays, and no suite can ask for it as a variant."""

from __future__ import annotations

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.strategies import NO_VARIANT
from proctor.perturbation.strategies.compose import make_chain
from proctor.perturbation.strategies.delete import Delete
from proctor.perturbation.strategies.registry import rule_strategies
from tests.unit.strategy_checks import candidates, gsm8k


@pytest.mark.parametrize(("share", "gone"), [(0.0, 1), (0.5, 2), (1.0, 4)])
def test_a_share_of_the_sentences_goes_and_the_question_stays(share: float, gone: int) -> None:
    text = "Anna has 3 hats. Tom has 4. Zoe has 5. Bob has 6. How many hats are there?"
    for one in candidates(Delete(share), text):
        assert one.question.endswith("How many hats are there?")
        assert one.question.count(".") == 4 - gone
        assert one.provenance == {"delete": {"deleted": gone, "of": 4, "kind": "sentences"}}


def test_of_a_single_sentence_words_go() -> None:
    for one in candidates(Delete(0.4), "Which of these planets is biggest?"):
        assert one.question.endswith("biggest?")
        assert len(one.question.split()) == 4
    assert candidates(Delete(), "Why?") == []


def test_it_declares_no_answer_invariant() -> None:
    assert Delete().preserves == {"options", "target"}


@pytest.mark.parametrize("name", NO_VARIANT)
def test_what_makes_no_variant_is_refused_with_what_it_makes(name: str) -> None:
    with pytest.raises(BadInputError, match=rf"'{name}' makes no variants: it .*; for variants there are: distractor"):
        make_chain(f"lexical+{name}", rule_strategies())


def test_most_of_gsm8k_can_lose_a_sentence() -> None:
    made = [candidates(Delete(), item.question, limit=1) for item, _ in gsm8k()[::10]]
    assert sum(map(bool, made)) == len(made)
