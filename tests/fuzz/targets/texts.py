"""What models write: answers to be graded, rewordings to be weighed, routers' messages."""

from __future__ import annotations

import json

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.rotation import Rotation
from proctor.domain.suite import PerturbationSection
from proctor.domain.trial import Arm, Completion, Outcome, Trial
from proctor.grading.constraints import KINDS, checked, parse_constraints, written_constraints
from proctor.grading.extractors import EXTRACTORS, executing, target_number
from proctor.grading.graders import grade
from proctor.grading.programs import parse_tests, written_tests
from proctor.grading.settled import is_settled
from proctor.grading.triage.deciding import triage
from proctor.perturbation.admission.measure import ItemPair, measure
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.strategies.model.replies import read_reply
from proctor.runtime.rotations import read_rotation
from proctor.text.invariants import broken_invariants
from proctor.text.numerals import numerals
from tests.fuzz.target import Target, as_file
from tests.unit.variant_samples import HashedEncoder

_QUESTION = "Mia has 3 apples and buys 4 more for $2.50 each. How many apples does she have, if not 12?"
_CHOICES = ("7", "8 apples", "none of these", "$2.50")
_RULES = json.dumps(
    {
        "proctor_constraints": [
            *({"kind": kind, "at_most": 3} for kind in ("words", "sentences", "bullets", "paragraphs")),
            {"kind": "include_words", "words": ["apples"]},
            {"kind": "json_object"},
            {"kind": "lower_case"},
        ]
    }
)
_SECTION = PerturbationSection(min_semantic_distance=0.0, max_semantic_distance=1.9)


def _text(data: bytes) -> str:
    """Any text that an endpoint's JSON can hold, without halves of pairs: those are replaced where it is read."""
    return data.decode("utf-8", "replace")


def _feed_answer(data: bytes) -> None:
    text = _text(data)
    trial = Trial(arm=Arm.CANONICAL, item_id="a", prompt="p", choices=_CHOICES, labels=None)
    completion = Completion(trial_id=trial.trial_id, text=text, finish_reason="stop")
    for named in EXTRACTORS.values():
        # Nothing is run: what is fuzzed is how an answer is read.
        extractor = executing(named, lambda code, target: Outcome.INCORRECT)
        target = _RULES if extractor.name == "constraints" else "7"
        first = grade(trial, completion, target, extractor)
        assert grade(trial, completion, target, extractor) == first
        is_settled(extractor, text, trial.choices, trial.labels)
    target_number(text)


def _feed_targets(data: bytes) -> None:
    """Tests and constraints that somebody wrote as the answers to their items."""
    text, refused = _text(data), 0
    try:
        constraints = parse_constraints(text)
        assert parse_constraints(written_constraints(constraints)) == constraints
        for answer in (text, "One. Two, three!\n\n- four"):
            assert len(checked(answer, constraints)) == len(constraints)
    except ValueError:
        refused += 1
    try:
        tests = parse_tests(text)
        written_tests(tests)
        assert len(tests.calls) == len(tests.expected)
    except ValueError:
        refused += 1
    if refused == 2:
        raise ValueError("neither")


def _feed_rotation(data: bytes) -> None:
    with as_file(data, ".rotation.json") as path:
        state = read_rotation(path)
    assert Rotation.model_validate_json(state.model_dump_json()) == state


def _feed_triage(data: bytes) -> None:
    text = _text(data)
    for truncated in (None, True, False):
        triage(_QUESTION, "#### 18", text, truncated=truncated, extracted="7")


def _feed_reply(data: bytes) -> None:
    completion = Completion(trial_id="t", text=_text(data), finish_reason="stop")
    said = read_reply(completion, _QUESTION, "question", target="7", choices=_CHOICES)
    assert not isinstance(said, str) or said.strip()


def _feed_rewording(data: bytes) -> None:
    text = _text(data)
    numerals(text)
    broken_invariants(_QUESTION, text)
    broken_invariants(text, _QUESTION)
    item = Item(item_id="a", question=_QUESTION, choices=_CHOICES, target="7")
    candidate = Candidate(text, _CHOICES, strategy="imported", level=1, provenance={})
    (measured,) = measure([ItemPair(item, candidate)], _SECTION, HashedEncoder())
    assert measured is not None


TARGETS = (
    Target(
        "answers",
        (
            "proctor.grading.extractors", "proctor.grading.numbers", "proctor.grading.letters",
            "proctor.grading.phrases", "proctor.grading.constraints", "proctor.grading.programs",
            "proctor.grading.settled",
        ),
        _feed_answer,
        lambda: [
            b"It is 3 + 4 = 7.\n#### 7", b"The answer is (B) 8 apples.", b"\\boxed{\\frac{1}{2}} or $1,234.50%",
            "**Answer:** D．".encode(),
        ],
        words=(
            b"####", b"\\boxed{", b"answer is", b"(A)", b"1,000", b"1e400", b"9" * 40, b"/0", b"**", b"```", b"def ",
        ),
    ),
    Target(
        "own_targets",
        ("proctor.grading.constraints", "proctor.grading.programs"),
        _feed_targets,
        lambda: [
            _RULES.encode(), b'{"proctor_tests":{"entry":"f","tests":[[[1,"a"],[2]],[[],null]]}}',
            b'{"proctor_constraints":[{"kind":"ends_with","text":"The end."}]}', b'{"proctor_tests": 1}',
        ],
        refusals=(ValueError,),
        words=(
            b"proctor_tests", b"proctor_constraints", b'"kind"', b'"entry"', b'"tests"', b'"at_least"', b'"words"',
            b'"keys"', b'"text"', b'"characters"', *(f'"{kind}"'.encode() for kind in KINDS),
        ),
    ),
    Target(
        "rotation",
        ("proctor.runtime.rotations", "proctor.domain.rotation"),
        _feed_rotation,
        lambda: [
            b'{"version":1,"every":"quarterly","seed":1,"begun":"2026-01-01","rotated":"2026-01-01","due":"2026-04-01",'
            b'"active":[{"item_id":"a","digest":"sha256:' + b"0" * 64 + b'"}],"pool":[],"retired":[],"shown":{}}',
            b"{}",
        ],
        refusals=(BadInputError,),
        words=(
            b'"every"', b'"active"', b'"pool"', b'"shown"', b'"retired"', b'"due"', b"sha256:", b"monthly", b"yearly",
        ),
    ),
    Target(
        "triage",
        (
            "proctor.grading.triage.deciding", "proctor.grading.triage.equations", "proctor.grading.triage.arithmetic",
            "proctor.grading.triage.tokens", "proctor.grading.triage.statements",
        ),
        _feed_triage,
        lambda: [
            b"3 + 4 = 8. Then 8 * 2 = 16, so 16 + 2 = 18.\n#### 17", b"20% of 50 = 10 <<20*50/100=10>>10. Wait, 9.",
            b"(3 + 4) * 2 / 7 = 2\nThe answer is **2**.",
        ],
        words=(b" = ", b"<<", b">>", b"Wait", b"\\boxed{", b"\\frac{", b"((((", b"**", b"/ 0", b"%", b"1e9"),
        max_bytes=4096,
    ),
    Target(
        "rewordings_text",
        (
            "proctor.text.numerals", "proctor.text.invariants", "proctor.text.units", "proctor.text.relations",
            "proctor.text.entities", "proctor.text.quantities", "proctor.text.surface",
        ),
        _feed_rewording,
        lambda: [_QUESTION.encode(), b"After she buys four more apples at 2 dollars 50, what do Mia's 3 become?"],
        words=(
            b"trillion", b"dozen", b"one and a half", b"3/4", b"at least", b"twice", b"per hour", b"km", b"not", b"nor",
            b"1,000,000", b"'s", b"U.S.", b"half past ten", b"%",
        ),
        max_bytes=4096,
    ),
    Target(
        "replies",
        ("proctor.perturbation.strategies.model.replies", "proctor.perturbation.strategies.model.wrapping"),
        _feed_reply,
        lambda: [
            b"<question>How many apples?</question>", b"Sure! Here is the rewording:\n\n> How many?\n\nLet me know.",
            b"I'm sorry, but I can't help with that.", b'```\n"How many?"\n```', b"The answer is 7.",
        ],
        words=(b"<question>", b"</question>", b"```", b"Here is", b"**", b"\n\n", b"answer", b"Rewritten:"),
    ),
)  # fmt: skip
