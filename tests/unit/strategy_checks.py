"""What tests of strategies share: stories to reword, hostile texts, and whether what is declared is kept."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

from hypothesis import strategies as st

from proctor.domain.item import Item
from proctor.perturbation.admission.renaming import undone
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.strategies.base import EVERYTHING, Strategy
from proctor.perturbation.strategies.compose import Chain
from proctor.text.invariants import CHECKS
from tests.support import shared_data

HOSTILE = (
    " ",
    "?",
    "12345 + 678 = ?",
    "\u05db\u05de\u05d4 \u05ea\u05e4\u05d5\u05d7\u05d9\u05dd \u05d9\u05e9 \u05dc\u05d3\u05df?",
    "\u0643\u0645 \u0639\u062f\u062f \u0627\u0644\u062a\u0641\u0627\u062d\u0627\u062a 3\u061f",
    "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3059\u304b\uff1f",
    "\u202eHow many apples does Tom have?\u202c",
    "\x00\x07 Tom bought 3 apples.\x1b[31m",
    "```python\nprint('How many apples does Tom have?')\n```",
    "Solve \\(x^2 = 3\\) for $x_1$ where \\frac{1}{2} is <b>given</b>.",
    "{question} {options} %s \\1 \\g<0> $1",
    "I" * 5000,
    "Tom bought 3 apples. " * 200,
    "a b " * 150,
    "." * 4000,
    "((((" * 1000,
    "\U0001f600\U0001f34e 3 \U0001f34e each \u200b\u200d",
    "Mr. Mr. Mr. Mr. 3 3 3 3 If if if, if, if?",
)

_SENTENCES = (
    "{a} buys {n} boxes of pencils for ${m} each.",
    "{a} has {n} apples and {b} has {m} more apples than {a}.",
    "There are {n} students in the class, and the teacher has {m} books.",
    "At the store, {a} bought {n} pounds of flour for ${m}.",
    "She started with {n} marbles, and she never lost one.",
    "He needs {n} cups of water a day, but he does not drink coffee.",
    "Each movie takes {n} minutes.",
    "If {a} sells {n} hats a day, he earns at least ${m}.",
    "{b} paid {n}% of the price.",
    "They split the {n} cookies equally after {a} baked twice as many.",
    "{a} and {b} are {n} and {m} years old.",
)
_QUESTIONS = (
    "How many {x} does {a} have left?",
    "How much money did {b} spend in total?",
    "If {a} gives away {m} {x}, how many {x} are left?",
    "What is the total number of {x} in the box?",
    "How many {x} will they have after {m} weeks?",
    "How many more {x} than {b} does {a} have altogether?",
)


@st.composite
def stories(draw: st.DrawFn) -> Item:
    """Word problems of one to five sentences with names, numbers in both notations, units, denials and bounds."""
    names = draw(
        st.lists(st.sampled_from(["Tom", "Anna", "Kevin", "Laura", "Boston", "Zorblax"]), min_size=2, max_size=2)
    )
    body = draw(st.lists(st.sampled_from(_SENTENCES), min_size=0, max_size=4))
    texts = []
    for text in [*body, draw(st.sampled_from(_QUESTIONS))]:
        number = st.one_of(
            st.integers(2, 999).map(str), st.sampled_from(["three", "twelve", "forty-two", "1,200", "2.50"])
        )
        filling = {"a": names[0], "b": names[1], "n": draw(number), "m": draw(number)}
        texts.append(text.format(**filling, x=draw(st.sampled_from(["apples", "students", "cars"]))))
    gap = draw(st.sampled_from([" ", "  ", "\n"]))
    choices = draw(st.sampled_from([(), ("4", "5", "6"), ("Tom", "the store", "purchased")]))
    return Item(item_id="i", question=gap.join(texts), choices=choices, target=choices[0] if choices else "4")


def candidates(strategy: Strategy, question: str, *, seed: int = 0, limit: int = 4, **changes: Any) -> list[Candidate]:
    """What a strategy makes of a question."""
    item = Item(**{"item_id": "i", "question": question, "target": "t", **changes})
    return Chain([strategy]).candidates(item, seed=seed, limit=limit)


def questions(strategy: Strategy, question: str, *, seeds: int = 4, **changes: Any) -> set[str]:
    """All rewordings under several seeds."""
    return {
        one.question for seed in range(seeds) for one in candidates(strategy, question, seed=seed, limit=16, **changes)
    }


def check_declared(strategy: Strategy, item: Item, *, seed: int = 0, limit: int = 4) -> int:
    """Fail unless every candidate keeps what the strategy declares; how many there were."""
    assert strategy.preserves <= EVERYTHING
    chain = Chain([strategy])
    made = chain.candidates(item, seed=seed, limit=limit)
    assert len({(one.question, one.choices) for one in made}) == len(made) <= limit
    for one in made:
        assert (one.question, one.choices) != (item.question, item.choices)
        question = undone(one.question, one.provenance)
        broken = [
            name for name in sorted(strategy.preserves & CHECKS.keys()) if not CHECKS[name](item.question, question)
        ]
        assert not broken, (broken, item.question, one.question)
        if "options" in strategy.preserves:
            assert Counter(one.choices) == Counter(item.choices)
        if "target" in strategy.preserves and item.choices:
            assert one.choices.count(item.target) == 1
        json.dumps(one.provenance)
    assert made == chain.candidates(item, seed=seed, limit=limit)
    if not made:
        reason, detail = strategy.nothing_for(item)
        assert reason.replace("_", "").isalpha()
        assert detail
    return len(made)


@cache
def gsm8k() -> tuple[tuple[Item, str], ...]:
    """GSM8K's test items with their worked solutions."""
    lines = (shared_data() / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return tuple(
        (
            Item(
                item_id=f"gsm8k-{number}",
                question=row["question"],
                target=row["answer"].rsplit("####", 1)[1].strip().replace(",", ""),
            ),
            row["answer"],
        )
        for number, row in enumerate(rows)
    )
