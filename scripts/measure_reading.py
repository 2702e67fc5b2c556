"""What each check of the gate that reads adds and costs, on pairs that people would, and would not, take for the same.

For each check: how many of the rewordings that readers refuse it turns away that no other check does, and how many of
those that they accept. Three sets: 847 pairs of GSM8K on which the checks were made, 240 on which they were not, and
361 of MMLU. No encoder: the distance and the surface are left out.

    python scripts/measure_reading.py ../shared/data
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from draw_further_pairs import ACCEPTABLE, labelled_further_pairs
from draw_labelled_pairs import LABELS as FIRST_LABELS
from draw_labelled_pairs import drawn, read_pairs
from proctor.evidence.intervals import wilson
from proctor.text.answers import keeps_open
from proctor.text.invariants import CHECKS
from proctor.text.relations import keeps_relations
from proctor.text.told_options import told_options

#: Read for the first labels; what is not among those was accepted, but for one that came too late to be taken.
_READ_FIRST: Final = 847
_REFUSED_LATE: Final = 353
#: The checks that came with the second reading; all others are the gate as it was.
_ADDED: Final = ("shares", "asked", "answer")


class Pair(NamedTuple):
    """Two texts, the options where there are, and whether readers take them for the same problem."""

    original: str
    rewording: str
    choices: tuple[str, ...]
    same: bool


class Row(NamedTuple):
    """What a check does on one set of pairs."""

    check: str
    pairs: str
    refused: int
    of_bad: int
    lost: int
    of_good: int


Check = Callable[[Pair], bool]


def first_pairs(data: Path) -> list[Pair]:
    """The GSM8K pairs on which the checks were made."""
    with FIRST_LABELS.open(encoding="utf-8", newline="") as lines:
        bad = {int(row["index"]) for row in csv.DictReader(lines) if row["label"] != ACCEPTABLE} | {_REFUSED_LATE}
    read = drawn(read_pairs(data / "gsm8k" / "rephrased.jsonl"))[:_READ_FIRST]
    return [Pair(pair.original, pair.rephrased, (), pair.index not in bad) for pair in read]


def fresh_pairs(data: Path, source: str) -> list[Pair]:
    """Those of the second reading."""
    return [
        Pair(one.pair.original, one.pair.rephrased, one.pair.choices, one.label == ACCEPTABLE)
        for one in labelled_further_pairs(data)
        if one.pair.source == source
    ]


def _usual(pair: Pair) -> bool:
    return all(keeps(pair.original, pair.rewording) for name, keeps in CHECKS.items() if name not in _ADDED)


def _option_told(pair: Pair) -> bool:
    return not told_options(pair.original, pair.rewording, pair.choices)


CHECKED: Final[dict[str, Check]] = {
    "asked": lambda pair: CHECKS["asked"](pair.original, pair.rewording),
    "shares": lambda pair: CHECKS["shares"](pair.original, pair.rewording),
    "answer": lambda pair: CHECKS["answer"](pair.original, pair.rewording),
    "yes_or_no": lambda pair: keeps_open(pair.original, pair.rewording, pair.choices),
    "option_told": _option_told,
    "relations (strict_relations)": lambda pair: keeps_relations(pair.original, pair.rewording),
}


def measured(pairs: Sequence[Pair], name: str) -> list[Row]:
    """A row for the checks as they were, then for each added one: what it turns away of what is left."""
    good, bad = [pair for pair in pairs if pair.same], [pair for pair in pairs if not pair.same]
    rows = [_row("all before", name, bad, good, _usual, len(bad), len(good))]
    bad_left, good_left = list(filter(_usual, bad)), list(filter(_usual, good))
    checked = {**CHECKED, "the five by default, together": _by_default}
    rows += [_row(check, name, bad_left, good_left, passes, len(bad), len(good)) for check, passes in checked.items()]
    return rows


def _by_default(pair: Pair) -> bool:
    return (
        CHECKED["yes_or_no"](pair)
        and _option_told(pair)
        and all(CHECKS[name](pair.original, pair.rewording) for name in _ADDED)
    )


def _row(
    check: str, name: str, bad: Sequence[Pair], good: Sequence[Pair], passes: Check, of_bad: int, of_good: int
) -> Row:
    refused, lost = (sum(not passes(pair) for pair in pairs) for pairs in (bad, good))
    return Row(check, name, refused, of_bad, lost, of_good)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with gsm8k/ and mmlu_rephrased/")
    data = parser.parse_args().data
    sets = {
        "GSM8K, made on": first_pairs(data),
        "GSM8K, fresh": fresh_pairs(data, "gsm8k"),
        "MMLU": fresh_pairs(data, "mmlu"),
    }
    print("| check | pairs | refused of bad | lost of good |\n|---|---|---:|---:|")
    for row in (row for name, pairs in sets.items() for row in measured(pairs, name)):
        print(
            f"| {row.check} | {row.pairs} | {row.refused} of {row.of_bad} | {row.lost} of {row.of_good}, "
            f"{_share(row.lost, row.of_good)} |"
        )


def _share(count: int, of: int) -> str:
    found = wilson(count, of, 0.95)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return f"{100 * found.value:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}]"


if __name__ == "__main__":
    main()
