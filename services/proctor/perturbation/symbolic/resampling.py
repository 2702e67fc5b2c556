"""Fresh items from worked solutions: the question's numbers drawn anew, the answer recomputed through every step.

A fresh item asks something else, so it is no variant: it belongs to the arm `fresh`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.rule import Edit, edited
from proctor.perturbation.symbolic.number_sites import Site, sites
from proctor.perturbation.symbolic.worked_solution import Leaf, Solution, SolutionError, Step, evaluate, parse_solution
from proctor.text.numerals import numerals

METHOD: Final = "symbolic/1"
#: Draws until the steps come out as whole as they were; few items that have a way need more than a hundred.
_MAX_DRAWS: Final = 400
_MAX_PARTS: Final = 100
_DIGITS: Final = re.compile(r"\d{1,30}(?:\.\d{1,30})?")
#: Numbers that a solution may bring in of its own, where the question has a word for them.
_CONSTANTS: Final[dict[Fraction, re.Pattern[str]]] = {
    Fraction(value): re.compile(rf"(?:\b(?:{cues})|[%$])" if "%" in cues else rf"\b(?:{cues})", re.IGNORECASE)
    for value, cues in {
        "1": "",
        "2": "half|halv|twice|doubl|both|pair|couple|other|average|bicycle|bike|biweek",
        "3": "tripl|thrice|third",
        "4": "quarter|quadrupl|month|fourth",
        "7": "week|dail|day",
        "10": "dime|decade|tenth",
        "12": "dozen|year|annual|month|f[eo]+t|inch",
        "16": "pound|ounce",
        "24": "day|hour",
        "25": "quarter",
        "30": "month|half an hour",
        "36": "yard",
        "52": "year|week|annual",
        "60": "hour|minute|mph|mile",
        "100": "%|percent|cent|dollar|met(?:er|re)s?|centimet|century",
        "365": "year|annual",
        "1000": "kilo|kg|km|k\\b|lit(?:er|re)|gram|thousand",
        "0.5": "half|halv|equal",
        "0.25": "quarter",
        "0.1": "dime|tenth",
        "0.05": "nickel",
        "0.01": "%|percent|cent|penn",
    }.items()
}  # fmt: skip


class _Chain(NamedTuple):
    """A solution tied to its question: where each leaf's value comes from."""

    steps: tuple[Step, ...]
    from_site: dict[int, tuple[int, bool]]
    """Site and whether its hundredth is meant, by leaf."""
    from_step: dict[int, int]


def fresh_items(item: Item, solution: str, *, count: int, seed: int) -> list[Item]:
    """At most `count` items like this one with other numbers and the answers to them.

    A number is drawn anew when it stands once in the question and is used in the annotated arithmetic; all others
    stay. Draws are kept whose every step is as whole and as positive as it was, and whose answer is another.

    Args:
        item: a free-form item whose target is a number.
        solution: its worked solution with `<<expression=value>>` annotations and a last line `#### answer`.
        count: how many; fewer come back when the numbers allow no more.
        seed: the same seed gives the same items.

    Raises:
        SolutionError: when the item cannot be resampled safely, with a reason code: those of `parse_solution`,
            `unannotated` (the chain has a gap), `step_wrong`, `answer_differs`, `ambiguous_number`, `unknown_number`,
            `no_free_number`, `no_draw`, `has_options`.
    """
    if item.choices:
        raise SolutionError("has_options", "its options would have to be made anew as well")
    parsed = parse_solution(solution)
    _check(parsed, item)
    found = sites(item.question)
    chain = _tie(parsed, found, item.question)
    used = sorted({index for index, _ in chain.from_site.values()})
    fresh: list[Item] = []
    seen = {item.question}
    for draw in range(_MAX_DRAWS):
        if len(fresh) == count:
            break
        draws = Draws(METHOD, seed, item.content_hash, draw)
        values = {index: found[index].drawn(draws) for index in used}
        if all(values[index] == found[index].value for index in used):
            continue
        answer = _recomputed(chain, values)
        if answer is None or answer == parsed.answer or (parsed.answer.denominator == 1 != answer.denominator):
            continue
        question = edited(item.question, _edits(found, values))
        if question not in seen:
            seen.add(question)
            fresh.append(_item(item, question, answer, found, values, {"seed": seed, "number": len(fresh)}))
    if not fresh:
        raise SolutionError("no_draw", "no other numbers keep every step whole and positive")
    return fresh


def _check(parsed: Solution, item: Item) -> None:
    if parsed.gap:
        raise SolutionError("unannotated", f"an equation without annotation: {parsed.gap!r}")
    wrong = next((step for step in parsed.steps if not step.exact), None)
    if wrong is not None:
        raise SolutionError("step_wrong", f"a step's value {wrong.stated} is not what it computes exactly")
    if parsed.steps[-1].stated != parsed.answer:
        raise SolutionError("answer_differs", f"the last step gives {parsed.steps[-1].stated}, not {parsed.answer}")
    if _plain(parsed.answer) != item.target.replace(",", "").strip():
        raise SolutionError("answer_differs", f"the item's target is {item.target[:40]!r}, not {parsed.answer}")


def _tie(parsed: Solution, found: Sequence[Site], question: str) -> _Chain:
    """Find where every leaf's value comes from.

    Raises:
        SolutionError: `ambiguous_number` for a value that an earlier step and the question both have, or two earlier
            steps; `unknown_number` for one that nothing explains; `no_free_number` when nothing could be drawn.
    """
    fixed = _fixed_values(found, question)
    owners: dict[Fraction, list[tuple[int, bool]]] = {}
    for index, site in enumerate(found):
        for hundredth, reading in enumerate(site.readings):
            owners.setdefault(reading, []).append((index, bool(hundredth)))
    chain = _Chain(parsed.steps, {}, {})
    unsure: set[int] = set()
    for number, step in enumerate(parsed.steps):
        for leaf in step.leaves:
            earlier = [one for one in range(number) if parsed.steps[one].stated == leaf.value]
            constant = leaf.value in fixed or _explained(leaf.value, question)
            owner = owners.get(leaf.value, [])
            if len(earlier) > 1 or (earlier and (owner or constant)):
                raise SolutionError("ambiguous_number", f"{leaf.value} could come from two places")
            if earlier:
                chain.from_step[leaf.number] = earlier[0]
            elif len(owner) == 1 and not constant:
                chain.from_site[leaf.number] = owner[0]
            elif owner:
                # It may be any of them: none of them may change, not even where another leaf is surely its.
                unsure.update(index for index, _ in owner)
            elif not constant:
                raise SolutionError("unknown_number", f"{leaf.value} is neither in the question nor computed")
    chain = chain._replace(from_site={leaf: one for leaf, one in chain.from_site.items() if one[0] not in unsure})
    if not chain.from_site:
        raise SolutionError("no_free_number", "no number stands once in the question and once in its solution")
    return chain


def _fixed_values(found: Sequence[Site], question: str) -> frozenset[Fraction]:
    """What the question's numbers that are no sites may be in a solution: they stay.

    A fraction may come apart there ("1/6 of the 24 liters" as 24*1/6, "a third" as /3), so its parts count, and so do
    the digits of dates, times and codes.
    """
    every = Counter(Fraction(value) for value in numerals(question).elements())
    others = frozenset(every - Counter(site.meant for site in found))
    parts = {part for value in others for part in value.limit_denominator(_MAX_PARTS).as_integer_ratio()}
    spans = {site.start for site in found}
    digits = {Fraction(match.group()) for match in _DIGITS.finditer(question) if match.start() not in spans}
    return others | {Fraction(part) for part in parts} | digits


def _explained(value: Fraction, question: str) -> bool:
    cue = _CONSTANTS.get(value)
    return cue is not None and bool(cue.search(question))


def _recomputed(chain: _Chain, values: dict[int, Fraction]) -> Fraction | None:
    """The answer under new values; None where a step is less whole than it was, or not positive where it was."""
    results: list[Fraction] = []

    def value_of(leaf: Leaf) -> Fraction:
        if leaf.number in chain.from_step:
            return results[chain.from_step[leaf.number]]
        if leaf.number in chain.from_site:
            index, hundredth = chain.from_site[leaf.number]
            return values[index] / 100 if hundredth else values[index]
        return leaf.value

    for step in chain.steps:
        try:
            result = evaluate(step.expression, value_of)
        except ZeroDivisionError:
            return None
        if (result <= 0) != (step.stated <= 0) or (result * 10**step.decimals).denominator != 1:
            return None
        results.append(result)
    return results[-1]


def _edits(found: Sequence[Site], values: dict[int, Fraction]) -> list[Edit]:
    return [Edit(found[n].start, found[n].end, found[n].written(value)) for n, value in values.items()]


def _item(
    item: Item,
    question: str,
    answer: Fraction,
    found: Sequence[Site],
    values: dict[int, Fraction],
    made: dict[str, int],
) -> Item:
    numbers = [[found[n].written(found[n].value), found[n].written(value)] for n, value in sorted(values.items())]
    provenance = {"method": METHOD, "from": item.item_id, "from_hash": item.content_hash, **made, "numbers": numbers}
    return Item(
        item_id=f"{item.item_id}~fresh-{made['number']}",
        question=question,
        target=_plain(answer),
        dimension=item.dimension,
        metadata={**item.metadata, "fresh": provenance},
    )


def _plain(value: Fraction) -> str:
    """A whole number without a point, any other with as many decimals as it has."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.10f}".rstrip("0")
