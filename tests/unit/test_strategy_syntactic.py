"""Rules of sentence building: each on sentences that it is for, and on near misses."""

from __future__ import annotations

import pytest

from proctor.perturbation.strategies import clauses, questions
from proctor.perturbation.strategies.syntactic import Syntactic
from proctor.perturbation.strategies.verbs import past, third_person
from tests.unit.strategy_checks import candidates, gsm8k

RULES = {**clauses.SENTENCE_RULES, **questions.QUESTION_RULES, "join": clauses.join}


@pytest.mark.parametrize(
    ("rule", "sentence", "made"),
    [
        ("number_of", "How many eggs does she sell?", "What is the number of eggs that she sells?"),
        ("number_of", "How much money did Tom spend?", "What is the amount of money that Tom spent?"),
        ("number_of", "How many will he still have?", None),
        ("number_of", "How many eggs will he still have?", "What is the number of eggs that he will still have?"),
        ("number_of", "If he eats 2, how many are left?", None),
        (
            "number_of",
            "If he eats 2, how many eggs can he sell?",
            "If he eats 2, what is the number of eggs that he can sell?",
        ),
        ("number_of", "How many more eggs does she sell?", None),
        ("number_of", "How many eggs does Ann sell than Bob?", None),
        ("find_how", "How many more eggs does she sell?", "Determine how many more eggs she sells."),
        ("find_how", "How much did Ann and Bob's aunt give?", None),
        ("find_how", "How many eggs does the old hen lay?", None),
        ("find_how_many_are", "How many eggs are left?", "Find how many eggs are left."),
        ("number_of_are", "How many pupils are there in the class?", "What is the number of pupils in the class?"),
        ("number_of_are", "How many eggs are left?", "What is the number of eggs that are left?"),
        ("number_of_are", "How many eggs are red and how many are blue?", None),
        ("find_the", "What is the price of the hat?", "Find the price of the hat."),
        ("find_the", "What was the price of the hat?", None),
        ("how_many_in", "What is the total number of pupils in the class?", "How many pupils are there in the class?"),
        ("condition_last", "If he sells 3, how many hats are left?", "How many hats are left if he sells 3?"),
        ("condition_last", "If Tom sells 3 hats, how many hats does he have?", None),
        ("condition_last", "If she sells 3, then ate 4, how many hats are left?", None),
        ("condition_first", "How many hats are left if he sells 3?", "If he sells 3, how many hats are left?"),
        ("condition_first", "How many days before the deadline will Mike finish?", None),
        ("condition_first", "She asks if he sells 3 hats.", None),
        ("part", "She buys 9 hats, and she sells 3.", "She buys 9 hats. She sells 3."),
        ("part", "If she buys 9 hats, and she sells 3, it rains.", None),
        ("join", "She buys 9 hats.  She sells 3.", "She buys 9 hats, and she sells 3."),
        ("join", "If it rains, go. She sells 3.", None),
        ("place_has", "There are 20 pupils in the class.", "The class has 20 pupils."),
        ("passive", "Ann planted twelve trees.", "Twelve trees were planted by Ann."),
        ("passive", "She planted twelve trees.", None),
        ("passive", "Ann bought 15 more trees.", None),
    ],
)
def test_a_rule_builds_its_sentence_otherwise_or_keeps_off(rule: str, sentence: str, made: str | None) -> None:
    found = RULES[rule](sentence)
    assert (found and found.replace("Determine", "Find")) == (made and made.replace("Determine", "Find"))


@pytest.mark.parametrize(
    ("verb", "third", "before"),
    [
        ("sell", "sells", "sold"),
        ("carry", "carries", "carried"),
        ("play", "plays", "played"),
        ("watch", "watches", "watched"),
        ("have", "has", "had"),
        ("go", "goes", "went"),
        ("bake", "bakes", "baked"),
        ("read", "reads", None),
        ("tug", "tugs", None),
        ("earn", "earns", "earned"),
        ("be", None, None),
        ("3", None, None),
    ],
)
def test_verbs_take_the_form_of_a_statement(verb: str, third: str | None, before: str | None) -> None:
    assert (third_person(verb), past(verb)) == (third, before)


def test_sentences_change_one_by_one_and_the_provenance_names_the_rules() -> None:
    question = "Tom has 9 hats. He sells 3. How many hats does he have left?"
    made = [one for seed in range(9) for one in candidates(Syntactic(share=1.0), question, seed=seed)]
    rules = {tuple(one.provenance["syntactic"]["rules"]) for one in made}
    assert rules >= {("join", "number_of"), ("join", "find_how")}
    assert "Tom has 9 hats, and he sells 3. What is the number of hats that he has left?" in {
        one.question for one in made
    }


def test_sentences_with_code_or_quotes_are_left_as_they_are() -> None:
    assert candidates(Syntactic(), 'How many "eggs" does she sell?') == []
    assert candidates(Syntactic(), "How many eggs does `x_1` sell?") == []


def test_two_thirds_of_gsm8k_have_a_sentence_that_a_rule_is_sure_of() -> None:
    items = [item for item, _ in gsm8k()]
    served = sum(bool(candidates(Syntactic(), item.question, limit=1)) for item in items)
    assert served > 0.6 * len(items)
