"""Functions to write: by signature, rules and examples, with hidden tests that a reference implementation answers.

The reference is Python text that the template puts together from its own pieces; the same text is the known-good
answer,
so that what is asked, what is expected and what is right cannot drift apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from proctor.grading.programs import CodeTests, written_tests
from proctor.perturbation.strategies.draws import Draws
from proctor.studies.datasets.made import Made, Template

_EXAMPLES: Final = 2
_HIDDEN: Final = 10
#: Below that many different results, a function that does nearly nothing would pass.
_MIN_RESULTS: Final = 5
_ADJECTIVES: Final = (
    "amber",
    "brisk",
    "calm",
    "dense",
    "early",
    "faint",
    "grand",
    "hazel",
    "inner",
    "jolly",
    "keen",
    "lunar",
)
_NOUNS: Final = ("harbor", "signal", "ribbon", "ledger", "meadow", "anchor", "lantern", "orchard", "quarry", "spiral")
_WORDS: Final = (
    "river", "stone", "Apple", "moon", "level", "a", "Sun", "garden", "noon", "tree", "be", "Window", "cloud", "of",
    "sea",
    "kayak", "lamp", "Otter", "it", "wheel",
)  # fmt: skip


class _Step(NamedTuple):
    """One rule: what is said of it, and the line that does it."""

    said: str
    line: str


class _Task(NamedTuple):
    """A function without its name."""

    parameter: str
    takes: str
    gives: str
    rules: list[str]
    body: list[str]
    draw_input: Callable[[Draws], Any]
    edges: Sequence[Any]


def _number_step(draws: Draws) -> _Step:
    k, small = 2 + draws.below(5), 1 + draws.below(4)
    bound = draws.below(12) - 3
    return draws.one_of(
        (
            _Step(f"Keep only the numbers that are divisible by {k}.", f"values = [v for v in values if v % {k} == 0]"),
            _Step(f"Leave out the numbers that are divisible by {k}.", f"values = [v for v in values if v % {k} != 0]"),
            _Step(f"Keep only the numbers that are greater than {bound}.", f"values = [v for v in values if v > "
                                                                           f"{bound}]"),
            _Step(f"Multiply each number by {k}.", f"values = [v * {k} for v in values]"),
            _Step(f"Add {small} to each number.", f"values = [v + {small} for v in values]"),
            _Step("Replace each number by its square.", "values = [v * v for v in values]"),
            _Step("Replace each number by its absolute value.", "values = [abs(v) for v in values]"),
            _Step("Reverse the order.", "values = values[::-1]"),
            _Step("Sort in ascending order.", "values = sorted(values)"),
            _Step("Sort in descending order.", "values = sorted(values, reverse=True)"),
            _Step("Of numbers that occur several times, keep the first occurrence.", "values = "
                                                                                     "list(dict.fromkeys(values))"),
            _Step("Replace each number by the sum of all numbers up to and including it.",
                  "values = [sum(values[: i + 1]) for i in range(len(values))]"),
            _Step("Replace the list by the differences of neighbours, each number minus the one before it; the "
                  "result is "
                  "one shorter, and empty for fewer than two numbers.",
                  "values = [b - a for a, b in zip(values, values[1:])]"),
            _Step(f"Keep every {k}th number only: the 1st, the {k + 1}th, and so on.", f"values = values[::{k}]"),
            _Step(f"Move the first {small} numbers to the end (all of them, if there are fewer).",
                  f"values = values[{small}:] + values[:{small}]"),
        )
    )  # fmt: skip


def _number_end(draws: Draws) -> tuple[str, _Step]:
    k = 2 + draws.below(3)
    return draws.one_of(
        (
            ("list[int]", _Step("Return the list.", "return values")),
            ("int", _Step("Return the sum of the numbers; 0 for none.", "return sum(values)")),
            ("int", _Step("Return the largest number; -1 if none is left.", "return max(values, default=-1)")),
            ("int", _Step("Return the smallest number; -1 if none is left.", "return min(values, default=-1)")),
            ("list[int]", _Step(f"Return the last {k} numbers (all, if there are fewer).", f"return values[-{k}:]")),
            ("list[int]", _Step(f"Return the first {k} numbers (all, if there are fewer).", f"return values[:{k}]")),
        )
    )


def _numbers(draws: Draws) -> list[int]:
    return [draws.below(40) - 12 for _ in range(3 + draws.below(9))]


def _list_task(draws: Draws) -> _Task:
    steps = [_number_step(draws) for _ in range(2 + draws.below(2))]
    gives, end = _number_end(draws)
    return _Task(
        "values", "list[int]", gives, [one.said for one in (*steps, end)],
        ["values = list(values)", *(one.line for one in (*steps, end))], _numbers, ([], [7], [4, 4, 4], [-5, 0, 5]),
    )  # fmt: skip


def _word_step(draws: Draws) -> _Step:
    k, letter, other = 2 + draws.below(3), draws.one_of("aeo"), draws.one_of("xyz")
    return draws.one_of(
        (
            _Step("Make every letter lower case.", "words = [w.lower() for w in words]"),
            _Step("Make every letter upper case.", "words = [w.upper() for w in words]"),
            _Step(f"Keep only the words of more than {k} letters.", f"words = [w for w in words if len(w) > {k}]"),
            _Step("Reverse the letters of each word.", "words = [w[::-1] for w in words]"),
            _Step("Reverse the order of the words.", "words = words[::-1]"),
            _Step(f"Replace each '{letter}' by '{other}' (this letter case alone).",
                  f"words = [w.replace('{letter}', '{other}') for w in words]"),
            _Step("Of words that occur several times, keep the first occurrence.", "words = "
                                                                                   "list(dict.fromkeys(words))"),
            _Step("Sort the words by length, words of the same length in the order that they have.",
                  "words = sorted(words, key=len)"),
            _Step("Leave out the vowels (a, e, i, o, u in either case); a word of vowels alone is then empty and is "
                  "left "
                  "out.",
                  "words = [w for w in (''.join(c for c in w if c not in 'aeiouAEIOU') for w in words) if w]"),
            _Step(f"Keep every {k}th word only: the 1st, the {k + 1}th, and so on.", f"words = words[::{k}]"),
        )
    )  # fmt: skip


def _text_task(draws: Draws) -> _Task:
    steps = [_word_step(draws) for _ in range(2 + draws.below(2))]
    mark = draws.one_of(("-", "_", "/", " "))
    gives, end = draws.one_of(
        (
            ("str", _Step(f"Join the words with {mark!r} and return the text.", f"return {mark!r}.join(words)")),
            ("list[str]", _Step("Return the list of the words.", "return words")),
            ("int", _Step("Return how many letters the words have together.", "return sum(len(w) for w in words)")),
        )
    )
    return _Task(
        "text", "str", gives, ["Split the text into words at white space.", *(one.said for one in (*steps, end))],
        ["words = text.split()", *(one.line for one in (*steps, end))], _sentence, ("", "Apple", "noon level noon"),
    )  # fmt: skip


def _sentence(draws: Draws) -> str:
    return " ".join(draws.one_of(_WORDS) for _ in range(2 + draws.below(8)))


def _runs_task(draws: Draws) -> _Task:
    least = 1 + draws.below(3)
    said = "or more " if least > 1 else ""
    return _Task(
        "values", "list[int]", "list[list[int]]",
        ["A run is a stretch of equal neighbours that is as long as it can be.",
         f"Return a pair [number, length] for each run of {least} {said}numbers, in order; other runs are left out."],
        ["runs = []", "for v in values:", "    if runs and runs[-1][0] == v:", "        runs[-1][1] += 1", "    else:",
         "        runs.append([v, 1])", f"return [run for run in runs if run[1] >= {least}]"],
        lambda drawn: [v for _ in range(3 + drawn.below(4)) for v in [drawn.below(4)] * (1 + drawn.below(4))],
        ([], [1], [2, 2, 2, 2], [1, 2, 1]),
    )  # fmt: skip


def _windows_task(draws: Draws) -> _Task:
    size, step = 2 + draws.below(4), 1 + draws.below(2)
    what, call = draws.one_of((("largest", "max"), ("smallest", "min"), ("sum", "sum")))
    said = "sum of the numbers" if what == "sum" else f"{what} number"
    return _Task(
        "values", "list[int]", "list[int]",
        [f"A window is a stretch of {size} neighbours. The first begins at the first number, and each other {step} "
         f"{'place' if step == 1 else 'places'} after the one before it; a window that would go past the end is left "
         f"out.",
         f"Return the {said} of each window, in order."],
        [f"return [{call}(values[i : i + {size}]) for i in range(0, len(values) - {size} + 1, {step})]"],
        _numbers, ([], [3], [1] * size),
    )  # fmt: skip


def _intervals_task(draws: Draws) -> _Task:
    gap = draws.below(4)
    near = "overlap or touch" if gap == 0 else f"overlap, touch, or are at most {gap} apart"

    def drawn(one: Draws) -> list[list[int]]:
        begins = [one.below(40) for _ in range(2 + one.below(5))]
        return [[begin, begin + one.below(9)] for begin in begins]

    return _Task(
        "intervals", "list[list[int]]", "list[list[int]]",
        ["Each interval is a pair [begin, end] with begin <= end, in any order.",
         f"Merge intervals that {near} (from the end of one to the begin of the next) into one, again and again.",
         "Return what is left, sorted by begin."],
        ["merged = []", "for begin, end in sorted(intervals):", f"    if merged and begin - merged[-1][1] <= {gap}:",
         "        merged[-1][1] = max(merged[-1][1], end)", "    else:", "        merged.append([begin, end])",
         "return merged"],
        drawn, ([], [[1, 1]], [[5, 6], [1, 9]]),
    )  # fmt: skip


def _made(task: _Task, draws: Draws) -> Made | None:
    name = f"{draws.one_of(_ADJECTIVES)}_{draws.one_of(_NOUNS)}"
    signature = f"def {name}({task.parameter}: {task.takes}) -> {task.gives}:"
    source = "\n".join([signature, *(f"    {line}" for line in task.body)]) + "\n"
    function = _compiled(source, name)
    inputs = [*task.edges, *(task.draw_input(draws) for _ in range(_HIDDEN + _EXAMPLES))]
    # Each from its own text: nothing that one call changes reaches another.
    results = [function(json.loads(json.dumps(one))) for one in inputs]
    if len({json.dumps(one) for one in results}) < _MIN_RESULTS or _is_trivial(inputs, results):
        return None
    shown = "\n".join(
        f"{name}({one!r}) == {result!r}" for one, result in list(zip(inputs, results, strict=True))[-_EXAMPLES:]
    )
    rules = "\n".join(f"{number}. {rule}" for number, rule in enumerate(task.rules, 1))
    question = (
        f"Write a Python function `{signature.removeprefix('def ').removesuffix(':')}` that does this:\n{rules}\n\n"
        f"Examples:\n{shown}\n\nGive the whole function in one Python code block. Use nothing but the standard library."
    )
    hidden = CodeTests(name, tuple((one,) for one in inputs[:-_EXAMPLES]), tuple(results[:-_EXAMPLES]))
    return Made(question, written_tests(hidden), f"```python\n{source}```\n")


def _compiled(source: str, name: str) -> Callable[[Any], Any]:
    """The reference: text that stands in this module, with whole numbers and single letters filled in."""
    space: dict[str, Any] = {}
    exec(source, space)  # noqa: S102, the text is ours
    function: Callable[[Any], Any] = space[name]
    return function


def _is_trivial(inputs: list[Any], results: list[Any]) -> bool:
    """Whether giving back what was given would pass nearly everything."""
    return [one == result for one, result in zip(inputs, results, strict=True)].count(True) > len(inputs) // 2


def _template(name: str, task: Callable[[Draws], _Task]) -> Template:
    return Template(f"code_generation/{name}/1", lambda draws: _made(task(draws), draws))


TEMPLATES: Final = (
    _template("numbers", _list_task),
    _template("words", _text_task),
    _template("runs", _runs_task),
    _template("windows", _windows_task),
    _template("intervals", _intervals_task),
)
