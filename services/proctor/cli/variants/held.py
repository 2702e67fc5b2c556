"""The rewordings that an answering check holds for reading, gathered and printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.cli.terminal import say
from proctor.cli.variants.opening import SuiteVariants
from proctor.formats.variant_lines import Entry
from proctor.perturbation.library.store import VariantLibrary


def held_rewordings(opened: SuiteVariants, entries: Sequence[Entry], library: VariantLibrary) -> list[dict[str, Any]]:
    """What checks by the suite's present rule held of these entries, as plain data, in the items' order.

    What a check by another rule held is not among them; none is where the suite asks for no check.
    """
    check = opened.suite.perturbation.answering_check
    if check is None:
        return []
    rows = [(entry.item, variant.variant_id) for entry in entries for variant in entry.variants]
    found = library.held({variant_id for _, variant_id in rows}, check.rule_digest)
    return [
        {
            **found[variant_id].plain(),
            # Equal problems share what was said of them, whatever they are called.
            "item_id": item.item_id,
            "item_question": item.question,
            "allowed": variant_id in check.allowed,
        }
        for item, variant_id in rows
        if variant_id in found
    ]


def print_held(held: dict[str, Any]) -> None:
    """Print one of `held_rewordings`. Questions and answers come from elsewhere: `say` cleans them."""
    p = "" if held["p"] is None else f", p {held['p']:.2g}"
    allowed = ", allowed by the suite" if held["allowed"] else ""
    say(f"\nheld: {held['variant_id']}: {held['finding'].replace('_', ' ')}{p}{allowed}")
    say("  " + held["question"].replace("\n", "\n  "))
    for one in held["answers"]:
        say(f"  {one['solver']}: item {_counts(one['item'])}; rewording {_counts(one['rewording'])}")


def _counts(answers: list[dict[str, Any]]) -> str:
    said = (f"{one['n']}× {'unreadable' if one['answer'] is None else one['answer']}" for one in answers)
    return ", ".join(said) or "no answer"
