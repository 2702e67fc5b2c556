"""What the library knows of a suite, or of one of its items, gathered and printed."""

from __future__ import annotations

import difflib
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from proctor.cli.terminal import say, table
from proctor.cli.variants.building import counted, ranked
from proctor.cli.variants.held import held_rewordings, print_held
from proctor.cli.variants.opening import SuiteVariants
from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.fidelity import Fidelity
from proctor.domain.labels import LabelScheme, labelled
from proctor.formats.faults import shown
from proctor.formats.variant_lines import Entry
from proctor.perturbation.library.store import Origin, VariantLibrary

_MEASURES: Final = ("semantic_distance", "token_overlap", "edit_distance", "containment")
_NEVER_BUILT: Final = "run `proctor variants build` with this suite"


def suite_document(
    opened: SuiteVariants, entries: Sequence[Entry], library: VariantLibrary, measured: Sequence[Fidelity]
) -> dict[str, Any]:
    """The counts of a suite's variants as plain data."""
    rejected = Counter(rejection.reason for entry in entries for rejection in entry.rejections)
    origins = Counter(_origins(entries, library).values())
    with_variants = sum(bool(entry.variants) for entry in entries)
    variants = sum(len(entry.variants) for entry in entries)
    missing = len(opened.items) - len(entries)
    conclusion = (
        f"The library has {variants:,} variants for {with_variants:,} of the {len(opened.items):,} items"
        + (f"; {missing:,} were never built: {_NEVER_BUILT}." if missing else ".")
    )  # fmt: skip
    return {
        "suite": opened.suite.audit_suite_id,
        "benchmark": opened.benchmark,
        "strategy": opened.chain.name,
        "encoder": opened.encoder_name,
        "items": len(opened.items),
        "items_in_library": len(entries),
        "items_with_variants": with_variants,
        "variants": variants,
        "rejected": ranked(rejected),
        "measurements": {name: _spread(entries, name) for name in _MEASURES},
        "origins": [
            {**origin.plain(), "items": count} if origin is not None else {"source": "unknown", "items": count}
            for origin, count in sorted(origins.items(), key=lambda pair: (-pair[1], str(pair[0])))
        ],
        "fidelity": [one.plain() for one in measured],
        "held": held_rewordings(opened, entries, library),
        "conclusion": conclusion,
    }


def item_document(opened: SuiteVariants, item_id: str, library: VariantLibrary) -> dict[str, Any]:
    """One item with its variants as plain data.

    Raises:
        BadInputError: for an item that the suite does not ask, with those that are called alike.
    """
    item = next((one for one in opened.items if one.item_id == item_id), None)
    if item is None:
        near = difflib.get_close_matches(item_id, [one.item_id for one in opened.items], n=3)
        hint = (
            f"; did you mean {', '.join(map(shown, near))}?" if near else f"; the first is {opened.items[0].item_id!r}"
        )
        raise BadInputError(f"{shown(item_id)} is none of the {len(opened.items):,} items that this suite asks{hint}")
    entry = next((one for one in opened.entries(library) if one.item.item_id == item_id), None)
    if entry is None:
        return {
            "item": item.plain(), "in_library": False, "key": None, "variants": [], "rejections": [], "held": [],
            "origin": None,
            "conclusion": f"The library has never seen this item: {_NEVER_BUILT}.",
        }  # fmt: skip
    origin = _origins([entry], library)[entry.key]
    count = len(entry.variants)
    return {
        "item": item.plain(),
        "in_library": True,
        "key": entry.key,
        "variants": [{"variant_id": variant.variant_id, **variant.plain()} for variant in entry.variants],
        "rejections": [rejection.plain() for rejection in entry.rejections],
        "held": held_rewordings(opened, [entry], library),
        "origin": origin.plain() if origin is not None else None,
        "conclusion": f"{count} of {opened.section.num_variants_per_item} wanted variants"
        + (f"; {counted(Counter(one.reason for one in entry.rejections))}." if entry.rejections else "."),
    }


def print_suite(document: dict[str, Any]) -> None:
    """Print what `suite_document` made."""
    say(f"{document['suite']}: {document['strategy']} on {document['benchmark']}, measured by {document['encoder']}\n")
    rows: list[tuple[object, ...]] = [("admitted", document["variants"])]
    rows += [(f"rejected: {reason}", count) for reason, count in document["rejected"].items()]
    say(table(("candidates", "number"), [(name, f"{count:,}") for name, count in rows]))
    spreads = [(name, spread) for name, spread in document["measurements"].items() if spread is not None]
    if spreads:
        say("")
        ends = ("low", "median", "high")
        say(table(("of the admitted", *ends), [(n, *(f"{s[end]:.4f}" for end in ends)) for n, s in spreads]))
    for origin in document["origins"]:
        say(f"\n{_origin_words(origin)}: {origin['items']:,} items")
    for one in document["fidelity"]:
        cost = one["cost"]
        interval = "undefined" if cost["value"] is None else (
            f"{cost['value']:+.1f} [{cost['low']:+.1f}, {cost['high']:+.1f}] points"
        )  # fmt: skip
        say(f"\nFidelity: rewording cost the clean model {one['model_id']} {interval} over {one['n_items']:,} items")
    if document["held"]:
        items = {held["item_id"]: held["item_question"] for held in document["held"]}
        say(f"\nHeld by the answering check, to be read: {len(document['held']):,} of {len(items):,} items")
        for item_id, question in items.items():
            say(f"\n{item_id}\n  {_indented(question)}")
            for held in document["held"]:
                if held["item_id"] == item_id:
                    print_held(held)
    say(f"\n{document['conclusion']}")


def print_item(document: dict[str, Any]) -> None:
    """Print what `item_document` made. Questions come from files that may be hostile: `say` cleans them."""
    item = document["item"]
    say(f"{item['item_id']}\n  {_indented(item['question'])}")
    for option in item["choices"]:
        say(f"  - {_indented(option)}")
    say(f"  target: {_indented(item['target'])}")
    for variant in document["variants"]:
        measured = variant["measurements"]
        figures = ", ".join(
            f"{name.replace('_', ' ')} {measured[name]:.4f}" for name in _MEASURES if measured.get(name) is not None
        )
        say(f"\n{variant['variant_id']}  {variant['strategy']}, level {variant['level']}")
        say(f"  {_indented(variant['question'])}")
        if "labels" in variant:
            for option in labelled(variant["choices"], LabelScheme(variant["labels"])):
                say(f"  {_indented(option)}")
        elif variant["choices"] != item["choices"]:
            for option in variant["choices"]:
                say(f"  - {_indented(option)}")
        say(f"  {figures}")
        if variant["provenance"]:
            say(f"  made by {canonical_json(variant['provenance']).decode()}")
    for rejection in document["rejections"]:
        say(f"\nrejected: {rejection['reason']}: {_indented(rejection['detail'])}")
    for held in document["held"]:
        print_held(held)
    if document["in_library"]:
        say(f"\n{_origin_words(document['origin'] or {'source': 'unknown'})}\nkey {document['key']}")
    say(f"\n{document['conclusion']}")


def _origins(entries: Sequence[Entry], library: VariantLibrary) -> dict[str, Origin | None]:
    """Origins by key; dates are of the row and not of what made it, so a whole suite's are left out."""
    known = library.origins(entry.key for entry in entries)
    several = len(entries) > 1
    found: dict[str, Origin | None] = {}
    for entry in entries:
        origin = known.get(entry.key)
        found[entry.key] = origin.model_copy(update={"created_at": ""}) if several and origin is not None else origin
    return found


def _origin_words(origin: dict[str, Any]) -> str:
    if origin["source"] == "unknown":
        return "Made by a Proctor that kept no record of itself"
    when = f" on {origin['created_at']}" if origin["created_at"] else ""
    whence = "Built" if origin["source"] == "build" else f"Imported from {origin['file'][:19]}"
    return f"{whence} by Proctor {origin['proctor']}, gate {origin['gate']}{when}"


def _spread(entries: Sequence[Entry], name: str) -> dict[str, float] | None:
    values = [
        value
        for entry in entries
        for variant in entry.variants
        if (value := getattr(variant.measurements, name, None)) is not None
    ]
    if not values:
        return None
    return {"low": min(values), "median": statistics.median(values), "high": max(values)}


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
