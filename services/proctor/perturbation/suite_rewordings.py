"""The rewordings that a suite brings along, each with its item."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.formats.rewordings import MatchedRewordings, match_rewordings, parse_rewordings


def matched_rewordings(
    section: PerturbationSection, items: Sequence[Item], benchmark: str, data: bytes | None
) -> MatchedRewordings:
    """The file's rewordings by item; none where the suite's strategy does not ask for them.

    Args:
        section: the suite's perturbation section.
        items: the items that are asked.
        benchmark: the benchmark's name, from which items without an identifier have theirs.
        data: what the file at `rewordings_path` holds.

    Raises:
        BadInputError: when there is no file, it cannot be used, or none of its rewordings belongs to an item.
    """
    if "imported" not in section.perturbation_strategy.split("+"):
        return MatchedRewordings({}, ())
    if data is None:
        raise BadInputError("perturbation_strategy 'imported' needs rewordings_path, a JSONL file of rewordings")
    name = section.rewordings_path or "rewordings"
    rows = parse_rewordings(data, name)
    matched = match_rewordings(rows, items, benchmark)
    if not matched.by_item:
        first = matched.unmatched[0]
        raise BadInputError(
            f"none of the {len(rows)} rewordings in {name} belongs to one of the {len(items)} items "
            f"(line {first.line}: {first.reason}): match rows by item_id, by index or by the original's text"
        )
    return matched
