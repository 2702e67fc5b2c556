"""From logs to what truncation did to them: what `proctor truncation` runs, and `audit_truncation` in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError
from proctor.studies.comparison import protocol_as_json

if TYPE_CHECKING:
    from proctor.domain.recorded_card import ProtocolComparison
    from proctor.domain.run_log import LoggedAnswer, RunLog
    from proctor.evidence.protocol.lottery import Lottery
    from proctor.evidence.protocol.truncation import Cuts
    from proctor.evidence.protocol.truncation_results import TruncationEvidence


class TriageSummary(Frozen):
    """A run's wrong answers by class."""

    wrong: int
    without_text: int
    """Wrong answers that could not be told: the log has no text or no expected answer for them."""
    guessed_cuts: bool
    """Whether `truncated` rests on a guess from the text."""
    counts: dict[str, int]
    items: dict[str, tuple[str, ...]]
    """Ids by class."""
    evidence: dict[str, str]
    """Item to the words that decided."""


class RunAudit(NamedTuple):
    """What is known of one run beside its rates; None where the log has nothing to tell it from."""

    triage: TriageSummary | None
    lottery: Lottery | None


class TruncationAudit(NamedTuple):
    """Truncation evidence of one or two runs, and the audit of each."""

    evidence: TruncationEvidence
    runs: tuple[RunAudit, ...]
    protocol: ProtocolComparison | None = None
    """What the logs record of two runs' protocols; None of one run."""


def audit_truncation(
    run: str | Path,
    against: str | Path | None = None,
    *,
    token_limit: int | None = None,
    token_limit_against: int | None = None,
    filter_name: str | None = None,
) -> TruncationAudit:
    """Read one log or two, and say what cut, empty, unreadable and failed answers do to their scores.

    Args:
        run: a log in any format that is read, told by its content.
        against: the log to compare it with.
        token_limit: most tokens that an answer could have, where the logs do not say or say it wrongly; of both runs.
        token_limit_against: the same of `against` alone.
        filter_name: the logs' own filter whose grades are used; by default the first that `run` names and `against`
            has as well.

    Raises:
        BadInputError: with file and line, where a log cannot be read or the two have no item or filter in common.
    """
    from proctor.evidence.paired.pairing import pair
    from proctor.evidence.paired.protocols import compare_protocols
    from proctor.evidence.protocol.truncation import compare_truncation, cuts, truncation_of
    from proctor.formats.logs.reading import read_log
    from proctor.grading.triage import looks_cut

    for limit in (token_limit, token_limit_against):
        if limit is not None and limit < 1:
            raise BadInputError(f"the token limit {limit} is not a number of tokens from 1")
    logs = [read_log(Path(path)) for path in (run, against) if path is not None]
    runs = _chosen(logs, filter_name)
    limits = (token_limit, token_limit_against if token_limit_against is not None else token_limit)
    found = [cuts(one, token_limit=limit, looks_cut=looks_cut) for one, limit in zip(runs, limits, strict=False)]
    protocol: ProtocolComparison | None = None
    if len(runs) == 1:
        evidence = truncation_of(runs[0], found[0], token_limit=token_limit)
    else:
        evidence = compare_truncation(runs[0], runs[1], found[0], found[1], token_limits=limits)
        protocol = compare_protocols(runs[0], runs[1], pair(runs[0], runs[1]))
    audits = tuple(RunAudit(_triaged(one, flags), _lottery(one)) for one, flags in zip(runs, found, strict=True))
    return TruncationAudit(evidence, audits, protocol)


def as_json(audit: TruncationAudit) -> dict[str, Any]:
    """The JSON of `proctor truncation`."""
    document = audit.evidence.plain()
    for arm, run in zip(document["arms"], audit.runs, strict=True):
        arm["triage"] = run.triage.plain() if run.triage is not None else None
        arm["lottery"] = run.lottery.plain() if run.lottery is not None else None
    if audit.protocol is not None:
        document["protocol"] = protocol_as_json(audit.protocol)
    return document


def _chosen(logs: Sequence[Sequence[RunLog]], filter_name: str | None) -> list[RunLog]:
    """One run of each log, under the same filter."""
    from proctor.evidence.paired.statements import no_such_extractor

    names = [[run.extractor for run in log] for log in logs]
    if filter_name is None and all(len(log) == 1 for log in logs):
        # Logs of two tools name their one extractor differently, and there is nothing to choose.
        return [log[0] for log in logs]
    common = [name for name in names[0] if all(name in others for others in names)]
    wanted = filter_name if filter_name is not None else next(iter(common), None)
    if wanted is None or wanted not in common:
        if len(logs) == 1:
            raise BadInputError(
                f"the filter {filter_name!r} is not in {logs[0][0].source}, which has {', '.join(map(repr, names[0]))}"
            )
        raise BadInputError(no_such_extractor(logs[0], logs[1], filter_name))
    return [next(run for run in log if run.extractor == wanted) for log in logs]


def _triaged(run: RunLog, found: Cuts) -> TriageSummary | None:
    from proctor.grading.triage import WrongAnswer, triage

    wrong = [row for row in run.answers if row.correct is False]
    items: dict[str, list[str]] = {label.value: [] for label in WrongAnswer}
    evidence: dict[str, str] = {}
    for row in wrong:
        if row.text is None or row.expected is None:
            continue
        told = triage(
            row.question,
            row.expected,
            row.text,
            truncated=found.flags.get(row.item_id),
            extracted="" if row.unread else row.answer,
        )
        items[told.label.value].append(row.item_id)
        evidence[row.item_id] = told.evidence
    if not evidence:
        return None
    return TriageSummary(
        wrong=len(wrong),
        without_text=len(wrong) - len(evidence),
        guessed_cuts=not found.basis.is_fact,
        counts={label: len(ids) for label, ids in items.items()},
        items={label: tuple(ids) for label, ids in items.items()},
        evidence=evidence,
    )


def _lottery(run: RunLog) -> Lottery | None:
    """Of the items with the usual number of samples (those with more: their first), graded as numbers."""
    import numpy as np

    from proctor.evidence.protocol.lottery import lottery
    from proctor.grading.extractors import target_number

    rows = [
        row
        for row in run.answers
        if row.correct is not None
        and row.samples
        and row.expected is not None
        and target_number(row.expected) is not None
    ]
    if not rows:
        return None
    seen = Counter(len(row.samples) for row in rows)
    k = max(seen, key=lambda length: (seen[length], length))
    rows = [row for row in rows if len(row.samples) >= k]
    return lottery(
        np.asarray([row.correct for row in rows], dtype=np.bool_),
        np.asarray([[_is_right(row, sample) for sample in row.samples[:k]] for row in rows], dtype=np.bool_),
    )


def _is_right(row: LoggedAnswer, sample: str) -> bool:
    from proctor.grading.extractors import EXTRACTORS

    numeric = EXTRACTORS["numeric"]
    extracted = numeric.extract(sample, ())
    return extracted is not None and row.expected is not None and numeric.agrees(extracted, row.expected)
