"""Answer invariants: changed problems are told from reworded ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.text.invariants import broken_invariants
from tests.support import shared_data

FAITHFUL = [
    ("He buys a house for $80,000.", "A house is bought by him for 80,000 dollars."),
    ("It takes 1 hour to eat 12 eggs.", "Eating a dozen eggs takes an hour."),
    ("She sold twice as many on Monday.", "On Monday she sold double that number."),
    ("5 did not grow.", "5 failed to grow."),
    ("He runs 60 meters each sprint, 3 times a week.", "Three times a week he runs a 60-meter sprint."),
    ("You must be at least 18.", "The minimum age is 18."),
    ("How tall is Mr. Smith's Dad in Europe?", "What is the height of Mr. Smith's father in Europe?"),
    ("There are 27 unicorns in the Scottish Highlands.", "The Highlands of Scotland hold 27 unicorns."),
    ("He waits 30 minutes until 4 PM on Monday.", "On Monday he waits for half an hour, until 4 in the afternoon."),
    ("Two thirds of Jana's 27 puppies are Pomeranians.", "Of Jana's 27 pups two-thirds are of the Pomeranian breed."),
    # The same amount in another unit.
    ("The train leaves at 16:30 and takes 90 minutes.", "At 4:30 PM the train leaves; it takes an hour and a half."),
    ("It lasts 1 hour and 30 minutes.", "It lasts 90 minutes."),
    ("She is 5 feet 6 inches tall.", "Her height is 66 inches."),
    ("A box weighs 2 kg.", "A box has a weight of 2,000 grams."),
    ("He paid for the first half of the year.", "He paid for the initial six months."),
    ("He plays half an hour a day for 2 weeks.", "He plays thirty minutes a day for 14 days."),
    # A relation said from the other side.
    ("Anna has twice as many stamps as Ben.", "Ben has half as many stamps as Anna."),
    ("Ruby is 6 times as old as Sam.", "Sam's age is one-sixth of that of Ruby."),
    ("Tom is 4 years older than Sue.", "Sue is 4 years younger than Tom."),
    ("3 times fewer people came.", "A third as many people came."),
    # What the text lists is counted, or a count of it left out.
    ("Ann, Bo and Cy share 9 nuts. How many has each?", "If all three of Ann, Bo and Cy share 9 nuts, what has each?"),
    ("What is the mean height of these 3 trees?", "What is the mean height of the trees?"),
    ("Gums cost a nickel. He has 8 quarters and 15 pennies.", "Gums cost 5 cents. 8 quarter coins, 15 pennies."),
    ("She got ten twenties.", "She got ten $20 bills."),
    ("She has no apples left.", "She has zero apples left."),
    # A denial in other words, or of nothing that counts.
    ("There is a 10% tax on all nonfood items.", "There is a 10% tax on all items that are not food."),
    ("She can't wait to hike 9 miles.", "She looks forward to hiking 9 miles."),
    ("He is not allowed to take more than 5 books.", "He may take at most 5 books."),
    # Names.
    ("Tim saw that Ethel ate and Ethal has 8.", "Tim saw that Ethal ate and has 8."),
    ("How long was Movie A if Movie B took 2 hours?", "How long was Film A if Film B took 2 hours?"),
    ("Did Japan or the United States win World War II?", "Who won WWII, Japan or the USA?"),
    ("What is the capital of France?", "Name the French capital."),
    ("Does water boil at 100 degrees Celsius?", "Is 100 °C where water boils?"),
    ("40% of the remaining films are old.", "Of the films that are left, 40% are old."),
    ("It rises by 5% of the original price.", "It goes up by 5% of what it cost at first, the original price."),
    ("What percentage of the class dances?", "What portion of the class, as a percentage, dances?"),
    ("It takes 20 minutes a cake. How many minutes do 3 cakes take?", "A cake takes 20 minutes. How long do 3 take?"),
    ("Critics argued that:", "What did critics argue?"),
    ("Critics argued that:", "Did critics argue that:"),
    ("Critics argued that:", "The critics' argument was that..."),
    ("Is money the cause?", "Does the cause lie in money?"),
    ("Can you say which of these is true?", "Which of these is true?"),
    ("The answer of the critics was:", "The critics' answer was:"),
    # A bar parts statements, so what follows it begins a sentence.
    (
        "Statement 1 | Every field is a ring. Statement 2 | x is 0.",
        "Statement 1 | All fields are rings. Statement 2 | x is 0.",
    ),
    # Countries that go by several names.
    ("Patterns of drug use in Britain show that:", "What do patterns of drug use in the UK show?"),
    ("What did the British government do?", "What was done by the government of the United Kingdom?"),
    ("Which laws did Congress in America pass?", "Which laws were passed by Congress in the United States?"),
    # Decades and centuries in their several names.
    ("What emerged in the nineteenth century?", "What emerged during the 1800s?"),
    ("What rose in the 1980s and 1990s?", "What rose during the 80s and 90s?"),
    ("Cities of the 18th and 19th centuries grew.", "Cities grew in the 1700s and the 1800s."),
    # Denials without a word of negation.
    ("The polynomial is irreducible.", "The polynomial cannot be reduced."),
    ("Which idea was not considered?", "Which idea was disregarded?"),
    ("Why is it low in visibility?", "Why is it not easily seen?"),
    ("Matrices with nonzero determinant.", "Matrices whose determinant is not zero."),
    ("Answer the following: how many eggs are there?", "Please answer this: what is the number of eggs?"),
]
CHANGED: list[tuple[str, str, str]] = [
    ("He has 16 eggs.", "He has 18 eggs.", "numerals"),
    ("3 red, 4 blue and 4 green balls.", "3 red, 3 blue and 4 green balls.", "numerals"),
    ("The third child is tall.", "The fifth child is tall.", "numerals"),
    ("He waits 20 minutes.", "He waits 20 hours.", "units"),
    ("It costs $5.", "It costs 5 euros.", "units"),
    ("How many hours does it take?", "How many minutes does it take?", "units"),
    ("5 seeds did not grow.", "5 seeds grew.", "negation"),
    ("Tom has 5 more apples than Ann.", "Tom has 5 fewer apples than Ann.", "comparison"),
    ("You need at least 5 points.", "You need 5 points.", "comparison"),
    ("You need at least 5 points.", "You need at most 5 points.", "comparison"),
    ("What is the capital of France?", "What is the capital of Spain?", "entity"),
    ("How many games does Steve have?", "How many games does Bob have?", "entity"),
    ("It lasts 90 minutes.", "It lasts an hour and a quarter.", "numerals"),
    ("The train leaves at 16:30.", "The train leaves at 4:30 AM.", "numerals"),
    ("She is 5 feet 6 inches tall.", "She is 67 inches tall.", "numerals"),
    ("A box weighs 2 kg.", "A box weighs 2 pounds.", "units"),
    ("He earns 20 dollars per hour.", "He earns 20 dollars per day.", "units"),
    ("Anna has twice as many stamps as Ben.", "Anna has half as many stamps as Ben.", "numerals"),
    ("Ann has twice what Bo has, and Bo twice Cy's.", "Ann has half what Bo has, and Bo half Cy's.", "numerals"),
    ("Tom is 4 years older than Sue.", "Tom is 4 years younger than Sue.", "comparison"),
    ("The temperature is -5 degrees.", "The temperature is 5 degrees.", "numerals"),
    ("What is the largest planet?", "What is the smallest planet?", "comparison"),
    ("The price rose by 10%.", "The price fell by 10%.", "comparison"),
    ("The 4 friends share it.", "The 5 friends share it.", "numerals"),
    ("What is the French word?", "What is the Spanish word?", "entity"),
    ("40% of the remaining films are old.", "The remaining 40% of the films are old.", "shares"),
    ("It rises by 5% of the original price every year.", "It rises by 5% every year.", "shares"),
    ("What percentage of the class dances?", "What portion of the class dances?", "asked"),
    ("What is the percentage chance of rain?", "What is the probability of rain?", "asked"),
    (
        "He has 20 minutes of work and 3 hours. How many minutes can he sleep?",
        "He has 20 minutes of work and 3 hours. How long can he sleep?",
        "asked",
    ),
    ("Critics argued that:", "Critics argued that money decides.", "answer"),
    ("Why do critics argue?", "Why do critics argue? Answer: money decides.", "answer"),
    (
        "John has a glass of water with breakfast, lunch and dinner, and has one before he goes to bed every weekday. "
        "How many glasses of water does he drink?",
        "How many glasses does John drink?",
        "content",
    ),
    ("What emerged in the nineteenth century?", "What emerged during the 1900s?", "numerals"),
    ("What rose in the 1980s?", "What rose during the 70s?", "numerals"),
    ("What rose in the 1880s?", "What rose during the 1980s?", "numerals"),
    ("It has 1800 parts.", "It has the nineteenth part of it.", "numerals"),
    ("Patterns of drug use in Britain show that:", "What do patterns of drug use in the US show?", "entity"),
    ("Statement 1 | The ring of Gauss is a field.", "Statement 1 | The ring of Galois is a field.", "entity"),
    ("A survey should avoid asking:", "A poll should avoid posing:\nResponse: leading questions", "answer"),
    ("Find the cosets of 4Z.", "Name the cosets of 4Z. Answer: 4Z and 2 + 4Z", "answer"),
]


@pytest.mark.parametrize(("original", "rewording"), FAITHFUL)
def test_a_faithful_rewording_breaks_nothing(original: str, rewording: str) -> None:
    assert broken_invariants(original, rewording) == []


@pytest.mark.parametrize(("original", "rewording", "name"), CHANGED)
def test_a_changed_problem_breaks_the_invariant_that_it_changed(original: str, rewording: str, name: str) -> None:
    assert name in broken_invariants(original, rewording)


@given(st.integers(1, 500), st.sampled_from([("hours", "minutes", 60), ("weeks", "days", 7), ("feet", "inches", 12)]))
def test_an_amount_may_be_given_in_a_smaller_unit_and_no_other_may(count: int, units: tuple[str, str, int]) -> None:
    large, small, size = units
    original = f"It takes {count + 1} {large}."
    assert broken_invariants(original, f"It takes {(count + 1) * size} {small}.") == []
    assert "numerals" in broken_invariants(original, f"It takes {(count + 1) * size + 1} {small}.")


@given(st.text(max_size=300))
def test_a_text_breaks_nothing_against_itself(text: str) -> None:
    assert broken_invariants(text, text) == []


def test_nearly_all_rephrasings_of_gsm8k_keep_every_invariant() -> None:
    lines = (shared_data() / "gsm8k" / "rephrased.jsonl").read_text().splitlines()
    pairs = [(row["original"], row["rephrased"]) for row in map(json.loads, lines) if row["rephrased"].strip()]
    kept = sum(not broken_invariants(original, rephrased) for original, rephrased in pairs)
    assert kept / len(pairs) > 0.94


def test_a_rephrasing_of_another_gsm8k_problem_is_nearly_always_turned_away() -> None:
    lines = (shared_data() / "gsm8k" / "rephrased.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["rephrased"].strip()]
    shifted = zip(rows, rows[1:] + rows[:1], strict=True)
    passed = sum(not broken_invariants(row["original"], other["rephrased"]) for row, other in shifted)
    assert passed / len(rows) < 0.01
