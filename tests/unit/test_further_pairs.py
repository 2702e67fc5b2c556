"""The second set of labelled pairs, and what the checks that read add and cost on it."""

from __future__ import annotations

from collections import Counter

from draw_further_pairs import ACCEPTABLE, differences, further_pairs, labelled_further_pairs
from measure_reading import first_pairs, fresh_pairs, measured
from tests.support import shared_data


def test_the_labels_are_those_of_the_draw_and_of_the_data() -> None:
    assert differences(further_pairs(shared_data())) == []


def test_the_readers_refuse_156_of_597_pairs() -> None:
    labels = Counter(one.label == ACCEPTABLE for one in labelled_further_pairs(shared_data()))
    assert labels == {True: 441, False: 156}


def test_each_check_that_is_on_costs_less_than_two_points_and_the_one_that_is_off_costs_more() -> None:
    data = shared_data()
    sets = {"first": first_pairs(data), "gsm8k": fresh_pairs(data, "gsm8k"), "mmlu": fresh_pairs(data, "mmlu")}
    rows = {(row.check, row.pairs): row for name, pairs in sets.items() for row in measured(pairs, name)}
    for name in sets:
        together = rows["the five by default, together", name]
        assert together.lost / together.of_good < 0.02
        assert together.refused > 0
    strict = rows["relations (strict_relations)", "gsm8k"]
    assert strict.lost / strict.of_good > 0.02
