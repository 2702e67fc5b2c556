"""What a month's audits cost, by suite, model and submitter. What has no known price is counted apart, never as 0."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible
from proctor.domain.usage import Usage
from proctor.runtime.records.costs import MAX_LINES, CostLine, usage_of
from proctor.runtime.records.store import Records

#: Groups that are named; the rest are added up.
MAX_GROUPS: Final = 50
#: Months that stand beside the one that is asked for.
_MONTHS: Final = 12
_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])", re.ASCII)


class CostGroup(Frozen):
    """What the audits of one suite, model or submitter used."""

    name: str | None
    """None for all that are not named."""
    audits: int
    used: Usage


class CostMonth(Frozen):
    """What a month's audits used."""

    month: str
    audits: int
    used: Usage


class Costs(Frozen):
    """What the audits that ended, or stopped, in a month used."""

    month: str
    audits: int
    used: Usage
    by_suite: tuple[CostGroup, ...]
    by_model: tuple[CostGroup, ...]
    by_submitter: tuple[CostGroup, ...]
    months: tuple[CostMonth, ...]
    """Those with audits, of the year that ends with this one; the earliest first."""
    audits_without_record: int
    """Decided in the month, with no word of what they used: older than such records, or decided from logs."""
    cut: bool
    """Whether there were more combinations than are told apart, so that the groups are short of the total."""


def read_costs(records: Records, month: str, *, submitter: str | None = None) -> Costs:
    """The costs of a month.

    Args:
        records: the record store.
        month: as YYYY-MM.
        submitter: whose audits may be seen; None for everyone's.

    Raises:
        BadInputError: when the month is none.
    """
    hold_month(month)
    lines = records.costs.of_month(month, submitter=submitter)
    months = records.costs.months(since=_earlier(month), until=month, submitter=submitter)
    this = next((one for one in months if one.month == month), None)
    return Costs(
        month=month,
        audits=0 if this is None else this.audits,
        used=Usage() if this is None else this.used,
        by_suite=_groups(lines, lambda line: line.suite_id),
        by_model=_groups(lines, lambda line: line.model_id),
        by_submitter=_groups(lines, lambda line: line.submitter),
        months=tuple(CostMonth(**one._asdict()) for one in months),
        audits_without_record=records.costs.unnoted(month, submitter=submitter),
        cut=len(lines) >= MAX_LINES,
    )


def hold_month(month: str) -> None:
    """Raises BadInputError when a text is no month."""
    if not _MONTH.fullmatch(month):
        raise BadInputError(f"{visible(month[:40])!r} is no month; write it as 2026-11")


def _earlier(month: str) -> str:
    months = int(month[:4]) * 12 + int(month[5:]) - 1 - (_MONTHS - 1)
    return f"{max(0, months) // 12:04}-{max(0, months) % 12 + 1:02}"


def _groups(lines: Sequence[CostLine], of: Callable[[CostLine], str]) -> tuple[CostGroup, ...]:
    found: dict[str, list[CostLine]] = {}
    for line in lines:
        found.setdefault(of(line), []).append(line)
    groups = [_group(name, members) for name, members in found.items()]
    groups.sort(key=lambda group: (-group.used.cost, -group.used.input_tokens - group.used.output_tokens, group.name))
    named, rest = groups[:MAX_GROUPS], groups[MAX_GROUPS:]
    if rest:
        named.append(
            CostGroup(name=None, audits=sum(one.audits for one in rest), used=Usage.total(one.used for one in rest))
        )
    return tuple(named)


def _group(name: str | None, lines: Sequence[CostLine]) -> CostGroup:
    amounts = map(sum, zip(*(line.amounts for line in lines), strict=True))
    return CostGroup(name=name, audits=sum(line.audits for line in lines), used=usage_of(amounts))
