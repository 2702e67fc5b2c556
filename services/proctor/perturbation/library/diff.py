"""Two sets of variants side by side: what is in one alone, and what was measured otherwise. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.domain.base import Frozen
from proctor.domain.item import Measurements
from proctor.formats.variant_lines import Entry, Header

#: What of a header says how the variants came about; the rest counts and names.
_RECIPE = ("benchmark", "encoder", "encoder_fingerprint", "gate", "suite_fingerprint")


class ChangedSetting(Frozen):
    """A setting behind the variants that is not the same."""

    name: str
    a: Any
    b: Any


class VariantOf(Frozen):
    """A variant by its identifiers."""

    item_id: str
    variant_id: str


class ChangedMeasurements(VariantOf):
    """The same variant of the same item, measured otherwise."""

    a: Measurements
    b: Measurements


class VariantsDiff(Frozen):
    """How two sets of variants differ. Lists are sorted by item."""

    settings: tuple[ChangedSetting, ...]
    items_only_in_a: tuple[str, ...]
    items_only_in_b: tuple[str, ...]
    items_changed: tuple[str, ...]
    """Items of the same identifier that ask something else, or have another target: their variants are not compared."""
    variants_only_in_a: tuple[VariantOf, ...]
    """Of items that are in both."""
    variants_only_in_b: tuple[VariantOf, ...]
    measurements_changed: tuple[ChangedMeasurements, ...]
    items_same: int
    """Items in both that ask the same."""
    variants_same: int
    """Variants in both with the same measurements."""

    @property
    def equal(self) -> bool:
        """Whether both hold the same variants of the same items, measured alike."""
        differences = (
            self.items_only_in_a,
            self.items_only_in_b,
            self.items_changed,
            self.variants_only_in_a,
            self.variants_only_in_b,
            self.measurements_changed,
        )
        return not any(differences)

    @property
    def conclusion(self) -> str:
        """The comparison in one sentence."""
        if self.equal:
            return f"Both hold the same {self.variants_same:,} variants of the same {self.items_same:,} items."
        return (
            f"{self.variants_same:,} variants are the same; of the {self.items_same:,} items that both have, A alone "
            f"has {len(self.variants_only_in_a):,} variants and B alone {len(self.variants_only_in_b):,}, and "
            f"{len(self.measurements_changed):,} are measured otherwise."
        )


def diff_variants(a: tuple[Header, Sequence[Entry]], b: tuple[Header, Sequence[Entry]]) -> VariantsDiff:
    """Compare two sets, each with its header. Items are paired by identifier, and compared where they ask the same.

    An item without a variant counts as not there: an export without rejections cannot tell the two apart.
    """
    first, second = ({entry.item.item_id: entry for entry in entries if entry.variants} for _, entries in (a, b))
    common = sorted(first.keys() & second.keys())
    same = [item_id for item_id in common if _asked(first[item_id]) == _asked(second[item_id])]
    only_a, only_b, changed = [], [], []
    unchanged = 0
    for item_id in same:
        left, right = (
            {variant.variant_id: variant.measurements for variant in entry.variants}
            for entry in (first[item_id], second[item_id])
        )
        only_a += [VariantOf(item_id=item_id, variant_id=variant_id) for variant_id in left if variant_id not in right]
        only_b += [VariantOf(item_id=item_id, variant_id=variant_id) for variant_id in right if variant_id not in left]
        for variant_id in left.keys() & right.keys():
            if left[variant_id] == right[variant_id]:
                unchanged += 1
            else:
                changed.append(
                    ChangedMeasurements(item_id=item_id, variant_id=variant_id, a=left[variant_id], b=right[variant_id])
                )
    return VariantsDiff(
        settings=_settings(a[0], b[0]),
        items_only_in_a=tuple(sorted(first.keys() - second.keys())),
        items_only_in_b=tuple(sorted(second.keys() - first.keys())),
        items_changed=tuple(sorted(set(common) - set(same))),
        variants_only_in_a=tuple(only_a),
        variants_only_in_b=tuple(only_b),
        measurements_changed=tuple(sorted(changed, key=lambda one: (one.item_id, one.variant_id))),
        items_same=len(same),
        variants_same=unchanged,
    )


def _asked(entry: Entry) -> str:
    return entry.item.content_hash


def _settings(a: Header, b: Header) -> tuple[ChangedSetting, ...]:
    left, right = ({name: getattr(header, name) for name in _RECIPE} | header.settings.plain() for header in (a, b))
    # A field that was added later stands only where it says something.
    names = dict.fromkeys([*left, *right])
    return tuple(
        ChangedSetting(name=name, a=left.get(name), b=right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    )
