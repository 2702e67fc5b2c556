"""Re-enact the draw behind `tests/data/gsm8k_pairs`: the order of reading, the digests, the stopping rule.

`show` prints pairs in the drawn order, to be read and labelled by a person; nothing here decides a label. `check` holds
the committed labels against the draw and the data:

    python scripts/draw_labelled_pairs.py ../shared/data/gsm8k/rephrased.jsonl show --first 0 --count 40
    python scripts/draw_labelled_pairs.py ../shared/data/gsm8k/rephrased.jsonl check
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SEED = "gsm8k-pairs/1"
WANTED = {"acceptable": 160, "not_acceptable": 40}
LABELS = Path(__file__).resolve().parents[1] / "tests" / "data" / "gsm8k_pairs" / "labels.csv"


@dataclass(frozen=True)
class Pair:
    """A row of the data file."""

    index: int
    original: str
    rephrased: str
    answer: str

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of both texts: another text shows."""
        return hashlib.sha256(f"{self.original}\n{self.rephrased}".encode()).hexdigest()[:16]


def drawn(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs in the order of reading: by a keyed hash of the index, so it depends on no library's generator."""
    return sorted(pairs, key=lambda pair: hashlib.sha256(f"{SEED}:{pair.index}".encode()).hexdigest())


def read_pairs(path: Path) -> list[Pair]:
    """The data file, one JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        return [Pair(**json.loads(line)) for line in lines]


def differences(order: Sequence[Pair], labels: Path = LABELS) -> list[str]:
    """What in the committed labels does not agree with the draw or the data; empty when all of it does.

    Labelled are the first 160 acceptable pairs of the draw and the first 40 that are not, so that up to the last
    acceptable one no pair may be missing.
    """
    with labels.open(encoding="utf-8", newline="") as lines:
        rows = {int(row["position"]): row for row in csv.DictReader(lines)}
    found = []
    for position, row in rows.items():
        pair = order[position]
        if row["index"] != str(pair.index):
            found.append(f"position {position}: labelled is index {row['index']}, drawn is {pair.index}")
        elif row["sha256"] != pair.digest:
            found.append(f"position {position}: the text of index {pair.index} is not the one that was labelled")
    counts = Counter(row["label"] for row in rows.values())
    if counts != WANTED:
        found.append(f"wanted are {WANTED}, labelled are {dict(counts)}")
    last = max((position for position, row in rows.items() if row["label"] == "acceptable"), default=-1)
    return found + [f"position {position} was passed over" for position in range(last) if position not in rows]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="rephrased.jsonl")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="print pairs in the drawn order")
    show.add_argument("--first", type=int, default=0, help="the first position, counted from 0")
    show.add_argument("--count", type=int, default=40, help="how many")
    commands.add_parser("check", help="hold the committed labels against the draw and the data")
    arguments = parser.parse_args()
    order = drawn(read_pairs(arguments.data))
    if arguments.command == "show":
        for position, pair in list(enumerate(order))[arguments.first : arguments.first + arguments.count]:
            print(f"[{position}] index {pair.index}, answer {pair.answer}\n  O: {pair.original}\n  R: {pair.rephrased}")
        return
    found = differences(order)
    print("\n".join(found) or "The labels agree with the draw and the data.")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
