"""The same words set differently: line breaks, quotes, dashes, case, the final mark."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import Fixed, sentences
from proctor.perturbation.strategies.rule import Maker, Reworded, RuleStrategy
from proctor.text.normalise import TEXTS_KEPT

_SPACE_AFTER_COMMA: Final = re.compile(r"(?<=[a-z]), (?=[a-z])")
_STRAIGHT: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"'})
_RUN: Final = re.compile(r"\w+")
#: White space that means something: verse, code, lists, tables.
_LAID_OUT: Final = re.compile(r"\n|\t|   |```")


class Formatting(RuleStrategy):
    """One to three changes of setting. Words, their order and every sign between digits stay.

    A candidate shares all its words with the original, so that a suite's default `max_token_overlap` turns it away
    on its own: use it in a chain (`lexical+format`), or with a limit of 1 to measure sensitivity to layout.
    """

    name = "format"
    nothing = ("no_layout", "the question is laid out in a way that means something, or has nothing to set differently")

    def maker(self, question: str, item: Item) -> Maker | None:
        """The question in another setting."""
        names = [name for name, change in _CHANGES.items() if change(question) not in (None, question)]
        # White space and the form of quotes alone are no other text to the gate: where more can be had, one is more.
        seen = [name for name in names if name in _SEEN]

        def make(draws: Draws) -> Reworded:
            chosen = draws.some_of(seen or names, 1)
            chosen += draws.some_of([name for name in names if name not in chosen], draws.below(3))
            reworded, changes = question, []
            for name in _CHANGES:
                # One change can take another's place away (a break where a space was); that one is left out.
                changed = _CHANGES[name](reworded) if name in chosen else None
                if changed is not None and changed != reworded:
                    reworded = changed
                    changes.append(name)
            return Reworded(reworded, {"changes": changes})

        return make if names else None


def _one_sentence_a_line(question: str) -> str | None:
    return _joined(question, "\n")


def _blank_lines(question: str) -> str | None:
    return _joined(question, "\n\n")


def _two_spaces(question: str) -> str | None:
    return _joined(question, "  ")


def _joined(question: str, between: str) -> str | None:
    if _LAID_OUT.search(question):
        return None
    return between.join(question[start:end] for start, end in sentences(question))


def _straight_quotes(question: str) -> str | None:
    return question.translate(_STRAIGHT)


def _curly_apostrophes(question: str) -> str | None:
    return None if Fixed.of(question) else re.sub(r"(?<=[A-Za-z])'(?=[a-z])", "\u2019", question)


def _lower_case(question: str) -> str | None:
    """Small letters throughout, where no word hangs on its capitals."""
    return None if _hangs_on_case(question) else question.lower()


def _upper_case(question: str) -> str | None:
    return question.upper() if question.isascii() and not _hangs_on_case(question) else None


@lru_cache(maxsize=TEXTS_KEPT)
def _hangs_on_case(question: str) -> bool:
    """Whether it has quotes, code or layout, or words with their own capitals: NASA, iPhone, plan B."""
    if Fixed.of(question) or _LAID_OUT.search(question):
        return True
    return any(
        run not in ("A", "I") if len(run) == 1 and run.isupper() else run[1:] != run[1:].lower()
        for run in _RUN.findall(question)
    )


def _no_final_mark(question: str) -> str | None:
    bare = question.rstrip()
    return bare[:-1] if bare.endswith("?") and bare[:-1].strip() else None


def _spaced_final_mark(question: str) -> str | None:
    bare = question.rstrip()
    return f"{bare[:-1].rstrip()} {bare[-1]}" if bare.endswith("?") else None


def _no_comma_space(question: str) -> str | None:
    return None if Fixed.of(question) else _SPACE_AFTER_COMMA.sub(",", question)


#: In the order in which they are applied; of those that shut each other out the later finds nothing more to do.
_CHANGES: Final[dict[str, Callable[[str], str | None]]] = {
    "straight_quotes": _straight_quotes,
    "curly_apostrophes": _curly_apostrophes,
    "lower_case": _lower_case,
    "upper_case": _upper_case,
    "no_comma_space": _no_comma_space,
    "no_final_mark": _no_final_mark,
    "spaced_final_mark": _spaced_final_mark,
    "one_sentence_a_line": _one_sentence_a_line,
    "blank_lines": _blank_lines,
    "two_spaces": _two_spaces,
}
_SEEN: Final = ("lower_case", "upper_case", "no_comma_space", "no_final_mark", "spaced_final_mark")
