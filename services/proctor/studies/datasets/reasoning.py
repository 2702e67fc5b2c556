"""Arithmetic word problems of several steps, with the worked solution that their answer is computed by.

The first is the article's, mended: it gives away no more apples than there are.
"""

from __future__ import annotations

from typing import Final

from proctor.perturbation.strategies.draws import Draws
from proctor.studies.datasets.made import Made, Template

_NAMES: Final = (
    "Alice", "Amir", "Bruno", "Chiara", "Dmitri", "Elena", "Farid", "Grace", "Hanna", "Ines", "Jonas", "Keiko", "Lena",
    "Mateo", "Nadia", "Olga", "Pedro", "Quentin", "Rosa", "Samir", "Tessa", "Umar", "Vera", "Wanda", "Yusuf", "Zoe",
)  # fmt: skip
_THINGS: Final = (
    "apples", "marbles", "stamps", "postcards", "buttons", "shells", "pencils", "beads", "coins", "stickers", "tickets",
    "photographs", "cards", "walnuts", "badges", "pears",
)  # fmt: skip
_GOODS: Final = (
    ("notebook", "notebooks"), ("lamp", "lamps"), ("plant", "plants"), ("chair", "chairs"), ("kettle", "kettles"),
    ("blanket", "blankets"), ("basket", "baskets"), ("mirror", "mirrors"), ("brush", "brushes"), ("vase", "vases"),
)  # fmt: skip
_PLACES: Final = (
    "the harbour",
    "the next town",
    "the lake",
    "a farm",
    "the border",
    "the airport",
    "a mill",
    "the coast",
)
_MAKERS: Final = ("bakery", "workshop", "press", "dairy", "nursery", "pottery", "mill", "foundry")


class _Steps:
    """A solution as it is written down, each step annotated as GSM8K's are."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, what: str, expression: str, value: int) -> int:
        """One step; gives its value."""
        self._lines.append(f"{what}: {expression} = <<{expression}={value}>>{value}.")
        return value

    def made(self, question: str, answer: int) -> Made:
        """The problem that they solve."""
        solution = "\n".join([*self._lines, f"#### {answer}"])
        return Made(question, str(answer), solution, solution)


def _shares(draws: Draws) -> Made:
    name, other = draws.some_of(_NAMES, 2)
    thing, steps = draws.one_of(_THINGS), _Steps()
    has, times = 20 + draws.below(80), 2 + draws.below(8)
    gives = 5 + draws.below(has - 10)
    left = steps.add("Left", f"{has}-{gives}", has - gives)
    bought = steps.add("Bought", f"{left}*{times}", left * times)
    total = steps.add("In all", f"{left}+{bought}", left + bought)
    return steps.made(
        f"{name} has {has} {thing}. {name} gives {gives} of them to {other}, and then buys {times} times as many as "
        f"are "
        f"left. How many {thing} does {name} have now?",
        total,
    )


def _shopping(draws: Draws) -> Made:
    name, steps = draws.one_of(_NAMES), _Steps()
    (one, many), (second, seconds) = draws.some_of(_GOODS, 2)
    price, count, other, others = 3 + draws.below(40), 2 + draws.below(9), 2 + draws.below(30), 2 + draws.below(7)
    off = 5 * (1 + draws.below(3))
    first = steps.add(f"For the {many}", f"{count}*{price}", count * price)
    rest = steps.add(f"For the {seconds}", f"{others}*{other}", others * other)
    both = steps.add("Together", f"{first}+{rest}", first + rest)
    pays = steps.add("With the voucher", f"{both}-{off}", both - off)
    note = 100 * (pays // 100 + 1)
    change = steps.add("Change", f"{note}-{pays}", note - pays)
    return steps.made(
        f"A {one} costs ${price} and a {second} ${other}. {name} buys {count} {many} and {others} {seconds}, hands "
        f"in a "
        f"voucher worth ${off}, and pays with ${note}. How many dollars does {name} get back?",
        change,
    )


def _journey(draws: Draws) -> Made:
    name, place, steps = draws.one_of(_NAMES), draws.one_of(_PLACES), _Steps()
    first, second = 2 + draws.below(6), 2 + draws.below(5)
    fast, slow = 60 + 5 * draws.below(12), 20 + 5 * draws.below(7)
    away = steps.add("On the main road", f"{first}*{fast}", first * fast)
    further = steps.add("On the small road", f"{second}*{slow}", second * slow)
    there = steps.add("To the place", f"{away}+{further}", away + further)
    both = steps.add("There and back", f"2*{there}", 2 * there)
    return steps.made(
        f"On the way to {place}, {name} drives for {first} hours at {fast} kilometres an hour and then for {second} "
        f"hours "
        f"at {slow} kilometres an hour, and later drives back the same way. How many kilometres is that in all?",
        both,
    )


def _wages(draws: Draws) -> Made:
    name, steps = draws.one_of(_NAMES), _Steps()
    hours, rate, over, more = 20 + draws.below(21), 11 + draws.below(25), 2 + draws.below(9), 4 + draws.below(12)
    tax = 10 + draws.below(60)
    plain = steps.add("Usual hours", f"{hours}*{rate}", hours * rate)
    higher = steps.add("Rate of the others", f"{rate}+{more}", rate + more)
    extra = steps.add("Other hours", f"{over}*{higher}", over * higher)
    earned = steps.add("Earned", f"{plain}+{extra}", plain + extra)
    kept = steps.add("Kept", f"{earned}-{tax}", earned - tax)
    return steps.made(
        f"{name} earns ${rate} an hour, and ${more} more than that for each hour past {hours} in a week. Last week "
        f"it was "
        f"{hours + over} hours. After ${tax} for the insurance, how many dollars are left of the week's wage?",
        kept,
    )


def _packing(draws: Draws) -> Made:
    maker, thing, steps = draws.one_of(_MAKERS), draws.one_of(_THINGS), _Steps()
    days, daily, size = 3 + draws.below(8), 40 + draws.below(160), 6 + draws.below(14)
    broken = 1 + draws.below(30)
    made = steps.add("Made", f"{days}*{daily}", days * daily)
    good = steps.add("Good ones", f"{made}-{broken}", made - broken)
    boxes = good // size
    packed = steps.add(f"In {boxes} full boxes", f"{boxes}*{size}", boxes * size)
    left = steps.add("Left over", f"{good}-{packed}", good - packed)
    return steps.made(
        f"A {maker} packs {thing}. It made {daily} a day for {days} days, of which {broken} were broken and thrown "
        f"away. "
        f"The others are packed in boxes of {size}, as many full boxes as there can be. How many {thing} are left "
        f"over?",
        left,
    )


def _ages(draws: Draws) -> Made:
    old, middle, young = draws.some_of(_NAMES, 3)
    age, times, more, later = 3 + draws.below(12), 2 + draws.below(3), 2 + draws.below(9), 3 + draws.below(15)
    steps = _Steps()
    second = steps.add(middle, f"{age}*{times}", age * times)
    third = steps.add(old, f"{second}+{more}", second + more)
    total = steps.add("Together", f"{age}+{second}+{third}", age + second + third)
    grown = steps.add("Years that come to it", f"3*{later}", 3 * later)
    answer = steps.add("Then", f"{total}+{grown}", total + grown)
    return steps.made(
        f"{young} is {age} years old. {middle} is {times} times as old as {young}, and {old} is {more} years older "
        f"than "
        f"{middle}. How old will the three be together in {later} years?",
        answer,
    )


def _saving(draws: Draws) -> Made:
    name, steps = draws.one_of(_NAMES), _Steps()
    weekly, weeks, spent, friends = 6 + draws.below(40), 5 + draws.below(30), 1 + draws.below(25), 2 + draws.below(4)
    saved = steps.add("Saved", f"{weekly}*{weeks}", weekly * weeks)
    added = (-(saved - spent)) % friends
    left = steps.add("After the present", f"{saved}-{spent}", saved - spent)
    whole = steps.add("With what was found", f"{left}+{added}", left + added) if added else left
    share = steps.add("Each", f"{whole}/{friends}", whole // friends)
    found = f" then finds ${added} in a drawer," if added else ""
    return steps.made(
        f"{name} saves ${weekly} a week for {weeks} weeks, spends ${spent} of it on a present,{found} and shares what "
        f"there is equally among {friends} friends. How many dollars does each friend get?",
        share,
    )


TEMPLATES: Final = tuple(
    Template(f"reasoning/{name}/1", make)
    for name, make in (
        ("shares", _shares),
        ("shopping", _shopping),
        ("journey", _journey),
        ("wages", _wages),
        ("packing", _packing),
        ("ages", _ages),
        ("saving", _saving),
    )
)
