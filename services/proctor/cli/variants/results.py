"""Printing what building and comparing variants came to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from proctor.cli.terminal import say, table
from proctor.cli.variants.building import BuildSummary
from proctor.perturbation.library.diff import VariantOf, VariantsDiff

#: Enough to see what is missing; JSON has all of them.
_SHOWN_ITEMS: Final = 10


def print_build(summary: BuildSummary) -> None:
    """Print the yield by reason, and the items that got too few."""
    say(f"{summary.suite}: {summary.strategy} on {summary.benchmark}, {summary.wanted} variants an item wanted\n")
    total = summary.variants + sum(summary.rejected.values())
    rows = [("admitted", summary.variants), *((f"rejected: {name}", n) for name, n in summary.rejected.items())]
    say(table(("candidates", "number", "share"), [(name, f"{n:,}", f"{100 * n / total:.1f} %") for name, n in rows]))
    if summary.short:
        say(f"\nFewer variants than wanted: {_some(summary.short)}")
    if summary.without:
        named = [f"{item_id} ({reasons})" for item_id, reasons in summary.without.items()]
        say(f"\nNo variant, so not audited: {_some(named)}")
    for note in summary.notes:
        say(f"\nnote: {note}")
    say(f"\n{summary.conclusion}")


def diff_document(found: VariantsDiff, a: Path, b: Path) -> dict[str, Any]:
    """A comparison as plain data."""
    return {"a": str(a), "b": str(b), "equal": found.equal, **found.plain(), "conclusion": found.conclusion}


def print_diff(found: VariantsDiff, a: Path, b: Path) -> None:
    """Print what is in one set alone or measured otherwise, with an example of each."""
    say(f"A: {a}\nB: {b}\n")
    items = (
        ("items only in A", found.items_only_in_a),
        ("items only in B", found.items_only_in_b),
        ("items that ask something else", found.items_changed),
    )
    variants = (
        ("variants only in A", found.variants_only_in_a),
        ("variants only in B", found.variants_only_in_b),
        ("variants measured otherwise", found.measurements_changed),
    )
    rows = [(name, f"{len(some):,}", some[0] if some else "") for name, some in items]
    rows += [(name, f"{len(some):,}", _name(some[0]) if some else "") for name, some in variants]
    say(table(("what", "number", "e.g."), rows))
    if found.settings:
        say("\nMade by other settings:")
        say(table(("setting", "A", "B"), [(one.name, one.a, one.b) for one in found.settings]))
    say(f"\n{found.conclusion}")


def _name(one: VariantOf) -> str:
    return f"{one.item_id} {one.variant_id}"


def _some(names: Sequence[str]) -> str:
    lines = [f"{len(names):,} items", *(f"  {name}" for name in names[:_SHOWN_ITEMS])]
    if len(names) > _SHOWN_ITEMS:
        lines.append(f"  and {len(names) - _SHOWN_ITEMS:,} more; --format json lists them all")
    return "\n".join(lines)
