"""The words on a version that a person reads in the registry's own page: Markdown, between two marks. Pure.

What stands outside of the marks is somebody else's, and stays. Whatever comes from outside is shown as text: a name or
a reason that holds markup, a link or the marks themselves does nothing.
"""

from __future__ import annotations

import re
from typing import Final

from proctor.domain.decision import DecisionOutcome, scope_caveat
from proctor.domain.problems import visible
from proctor.domain.weights import of_all
from proctor.registry.version_record import MAX_SUITES, SuiteRecord, VersionRecord, score_words, sha256_of

BEGIN: Final = "<!-- proctor: begin -->"
END: Final = "<!-- proctor: end -->"
#: What MLflow's column holds on PostgreSQL and MySQL, of everything that stands in it.
MAX_CHARACTERS: Final = 5_000
_WORDS: Final = {
    DecisionOutcome.APPROVE: "approved",
    DecisionOutcome.REVIEW: "held for review",
    DecisionOutcome.BLOCK: "blocked",
}
_MAX_REASONS: Final = 5
_MAX_TEXT: Final = 400
_MAX_NAME: Final = 120
_CUT: Final = "…"
_OWN: Final = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
_ACTS: Final = re.compile(r"([\\`*_{}\[\]()#+!|~$.@:/-])")
_URL: Final = re.compile(r"https?://[!-~]+")


def described(present: str, record: VersionRecord, *, most: int = MAX_CHARACTERS, also: str = "") -> str:
    """A description with what stands now in it; what a person wrote in it stays.

    Args:
        present: what is there.
        record: what stands of the version.
        most: characters that there is room for. Where the person's own leave none, they stay as they are.
        also: a further line on the version.
    """
    without = _OWN.sub("", present, count=1).rstrip() if _OWN.search(present) else present.rstrip()
    room = most - len(without) - len("\n\n")
    part = section(record, most=room, also=also)
    if part is None:
        return without
    if _OWN.search(present):
        replaced = _OWN.sub(lambda _: part, present, count=1)
        return replaced if len(replaced) <= most else f"{without}\n\n{part}"
    return f"{without}\n\n{part}" if without else part


def section(record: VersionRecord, *, most: int, also: str = "") -> str | None:
    """Proctor's part with its marks; shortened to its room, and None where not even the decision has any."""
    for lines in _ever_shorter(record, also):
        text = "\n".join((BEGIN, *lines, END))
        if len(text) <= most:
            return text
    return None


def as_text(said: str, most: int = _MAX_TEXT) -> str:
    """What somebody else wrote, on one line, so that no reader of Markdown or HTML does anything with it."""
    shown = visible(" ".join(said.split()))
    cut = shown if len(shown) <= most else shown[: most - 1].rstrip() + _CUT
    html = cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return _ACTS.sub(r"\\\1", html)


def _ever_shorter(record: VersionRecord, also: str) -> tuple[list[str], ...]:
    event = record.event
    caveat = scope_caveat(event.outcome, event.scope)
    head = [f"**Proctor: {_WORDS[event.outcome]}**", ""]
    head += [f"{as_text(caveat)}", ""] if caveat is not None else []
    reasons = [f"- {as_text(reason.text)}" for reason in event.reasons[:_MAX_REASONS]]
    facts = ["", *([as_text(also), ""] if also else []), *_facts(record)]
    table = ["", *_table(record.suites)] if len(record.suites) > 1 else []
    return [*head, *reasons, *table, *facts], [*head, *reasons[:1], *facts], [*head, *facts], head


def _facts(record: VersionRecord) -> list[str]:
    event = record.event
    score, interval = score_words(record.contamination_score)
    said = score if record.contamination_score is None else f"{score} {interval}"
    suite = as_text(event.audit_suite_id, _MAX_NAME)
    weights = of_all([one.event.weights for one in record.suites if one.event is not None])
    return [
        f"Contamination Score {as_text(said)}, {event.n_items:,} items, suite {suite}",
        "",
        f"Weights: {as_text('not recorded how they are known' if weights is None else weights.words)}",
        "",
        f"Report: {_link(record.report_url)}, SHA-256 {as_text(sha256_of(event.report_digest), _MAX_NAME)}",
        "",
        "Anyone who may write here can edit this; `proctor gate check` holds it against the record.",
    ]


def _table(suites: tuple[SuiteRecord, ...]) -> list[str]:
    rows = [
        f"| {as_text(one.audit_suite_id, _MAX_NAME)} | {_WORDS[one.outcome]} | {as_text(one.said, _MAX_NAME)} |"
        for one in suites[:MAX_SUITES]
    ]
    more = len(suites) - MAX_SUITES
    return ["| suite | | |", "|---|---|---|", *rows, *([f"| {more} more | | |"] if more > 0 else [])]


def _link(url: str) -> str:
    # Angle brackets and parentheses would end it.
    if _URL.fullmatch(url) and not set(url) & set("<>()[]\\\"'`"):
        return f"<{url}>"
    return as_text(url)
