"""Fresh items: solutions read and re-evaluated, numbers drawn anew, answers checked by a second evaluator."""

from __future__ import annotations

import ast
import re
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from operator import add, mul, neg, pos, sub, truediv
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.symbolic.number_sites import sites
from proctor.perturbation.symbolic.resampling import fresh_items
from proctor.perturbation.symbolic.worked_solution import SolutionError, evaluate, parse_solution
from proctor.text.numerals import numerals
from tests.unit.strategy_checks import gsm8k

ANNOTATION = re.compile(r"<<([^<>]*)=([^<>=]*)>>")
OPERATORS: dict[Any, Any] = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.USub: neg, ast.UAdd: pos}


def second_opinion(expression: str) -> Fraction:
    """Python's own parser over exact fractions; leading zeros and a bare point are not Python's."""
    plain = re.sub(r"(?<![\d.])0+(?=\d)", "", re.sub(r"(\d)\.(?!\d)", r"\1", expression))

    def walk(node: ast.AST) -> Fraction:
        if isinstance(node, ast.Expression):
            return walk(node.body)
        if isinstance(node, ast.BinOp):
            return Fraction(OPERATORS[type(node.op)](walk(node.left), walk(node.right)))
        if isinstance(node, ast.UnaryOp):
            return Fraction(OPERATORS[type(node.op)](walk(node.operand)))
        assert isinstance(node, ast.Constant)
        return Fraction(str(node.value))

    return walk(ast.parse(plain.strip(), mode="eval"))


def recomputed(item: Item, fresh: Item, solution: str) -> Fraction:
    """The fresh answer by text: the drawn numbers and earlier results put into each annotation, and evaluated.

    Written against the solution's text, without the chain that made the item.
    """
    new = {}
    for before, after in fresh.metadata["fresh"]["numbers"]:
        (old_value,), (new_value,) = numerals(before), numerals(after)
        if len(re.findall(rf"(?<![\d.]){re.escape(before)}(?!\d|[.,]\d)", item.question)) == 1:
            new[Fraction(old_value)] = Fraction(new_value)
        if re.search(rf"{re.escape(before)}(?: ?%| percent| ?cents?)", item.question):
            new.setdefault(Fraction(old_value) / 100, Fraction(new_value) / 100)
    results: dict[Fraction, Fraction] = {}
    value = Fraction(0)
    for expression, stated in ANNOTATION.findall(solution):

        def put(match: re.Match[str]) -> str:
            leaf = Fraction(match.group())
            return f"({results.get(leaf, new.get(leaf, leaf))})"

        value = second_opinion(re.sub(r"\d+\.?\d*|\.\d+", put, expression))
        results[Fraction(stated.replace(",", ""))] = value
    return value


def test_every_annotation_of_gsm8k_is_evaluated_as_python_does() -> None:
    read: Counter[str] = Counter()
    for _, text in gsm8k():
        try:
            solution = parse_solution(text)
        except SolutionError as error:
            read[error.reason] += 1
            continue
        read["read"] += 1
        for step, (expression, stated) in zip(solution.steps, ANNOTATION.findall(text), strict=True):
            assert evaluate(step.expression) == second_opinion(expression)
            assert step.stated == Fraction(stated.replace(",", ""))
            assert step.right
            assert step.exact == (second_opinion(expression) == step.stated)
    assert read == {"read": 1301, "no_annotations": 18}


def test_the_answers_of_fresh_gsm8k_items_are_right_by_a_second_evaluator() -> None:
    served = 0
    for item, solution in gsm8k():
        try:
            made = fresh_items(item, solution, count=2, seed=7)
        except SolutionError:
            continue
        served += 1
        for fresh in made:
            assert Fraction(fresh.target) == recomputed(item, fresh, solution), item.item_id
            assert fresh.target != item.target
            assert fresh.question != item.question
            assert ("." in fresh.target) <= ("." in item.target)
            assert Fraction(fresh.target) > 0 or Fraction(item.target) <= 0
    assert served > 550


ITEM = Item(
    item_id="eggs",
    question="Janet has 16 eggs. She eats three and sells the rest for $2.50 each with 20% off. What does she earn?",
    target="26",
    dimension="money",
    metadata={"source": "test"},
)
SOLUTION = (
    "She sells 16-3=<<16-3=13>>13.\nThat is 13*2.5=<<13*2.5=32.5>>32.5.\nLess 20%, <<32.5-32.5*20/100=26>>26\n#### 26"
)


def test_a_fresh_item_has_other_numbers_in_the_same_notation_and_says_where_it_comes_from() -> None:
    made = fresh_items(ITEM, SOLUTION, count=5, seed=1)
    assert [one.item_id for one in made] == [f"eggs~fresh-{number}" for number in range(len(made))]
    for one in made:
        match = re.fullmatch(
            r"Janet has (\d+) eggs\. She eats (\w+) and sells the rest for \$(\d\.\d\d) each with (\d+)% off\. "
            r"What does she earn\?",
            one.question,
        )
        assert match
        eggs, eaten, price, percent = match.groups()
        (eaten_value,) = numerals(eaten)
        assert not eaten.isdigit()
        assert Fraction(one.target) == (int(eggs) - int(eaten_value)) * Fraction(price) * (100 - int(percent)) / 100
        assert one.dimension == "money"
        assert one.metadata["source"] == "test"
        assert one.metadata["fresh"]["from_hash"] == ITEM.content_hash
        assert one.metadata["fresh"]["method"] == "symbolic/1"


def test_the_same_seed_gives_the_same_items_and_another_gives_others() -> None:
    assert fresh_items(ITEM, SOLUTION, count=3, seed=1) == fresh_items(ITEM, SOLUTION, count=3, seed=1)
    assert fresh_items(ITEM, SOLUTION, count=3, seed=1) != fresh_items(ITEM, SOLUTION, count=3, seed=2)


@pytest.mark.parametrize(
    ("question", "solution", "target", "reason"),
    [
        ("Tom has 3 hats.", "He has 3.\n#### 3", "3", "no_annotations"),
        ("Tom has 3 hats.", "<<3+1=4>>", "4", "no_answer"),
        ("Tom has 3 hats.", "<<3+x=4>>\n#### 4", "4", "annotation_unreadable"),
        ("Tom has 3 hats.", "<<3/0=4>>\n#### 4", "4", "annotation_unreadable"),
        ("Tom has 3 hats.", "<<(3+1=4>>\n#### 4", "4", "annotation_unreadable"),
        ("Tom has 3 hats.", "<<" + "(" * 90 + "3" + ")" * 90 + "=3>>\n#### 3", "3", "annotation_unreadable"),
        ("Tom has 3 hats.", "<<" + "9*" * 200 + "9=1>>\n#### 1", "1", "annotation_unreadable"),
        ("Tom has 3 of 9 hats.", "9-3=6 and <<9-3=6>>6=6\n#### 6", "6", "unannotated"),
        ("Tom has 3 of 9 hats.", "<<9-3=5>>5\n#### 5", "5", "step_wrong"),
        ("Tom has 3 of 9 hats.", "<<9-3=6>>6\n#### 7", "7", "answer_differs"),
        ("Tom has 3 of 9 hats.", "<<9-3=6>>6\n#### 6", "8", "answer_differs"),
        ("Tom has 3 hats.", "<<3*17=51>>51\n#### 51", "51", "unknown_number"),
        ("Tom has 4 of 8 hats.", "<<8-4=4>>4\n<<4+8=12>>12\n#### 12", "12", "ambiguous_number"),
        ("Tom has the 3 hats and the 9 caps.", "<<3+9=12>>12\n#### 12", "12", "no_free_number"),
        ("Tom has 3 hats and 3 caps.", "<<3+3=6>>6\n#### 6", "6", "no_free_number"),
    ],
)
def test_what_cannot_be_resampled_safely_says_why(question: str, solution: str, target: str, reason: str) -> None:
    with pytest.raises(SolutionError) as refused:
        fresh_items(Item(item_id="i", question=question, target=target), solution, count=1, seed=0)
    assert refused.value.reason == reason
    assert refused.value.detail


def test_a_number_that_may_be_either_of_two_changes_neither() -> None:
    item = Item(item_id="i", question="Tom buys 9 hats of $50 with 40% off and sells them for 40.", target="230")
    solution = "<<50*.4=20>>20\n<<50-20=30>>30\n<<9*30=270>>270\n<<270-40=230>>230\n#### 230"
    for one in fresh_items(item, solution, count=5, seed=0):
        assert "with 40% off and sells them for 40." in one.question


def test_the_parts_of_a_fraction_stay() -> None:
    item = Item(item_id="i", question="Two girls each got 1/6 of the 24 liters. Then a boy got 6 liters.", target="10")
    solution = "<<24*1/6=4>>4\n<<4*2=8>>8\n<<8+6=14>>14\n<<24-14=10>>10\n#### 10"
    with pytest.raises(SolutionError, match=r"no_free_number|unknown_number"):
        fresh_items(item, solution, count=1, seed=0)


def test_an_item_with_options_is_refused() -> None:
    item = ITEM.model_copy(update={"choices": ("26", "27")})
    with pytest.raises(SolutionError, match="has_options"):
        fresh_items(item, SOLUTION, count=1, seed=0)


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("the 3 hats, his 4 dogs, a 5 year plan, all 6 of them", []),
        ("4 pm, 5:30, 1/2, 3rd, page 7, 1999, June 8, 2x4, 10-12, two dozen, 100%", []),
        ("16 eggs, three hens, $2.50, 20%, 1,360 meals, 30-pound bag", ["16", "three", "2.50", "20", "1,360", "30"]),
        ("1 egg and 0 hens and one cow", []),
        ('`7 eggs` and "8 hens"', []),
    ],
)
def test_only_numbers_that_nothing_ties_are_drawn_anew(question: str, kept: list[str]) -> None:
    assert [question[site.start : site.end] for site in sites(question)] == kept


@given(
    st.integers(2, 99_999),
    st.sampled_from(["{} hats", "${}", "{}%", "{} cents", "{} days a week", "{} hours a day"]),
    st.integers(0, 99),
)
def test_a_drawn_number_is_of_the_same_kind_and_size(number: int, text: str, seed: int) -> None:
    for site in sites(f"He has {text.format(number)}."):
        drawn = site.drawn(Draws("test", seed))
        assert drawn.denominator == 1
        assert drawn >= 2 or drawn == site.value
        assert abs(drawn - site.value) <= max(Fraction(1), site.value / 2) or site.cap
        if site.cap:
            assert drawn <= max(site.cap, 2) or drawn == site.value
        if site.percent:
            assert (drawn < 100) == (site.value < 100)
        assert Fraction(site.written(drawn).replace(",", "")) == drawn


@given(st.text(max_size=40), st.text(max_size=60))
def test_any_solution_is_read_or_refused(question: str, solution: str) -> None:
    item = Item(item_id="i", question=question or "?", target="4")
    for text in (solution, f"<<{solution}=4>>\n#### 4", f"<<{solution}\n#### {solution}"):
        with suppress(SolutionError):
            fresh_items(item, text, count=1, seed=0)
