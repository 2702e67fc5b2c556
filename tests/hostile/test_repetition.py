"""Texts that say one thing over and over, keys and columns that stand twice: reading them takes linear time."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.endpoint_url import endpoint_url
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.members import repeated_name
from proctor.domain.operator_endpoint import parse_operator_endpoints
from proctor.domain.problems import SuiteProblems
from proctor.domain.strict_json import MAX_VALUES
from proctor.domain.suite import PerturbationSection
from proctor.domain.suite_problems import parse_suite
from proctor.domain.trial import Completion
from proctor.formats.faults import Faults, TooManyFaults
from proctor.formats.logs.reading import read_log
from proctor.formats.rows import jsonl_rows, read_rows
from proctor.grading.letters import chosen_option
from proctor.grading.router_leaks import stated_option
from proctor.inference.http.infer_wire import read_answer
from proctor.inference.worker.backend import TrialFailure
from proctor.perturbation.admission.gate import screen
from proctor.perturbation.admission.renaming import undone
from proctor.perturbation.candidate import Candidate, Draft
from proctor.perturbation.strategies.entity_rename import first_names
from proctor.perturbation.strategies.model.replies import read_reply
from proctor.perturbation.strategies.model.wrapping import unwrapped
from proctor.perturbation.strategies.registry import rule_strategies
from proctor.text.invariants import CHECKS
from proctor.text.numerals import numerals
from proctor.text.surface import EXACT_WORDS, levenshtein, word_edit_distance
from tests.hostile.clock import quick
from tests.unit.grading_samples import trial


def doubled(members: int) -> str:
    """An object of which only the last key stands twice."""
    return "{" + ",".join(f'"k{n}":1' for n in range(members)) + f',"k{members - 1}":2}}'


RULE_STRATEGIES = rule_strategies()
SPEC = EndpointSpec(backend="infer", url="http://a", served_name="m", model_version=None)


def test_a_key_that_stands_twice_among_many_is_named_at_once(tmp_path: Path) -> None:
    text = doubled(40_000)
    path = tmp_path / "items.jsonl"
    path.write_text(text + "\n" + text)
    with quick():
        faults = Faults("items.jsonl")
        assert list(read_rows(path, faults)) == []
        with pytest.raises(BadInputError, match="the key 'k39999' stands twice"):
            faults.refuse()
    with quick(), pytest.raises(TrialFailure, match="'k39999' stands in it twice"):
        read_answer(text.encode(), trial(), SPEC)
    with quick(), pytest.raises(SuiteProblems, match="more than 20,000 values"):
        parse_suite(text)
    with quick(1.5), pytest.raises(SuiteProblems) as caught:
        parse_suite(doubled(MAX_VALUES - 2))
    assert any("stand under one key that is written twice" in str(problem) for problem in caught.value.problems)
    assert repeated_name([("b", 1), ("a", 1), ("c", 1), ("a", 2), ("b", 2)]) == "b"
    assert repeated_name([("a", 1), ("b", 1)]) is None


def test_a_header_of_many_columns_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("id,correct," + ",".join(f"c{n}" for n in range(60_000)) + ",c7\n1,1\n")
    for read in (lambda: list(read_rows(path, Faults("x"))), lambda: read_log(path)):
        with quick(), pytest.raises(BadInputError, match="the column 'c7' stands twice"):
            read()


def test_thousands_of_unknown_keys_are_all_named_at_once() -> None:
    suite = {f"unknown_key_{n}": n for n in range(4_000)}
    with quick(0.7), pytest.raises(SuiteProblems) as caught:
        parse_suite(json.dumps(suite))
    assert len(caught.value.problems) > 4_000
    # A slip of a letter is still understood among a few.
    with pytest.raises(SuiteProblems, match=r"sead: 1 is an unknown key; did you mean seed\?"):
        parse_suite(json.dumps({"perturbation_config": {"sead": 1}}))


QUESTION = "Ann has 5 apples and Bob has 3 more than Ann. How many apples does Bob have?"
#: A third of what a question may have that is reworded; at this length the attacks took ten seconds and more.
LONG = 60_000


def repeat(text: str, length: int = LONG) -> str:
    return (text * (length // len(text) + 1))[:length]


def distinct(form: str, count: int) -> str:
    return " ".join(form.format(n=n + 100_000) for n in range(count))  # of six digits each


TEXTS: Mapping[str, str] = {
    "capitals in a word": repeat("Answer"),
    "two long words": "the A" + "x" * 29_000 + " A" + "y" * 29_000,
    "single letters": repeat("A "),
    "names": repeat("Ab Cd "),
    "numbers": distinct("{n}", LONG // 7),
    "numbers near 1": distinct("1.0000000{n}", LONG // 17),
    "their reciprocals": distinct("0.9999999{n}", LONG // 17),
    "twice names": distinct("Ann{n} has 2 more than", LONG // 24),
    "half names": distinct("Bob{n} has half less than", LONG // 27),
    "trillions": "two " + repeat("trillion "),
    "hundreds": "two " + repeat("hundred million "),
    "digits": repeat("7"),
    "groups": "1" + repeat(",111"),
    "sums": repeat("1+1=2 "),
    "of": "A " + repeat("of "),
}


@pytest.mark.parametrize("name", TEXTS)
def test_answer_invariants_of_long_texts_take_linear_time(name: str) -> None:
    names = list(TEXTS)
    following = TEXTS[names[(names.index(name) + 1) % len(names)]]
    for one, other in ((QUESTION, TEXTS[name]), (TEXTS[name], following + " z")):
        with quick(2.0):
            for keeps in CHECKS.values():
                keeps(one, other)


def test_a_megabyte_of_trillions_is_a_number_as_any_other() -> None:
    for text in (
        "two " + "trillion " * 110_000,
        "2 " + "trillion " * 90_000,
        "9" * 1_000_001 + "k",
        "two " + "hundred " * 20_000,
    ):
        with quick(4.0):
            found = numerals(text)
            assert all(value.adjusted() < 1000 for value in found)
            CHECKS["numerals"](QUESTION, text)
    assert numerals("2 trillion trillion") == {Decimal(2 * 10**24): 1}
    assert numerals("nine trillion") == {Decimal(9 * 10**12): 1}


def test_an_item_that_says_trillion_without_end_is_turned_away_alone() -> None:
    item = Item(item_id="a", question="two " + "trillion " * 110_000, target="1")
    for rewording in (QUESTION, "two " + "trillion " * 20_000):
        with quick(4.0):
            screen(item, Candidate(rewording, (), "imported", 1, {}), PerturbationSection())


@pytest.mark.parametrize("words", [("a", 1_000_000), ("字", 200_000)])
def test_the_edit_distance_of_long_texts_is_measured_piece_by_piece(words: tuple[str, int]) -> None:
    word, length = words
    text = f"{word} " * (length // (len(word) + 1))
    other = " ".join(random.Random(1).choices(["b", "c", word], k=100_000))
    with quick(4.0):
        assert 0.0 < word_edit_distance(text, other) <= 1.0


def test_pieces_give_the_exact_distance_where_nothing_moved_and_never_less() -> None:
    draw = random.Random(2)
    left = [str(draw.randrange(50)) for _ in range(EXACT_WORDS + 2_000)]
    right = [word if draw.random() < 0.9 else "x" for word in left]
    exact = levenshtein(left, right) / len(left)
    assert exact <= word_edit_distance(" ".join(left), " ".join(right)) <= exact * 1.01


REPLIES: Mapping[str, str] = {
    "newlines": "\n" * 100_000,
    "newlines between words": "a" + "\n" * 100_000 + "b",
    "paragraphs": repeat("a\n\n"),
    "spaced newlines": repeat("\n \n"),
    "fences": repeat("```\n"),
    "tags": repeat("<question>"),
    "numbered": repeat("1. a\n"),
    "labels": repeat("Note: "),
    "quotes": repeat('"'),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_of_a_reworder_is_read_at_once(name: str) -> None:
    with quick():
        unwrapped("x" + REPLIES[name] + "x", QUESTION, "question")
        unwrapped(QUESTION, REPLIES[name] + "?", "question")


def test_an_answer_as_long_as_the_question_is_looked_for_at_once() -> None:
    shown = "字" * 100_000
    said = Completion(trial_id="t", text=shown + "x", finish_reason="stop")
    with quick(2.0):
        read_reply(said, shown, "question", target="字" * 50_000 + "z", choices=("字" * 50_000 + "z", "b"))


@pytest.mark.parametrize("strategy", RULE_STRATEGIES)
@pytest.mark.parametrize(
    "text", ["How many eggs does she sell? ", "a big dog ", "Ann sells 3. ", "names", "\\( ", "$ "]
)
def test_rules_reword_long_questions_in_linear_time(strategy: str, text: str) -> None:
    every_name = " said 3. ".join(first_names().gender)
    question = every_name if text == "names" else repeat(text, 60_000)
    item = Item(item_id="a", question=question, target="18")
    with quick(6.0):
        for rewrite in RULE_STRATEGIES[strategy]().rewrites(item, seed=1, limit=2):
            rewrite(Draft.of(item))


def test_a_renaming_from_elsewhere_is_undone_at_once_or_not_at_all() -> None:
    text = repeat("Bo ")
    with quick():
        assert undone(text, renaming({f"n{n}": f"m{n}" for n in range(100_000)})) == text
        assert undone(text, renaming({"Al": "x" * 100_000})) == text
    assert undone("Bo ran", renaming({"Al": "Bo"})) == "Al ran"


def renaming(names: dict[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    return {"entity_rename": {"renamed": names}}


LONG_OPTIONS = ("-" * 30_000 + "b", "c")


@pytest.mark.parametrize(
    "read",
    [
        lambda: chosen_option("x " + "-" * 99_000 + "b x", LONG_OPTIONS),
        lambda: stated_option("A." * 50_000, QUESTION, ("A." * 40_000 + "x", "c")),
        lambda: stated_option("A. " + "-" * 99_000, QUESTION, LONG_OPTIONS),
    ],
)
def test_options_that_repeat_themselves_are_looked_for_at_once(read: Callable[[], object]) -> None:
    with quick():
        read()


def test_a_number_in_a_router_table_or_a_row_is_no_bigger_than_its_text() -> None:
    for text in ("9" * 5000, "1e999999999", "-" + "1" * 100_000):
        faults = Faults("x")
        with quick():
            try:
                for row in jsonl_rows(io.BytesIO(b'{"question": %s, "answer": 1}\n' % text.encode()), faults):
                    assert row.position == 1
            except TooManyFaults:
                pytest.fail("one line has no ten faults")


@pytest.mark.parametrize("url", ["//" * 200_000, "grpc://" * 60_000, "@" * 400_000, "//@" * 130_000])
def test_a_secret_is_looked_for_at_once_in_a_url_that_repeats_itself(url: str) -> None:
    with quick(), pytest.raises(BadInputError, match="is no URL"):
        endpoint_url(url)
    with quick(), pytest.raises(BadInputError):
        parse_operator_endpoints(json.dumps({"prod": {"url": url}}), source="PROCTOR_ENDPOINTS")
