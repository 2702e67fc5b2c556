from __future__ import annotations

import csv
from collections import Counter

from draw_labelled_pairs import LABELS, differences, drawn, read_pairs
from tests.support import shared_data


def test_the_labels_are_those_of_the_draw_and_of_the_data() -> None:
    assert differences(drawn(read_pairs(shared_data() / "gsm8k" / "rephrased.jsonl"))) == []


def test_at_least_40_of_the_200_labelled_pairs_are_not_acceptable() -> None:
    with LABELS.open(encoding="utf-8", newline="") as lines:
        labels = Counter(row["label"] for row in csv.DictReader(lines))
    assert labels == {"acceptable": 160, "not_acceptable": 40}
