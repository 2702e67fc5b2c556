"""Items of one's own from templates: every problem has an answer that its grader takes for right, by the seed alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.grading import EXTRACTORS, resolve_extractor
from proctor.grading.constraints import checked, parse_constraints
from proctor.grading.programs import parse_tests, try_answer
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.symbolic.resampling import fresh_items
from proctor.perturbation.symbolic.worked_solution import SolutionError
from proctor.studies.datasets.dimensions import DIMENSIONS
from proctor.studies.datasets.functions import TEMPLATES as FUNCTIONS
from proctor.studies.datasets.item_files import written_items
from proctor.studies.datasets.made import Made, Template
from proctor.studies.datasets.making import make_items
from tests.sandboxes import sandbox

_TEMPLATES = [
    pytest.param(template, dimension.scoring, id=template.name)
    for dimension in DIMENSIONS.values()
    for template in dimension.templates
]
seeds = st.integers(0, 2**53 - 1)


def made_by(template: Template, seed: int) -> Made:
    """The first problem that a template makes of a seed."""
    return next(one for number in range(200) if (one := template.make(Draws("test", seed, number))) is not None)


def items(name: str, count: int, seed: int = 7) -> list[Item]:
    return make_items(DIMENSIONS[name], count, seed=seed, scoring=DIMENSIONS[name].scoring)


@pytest.mark.parametrize(("template", "scoring"), _TEMPLATES)
@given(seed=seeds)
@settings(max_examples=60)
def test_every_problem_has_an_answer_that_its_grader_takes_for_right(
    template: Template, scoring: str, seed: int
) -> None:
    made, extractor = made_by(template, seed), EXTRACTORS[scoring]
    extracted = extractor.extract(made.known_good, ())
    assert extracted is not None
    if scoring == "execution":
        tests = parse_tests(made.target)
        assert f"def {tests.entry}(" in extracted
    else:
        assert extractor.agrees(extracted, made.target)


@given(seed=seeds)
@settings(max_examples=100)
def test_a_worked_solution_computes_every_step_and_ends_in_the_answer(seed: int) -> None:
    for template in DIMENSIONS["reasoning"].templates:
        made = made_by(template, seed)
        for expression, value in re.findall(r"<<([-+*/\d]+)=(-?\d+)>>", made.solution):
            assert eval(expression) == int(value)
            assert int(value) >= 0
        assert made.solution.endswith(f"#### {made.target}")


def test_worked_solutions_are_good_for_drawing_the_numbers_anew() -> None:
    drawn = [item.metadata["template"] for item in items("reasoning", 60) if _resampled(item)]
    assert set(drawn) >= {"reasoning/shares/1", "reasoning/journey/1", "reasoning/ages/1"}


def _resampled(item: Item) -> list[Item]:
    try:
        return fresh_items(item, item.metadata["solution"], count=1, seed=1)
    except SolutionError:
        return []


@given(seed=seeds)
@settings(max_examples=100)
def test_constraints_never_contradict_each_other(seed: int) -> None:
    for template in DIMENSIONS["instruction_following"].templates:
        made = made_by(template, seed)
        constraints = parse_constraints(made.target)
        assert len(constraints) >= 2
        assert all(checked(made.known_good, constraints))


def test_an_answer_that_follows_nothing_breaks_something_of_nearly_every_item() -> None:
    followed = [all(checked("I would rather not, thank you.", parse_constraints(one.target)))
                for one in items("instruction_following", 200)]  # fmt: skip
    assert sum(followed) < 10


@pytest.mark.parametrize("template", [pytest.param(one, id=one.name) for one in FUNCTIONS])
def test_a_reference_passes_its_hidden_tests_and_what_does_nothing_does_not(template: Template) -> None:
    run = sandbox()
    for seed in range(3):
        made = made_by(template, seed)
        code = EXTRACTORS["execution"].extract(made.known_good, ())
        assert code is not None
        assert try_answer(code, made.target, run).detail == ""
        name = parse_tests(made.target).entry
        for wrong in ("return None", "return arguments[0]", "return []", "return 0", "raise ValueError"):
            assert try_answer(f"def {name}(*arguments):\n    {wrong}\n", made.target, run).passed < 10


@given(seed=seeds)
@settings(max_examples=100)
def test_hidden_tests_tell_functions_apart(seed: int) -> None:
    for template in FUNCTIONS:
        made = made_by(template, seed)
        tests = parse_tests(made.target)
        assert len({str(one) for one in tests.expected}) >= 3


@pytest.mark.parametrize("name", DIMENSIONS)
def test_the_same_seed_makes_the_same_bytes_and_another_seed_other_items(name: str) -> None:
    assert written_items(items(name, 40)) == written_items(items(name, 40))
    assert written_items(items(name, 60)).startswith(written_items(items(name, 40)))
    assert not {one.item_id for one in items(name, 40)} & {one.item_id for one in items(name, 40, seed=8)}


@pytest.mark.parametrize("name", DIMENSIONS)
def test_items_say_what_they_are(name: str) -> None:
    for item in items(name, 30):
        assert item.dimension == name
        assert item.metadata["scoring"] == DIMENSIONS[name].scoring
        assert item.metadata["seed"] == 7
        assert item.metadata["template"].startswith(f"{name}/")
        assert item.cluster == item.metadata["template"]
    assert resolve_extractor(DIMENSIONS[name].scoring, items(name, 30)).name == DIMENSIONS[name].scoring


@pytest.mark.parametrize("name", DIMENSIONS)
def test_five_hundred_items_are_five_hundred_problems(name: str) -> None:
    made = items(name, 500)
    assert len({one.question for one in made}) == len({one.item_id for one in made}) == 500


def test_more_items_than_there_are_is_said() -> None:
    few = DIMENSIONS["reasoning"]._replace(
        templates=(Template("x/1", lambda draws: Made(str(draws.below(3)), "1", "1")),)
    )
    with pytest.raises(BadInputError, match="gave 3 different items of this seed and not 5"):
        make_items(few, 5, seed=1, scoring="numeric")


def test_a_told_fact_has_one_answer_and_stands_in_its_question() -> None:
    for item in items("factual_recall", 200):
        assert item.target in item.question
