"""Replies of a rewording model: the wording is found in what it says, or a reason why there is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.trial import Completion, FinishReason
from proctor.perturbation.admission.gate import EMPTY, MAX_QUESTION_CHARACTERS, TOO_LONG
from proctor.perturbation.strategies.model.replies import (
    ANSWERED,
    MODEL_FAILED,
    REFUSED,
    TRUNCATED,
    NoWording,
    read_reply,
)
from tests.paraphraser import REFUSAL, recorded_rewordings
from tests.support import shared_data
from tests.unit.strategy_checks import HOSTILE, gsm8k

QUESTION = "Tom has 3 apples and buys 4 more. How many apples does he have?"
GOOD = "If Tom owns 3 apples and gets 4 more, what is his total?"
REASONS = {EMPTY, TOO_LONG, ANSWERED, MODEL_FAILED, REFUSED, TRUNCATED}


def _read(text: str, question: str = QUESTION, *, target: str = "7", choices: tuple[str, ...] = ()) -> str | NoWording:
    return read_reply(_said(text), question, "question", target=target, choices=choices)


def _said(text: str, finish_reason: FinishReason = "stop", error: str | None = None) -> Completion:
    return Completion(trial_id="t", text=text, finish_reason=finish_reason, error=error)


def _reason(reply: str | NoWording) -> str:
    assert isinstance(reply, NoWording), reply
    assert reply.detail
    return reply.reason


@pytest.mark.parametrize(
    "reply",
    [
        "{}",
        "  {}\n",
        '"{}"',
        "\u201c{}\u201d",
        "'{}'",
        "*{}*",
        "**{}**",
        "`{}`",
        "```\n{}\n```",
        "```text\n{}\n```\n\nLet me know if you would like another!",
        "~~~\n{}\n~~~",
        "<question>\n{}\n</question>",
        "<question>\n{}\n</question> I kept every number.",
        "<question>{}",
        "<reworded_question>{}</reworded_question>",
        "Sure! {}",
        "Sure! Here is the reworded question:\n\n{}",
        "Here's a rephrased version of the problem: {}",
        "Here\u2019s one way to reword it:\n{}",
        "Okay, here's the question reworded in plain language: {}",
        "I have rephrased the question as follows:\n{}",
        "Reworded question: {}",
        "**Reworded question:** {}",
        "**Reworded Question**: {}",
        "### Rewritten Question (formal):\n{}",
        "Question: {}",
        "Rephrased:\n{}",
        'Here is a rephrased version of the question:\n\n"{}"\n\nI hope this helps!',
        "{}\n\nNote: I kept all numbers.",
        "{}\n\n(Note: the names are unchanged.)",
        "{}\n\nThis version keeps all facts.",
        "{}\n\nI kept every number and changed the sentence structure.",
        "{}\n\nWould you like me to try another one?",
        "<think>\nTom has 3 + 4 = 7 apples. I must not say so.\n</think>\n\n{}",
        "<thinking>Hm.</thinking>**Reworded question:** {}",
        "1. {}\n2. How many apples has Tom in total, having 3 and buying 4?",
        "Here are two rewordings:\n\n1) {}\n\n2) How many apples has Tom in total, having 3 and buying 4?",
    ],
)
def test_what_models_put_around_a_wording_is_taken_off(reply: str) -> None:
    assert _read(reply.replace("{}", GOOD)) == GOOD


@pytest.mark.parametrize(
    ("question", "wording"),
    [
        ('"Hot" is to "cold" as "big" is to what?', '"Cold" goes with "hot"; what goes with "big"'),
        ("Complete: ____ is the capital of France ____", "__ is where France is governed __"),
        ("Which are right? 1. A cat. 2. A dog.", "1. A cat is one.\n2. A dog is the other.\nWhich are right?"),
        ("Tom has 3 and 4. How many?", "1. Tom has 3.\n2. Tom gets 4.\n3. How many?"),
        ("What is the sum of 1, 2 and 3?", "Here are the numbers: 1, 2 and 3. What is their sum?"),
        ("Great Britain has 5 towns. How many?", "Great Britain, all in all, has 5 towns. How many is that?"),
        ("What does <b>x</b> mean here?", "<b>x</b>: what is its meaning here?"),
        ("I used 3 eggs today.\n\nHow many?", "Today was good.\n\nI used 3 eggs. How many is that?"),
        ("Question: what is 3 + 4?", "Question: what do 3 and 4 make?"),
        ("Explain the code:\n```\nx = 1\n```", "What does this do?\n```\nx = 1\n```"),
        ("\u6771\u4eac\u306f\u9996\u90fd\u3067\u3059\u304b\uff1f", "\u9996\u90fd\u306f\u6771\u4eac\uff1f"),
    ],
)
def test_what_belongs_to_a_wording_stays(question: str, wording: str) -> None:
    assert _read(wording, question, target="") == wording


def test_a_wording_keeps_the_tags_that_the_question_wears() -> None:
    question = "<question>How many?</question>"
    reply = read_reply(_said("<question>Count them?</question>"), question, "question-1")
    assert reply == "<question>Count them?</question>"


@pytest.mark.parametrize("reply", ["", " \n\t", '""', "``", "<think>and so on", "Reworded question:", "<question>"])
def test_a_reply_without_a_wording_is_empty(reply: str) -> None:
    assert _reason(_read(reply)) == EMPTY


@pytest.mark.parametrize(
    "reply",
    [
        REFUSAL,
        "I\u2019m sorry, but I can\u2019t assist with that.",
        "I cannot help with this.",
        "Sorry, I am not able to do that.",
        "As an AI language model, I do not reword questions.",
        "Unfortunately, I am unable to comply.",
        "I apologize, but this is not something that I do.",
        "Sure! I can't do that.",
    ],
)
def test_a_refusal_is_known_by_how_it_begins(reply: str) -> None:
    assert _reason(_read(reply)) == REFUSED


@pytest.mark.parametrize(
    "reply",
    [
        "I can't sleep, says Tom, who has 3 apples and buys 4 more. How many apples does he have?",
        "I'm sorry for Tom, who had just 3 apples and must buy 4 more. How many apples does he have?",
    ],
)
def test_a_wording_that_begins_like_a_refusal_and_asks_the_question_is_none(reply: str) -> None:
    assert _read(reply) == reply


@pytest.mark.parametrize(
    "reply",
    [
        GOOD + "\n#### 7",
        GOOD + " The answer is 7.",
        GOOD + "\n\nAnswer: 7",
        GOOD + " Answer: B",
        GOOD + "\n\n**Final answer:** 7",
        GOOD + "\n\nSolution: add them.",
        GOOD + "\nStep 1: add them.",
        GOOD + " Let's solve it.",
        GOOD + " 3 + 4 = 7",
        GOOD + " $3 \u00d7 2 = $6",
        GOOD + " \\boxed{7}",
        GOOD + " <<3+4=7>>",
        "Tom has 3 apples and buys 4 more, so that he has 7. How many has he?",
    ],
)
def test_a_reply_that_tells_the_answer_or_its_working_is_answered(reply: str) -> None:
    assert _reason(_read(reply)) == ANSWERED


def test_an_option_named_alone_is_the_answer_and_named_with_others_is_not() -> None:
    question, choices = "Which town governs Krav?", ("Bri", "New Ela", "Wen")
    alone = _read("Is it New Ela that governs Krav?", question, target="New Ela", choices=choices)
    assert _reason(alone) == ANSWERED
    for wording in (
        "Krav: is its seat of government Bri, New Ela or Wen?",
        "Which new town governs Krav?",
        "Is it Bri that governs Krav?",
    ):
        assert _read(wording, question, target="New Ela", choices=choices) == wording


@pytest.mark.parametrize(
    ("question", "wording", "target"),
    [
        ("Is a whale a fish?", "Would it be true to call a whale a fish?", "true"),
        ("Is a whale a fish?", "Would you call a whale a fish, yes or no?", "no"),
        ("Which letter begins the alphabet?", "What is a letter that begins the alphabet?", "A"),
        ("The answer is 5. What was asked?", "What was asked if the answer is 5?", "3"),
        ("A dog or a cat: which barks?", "Which of a cat and a dog can bark?", "dog"),
        ("What is the answer?", "Choose the correct answer: which is it?", "x"),
        ("How salty is it?", "A chemist has a salt solution: how salty is it?", "30 %"),
        ("If 3 + 4 = 7, what is 4 + 3?", "Knowing that 3 + 4 = 7, find 4 + 3.", "7"),
    ],
)
def test_a_wording_that_only_looks_like_an_answer_stays(question: str, wording: str, target: str) -> None:
    assert _read(wording, question, target=target) == wording


def test_a_failed_or_cut_off_reply_is_never_read() -> None:
    assert _reason(read_reply(_said(GOOD, "length"), QUESTION, "question")) == TRUNCATED
    assert _reason(read_reply(_said(GOOD, "error"), QUESTION, "question")) == MODEL_FAILED
    failed = read_reply(_said(GOOD, error="connection refused " * 99), QUESTION, "question")
    assert _reason(failed) == MODEL_FAILED
    assert isinstance(failed, NoWording)
    assert "connection refused" in failed.detail
    assert len(failed.detail) < 300


def test_a_reply_of_any_length_is_refused_by_its_length() -> None:
    assert _reason(_read("x" * (MAX_QUESTION_CHARACTERS + 1))) == TOO_LONG


@pytest.mark.parametrize(
    "part",
    [
        "\n",
        " ",
        "<think></think>",
        "```\n",
        '"',
        "* ",
        "1. a\n2. b\n",
        "\n\nNote: x",
        "answer",
        "3 + 4 = ",
        "<",
        "Ok! ",
    ],
)
def test_a_hostile_reply_takes_no_longer_than_its_length_allows(part: str) -> None:
    # The suite's time limit is the judge: nothing here may take time with the square of the length.
    long = part * (MAX_QUESTION_CHARACTERS // len(part))
    for text in (long, f"```{long}", f"Here is {long}", f"<question>{long}", f"{GOOD}{long}"):
        _read(text[:MAX_QUESTION_CHARACTERS], target="answer me")


_PIECES = st.sampled_from(
    [
        *HOSTILE[:14],
        GOOD,
        QUESTION,
        REFUSAL,
        "```",
        "<question>",
        "</question>",
        "<think>",
        '"',
        "**",
        "1. ",
        "2. ",
        "\n\n",
        "Answer: 7",
        "Here is the question:",
        "Note: x",
        "\N{REPLACEMENT CHARACTER}",
        "\u0130",
    ]
)


@given(
    text=st.one_of(st.text(max_size=300), st.lists(_PIECES, max_size=8).map("".join)),
    question=st.one_of(st.text(min_size=1, max_size=80), _PIECES),
    target=st.text(max_size=10),
    finish_reason=st.sampled_from(["stop", "length", "error", "unknown"]),
    error=st.one_of(st.none(), st.text(max_size=20)),
)
@settings(max_examples=300)
def test_any_reply_is_a_wording_or_a_counted_reason(
    text: str, question: str, target: str, finish_reason: FinishReason, error: str | None
) -> None:
    completion = _said(text, finish_reason, error)
    reply = read_reply(completion, question, "question", target=target, choices=(target, "other"))
    if isinstance(reply, NoWording):
        assert reply.reason in REASONS
        assert reply.detail
    else:
        assert reply == reply.strip() != ""
        assert reply in completion.text
    assert reply == read_reply(completion, question, "question", target=target, choices=(target, "other"))


def test_gpt_4s_recorded_rewordings_of_gsm8k_are_read_as_they_are() -> None:
    recorded = recorded_rewordings(shared_data())
    for item, _ in gsm8k():
        said = recorded[item.question].strip()
        reply = _read(said, item.question, target=item.target)
        assert reply == said or (said == "" and _reason(reply) == EMPTY)


def test_gsm8ks_worked_solutions_are_found_wherever_they_stand() -> None:
    recorded = recorded_rewordings(shared_data())
    for item, solution in gsm8k():
        for reply in (f"{recorded[item.question]}\n\n{solution}", f"{item.question} The answer is {item.target}."):
            assert _reason(_read(reply, item.question, target=item.target)) == ANSWERED
