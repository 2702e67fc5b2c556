"""Re-enact the draw behind `tests/data/further_pairs`: which pairs, the orders of reading, the digests.

`show` prints pairs in a reader's order, to be read and labelled; nothing here decides a label. `check` holds the
committed labels against the draw and the data:

    python scripts/draw_further_pairs.py ../shared/data show A --source mmlu
    python scripts/draw_further_pairs.py ../shared/data check
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from draw_labelled_pairs import drawn, read_pairs

LABELS: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "further_pairs" / "labels.csv"
#: How many rows of each subject are drawn; None for all.
SUBJECTS: Final = {"sociology": None, "abstract_algebra": None, "high_school_us_history": 60}
#: Positions of the draw of `gsm8k_pairs` that nobody had read.
GSM8K: Final = slice(847, 1087)
ACCEPTABLE: Final = "acceptable"
NOT_ACCEPTABLE: Final = "not_acceptable"


class FurtherPair(NamedTuple):
    """An item and its rephrasing."""

    source: str
    id: str
    original: str
    rephrased: str
    choices: tuple[str, ...]
    answer: str

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of both texts: another text shows."""
        return hashlib.sha256(f"{self.original}\n{self.rephrased}".encode()).hexdigest()[:16]


class Labelled(NamedTuple):
    """A pair and what its readers made of it."""

    pair: FurtherPair
    label: str
    reason: str


def further_pairs(data: Path) -> list[FurtherPair]:
    """The drawn pairs of MMLU, then of GSM8K."""
    pairs = [pair for subject, count in SUBJECTS.items() for pair in mmlu_pairs(data, subject)[:count]]
    for pair in drawn(read_pairs(data / "gsm8k" / "rephrased.jsonl"))[GSM8K]:
        pairs.append(FurtherPair("gsm8k", f"gsm8k-{pair.index}", pair.original, pair.rephrased, (), pair.answer))
    return pairs


def mmlu_pairs(data: Path, subject: str) -> list[FurtherPair]:
    """All rows of a subject, in the order of the draw."""
    items = {row["id"]: row for row in _rows(data / "mmlu_rephrased" / f"{subject}.jsonl")}
    pairs = []
    for row in _rows(data / "mmlu_rephrased" / f"{subject}_rephrased.jsonl"):
        item = items[row["item_id"]]
        pairs.append(
            FurtherPair("mmlu", item["id"], item["question"], row["question"], tuple(item["choices"]), item["answer"])
        )
    return sorted(pairs, key=lambda pair: _rank("mmlu-pairs/1", pair.id))


def labelled_further_pairs(data: Path, labels: Path = LABELS) -> list[Labelled]:
    """The drawn pairs with their labels, those that the readers dispute left out."""
    pairs = {pair.id: pair for pair in further_pairs(data)}
    with labels.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["label"] in (ACCEPTABLE, NOT_ACCEPTABLE)]
    return [Labelled(pairs[row["id"]], row["label"], row["reason"]) for row in rows]


def differences(pairs: Sequence[FurtherPair], labels: Path = LABELS) -> list[str]:
    """What in the committed labels does not agree with the draw or the data; empty when all of it does."""
    with labels.open(encoding="utf-8", newline="") as lines:
        rows = {row["id"]: row for row in csv.DictReader(lines)}
    by_id = {pair.id: pair for pair in pairs}
    found = [f"{name} was drawn and not labelled" for name in by_id.keys() - rows.keys()]
    found += [f"{name} was labelled and not drawn" for name in rows.keys() - by_id.keys()]
    found += [
        f"{name}: its text is not the one that was labelled"
        for name in by_id.keys() & rows.keys()
        if rows[name]["sha256"] != by_id[name].digest
    ]
    return sorted(found)


def _rank(seed: str, name: str) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with gsm8k/ and mmlu_rephrased/")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="print pairs in a reader's order")
    show.add_argument("reader", choices=("A", "B"))
    show.add_argument("--source", choices=("mmlu", "gsm8k"), required=True)
    commands.add_parser("check", help="hold the committed labels against the draw and the data")
    arguments = parser.parse_args()
    pairs = further_pairs(arguments.data)
    if arguments.command == "show":
        mine = [pair for pair in pairs if pair.source == arguments.source]
        mine.sort(key=lambda pair: _rank(f"read/{arguments.reader}", pair.id))
        for number, pair in enumerate(mine, start=1):
            options = "".join(f"\n  {letter}: {choice}" for letter, choice in zip("ABCD", pair.choices, strict=False))
            print(f"[{number}] {pair.id}, answer {pair.answer}\n  O: {pair.original}\n  R: {pair.rephrased}{options}")
        return
    found = differences(pairs)
    print("\n".join(found) or "The labels agree with the draw and the data.")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
