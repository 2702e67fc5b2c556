"""Ready rewordings find their items."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.formats.rewordings import MatchedRewordings, match_rewordings, parse_rewordings

ITEMS = [Item(item_id=f"bench-{n:05d}", question=f"Question {n}?", target="t") for n in range(3)]


def _match(*rows: dict[str, Any]) -> MatchedRewordings:
    data = "\n".join(map(json.dumps, rows)).encode()
    return match_rewordings(parse_rewordings(data, "r.jsonl"), ITEMS, "bench")


@pytest.mark.parametrize(
    "row",
    [
        {"item_id": "bench-00001", "question": "new"},
        {"index": 1, "rephrased": "new"},
        {"original": "  question\n1?", "reworded": "new"},
        {"index": 1, "original": "Question 1?", "rephrased": "new"},
        {"index": 2, "original": "Question 1?", "rephrased": "new"},
    ],
)
def test_a_rewording_is_matched_by_identifier_original_or_index(row: dict[str, Any]) -> None:
    matched = _match(row)
    assert [one.question for one in matched.by_item["bench-00001"]] == ["new"]
    assert matched.unmatched == ()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"item_id": "x", "question": "new"}, "no item has the identifier 'x'"),
        ({"index": 7, "question": "new"}, "no item has the identifier 'bench-00007'"),
        ({"original": "other", "question": "new"}, "no item asks its original question"),
        ({"index": 1, "original": "other", "question": "new"}, "is not what the item 'bench-00001' asks"),
        ({"item_id": "bench-00001", "original": "Question 2?", "question": "new"}, "is not what the item"),
    ],
)
def test_a_rewording_of_no_item_is_listed_with_the_reason(row: dict[str, Any], reason: str) -> None:
    matched = _match({"index": 0, "question": "other"}, row)
    assert [one.line for one in matched.unmatched] == [2]
    assert reason in matched.unmatched[0].reason


def test_several_rewordings_of_an_item_keep_their_order() -> None:
    matched = _match({"index": 0, "question": "b"}, {"index": 0, "question": "a"})
    assert [one.question for one in matched.by_item["bench-00000"]] == ["b", "a"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"index": 0}, "has no field rephrased or"),
        ({"index": -1, "question": "a"}, "index is -1"),
        ({"index": True, "question": "a"}, "index is True"),
        ({"question": "a"}, "says not what it rewords"),
        ({"index": 0, "question": 5}, "question is 5; text is needed"),
        ({"index": 0, "question": "a\ud800"}, "not valid Unicode"),
        ({"index": 0, "question": "a", "choices": "x"}, "choices is 'x'"),
    ],
)
def test_a_malformed_rewording_is_named_with_its_line(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadInputError, match=r"r\.jsonl:1: ") as refused:
        _match(row)
    assert fault in str(refused.value)


def test_a_file_without_rewordings_is_refused() -> None:
    with pytest.raises(BadInputError, match="holds no rewordings"):
        parse_rewordings(b"\n", "r.jsonl")


def test_an_empty_rewording_is_kept_for_the_gate_to_count() -> None:
    assert _match({"index": 0, "rephrased": None}).by_item["bench-00000"][0].question == ""
