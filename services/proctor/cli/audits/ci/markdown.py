"""An audit as a summary for a pull request, in Markdown as GitHub and GitLab read it.

Whoever names a model or writes a suite writes none of it: every character of theirs that means something in Markdown
or HTML is an entity, and nobody is mentioned, referred to or linked by what they wrote.
"""

from __future__ import annotations

import re
from typing import Final

from proctor.cli.audits.ci.outcome import Outcome, Result
from proctor.domain.problems import visible

#: Of one text; a report has it whole.
MAX_CHARACTERS: Final = 1_000
MAX_REASONS: Final = 10
_TITLES: Final = {"approve": "approved", "review": "under review", "block": "blocked", "": "no decision"}
_WORDS: Final = {Result.PASSED: "ok", Result.FAILED: "not met", Result.ERROR: "cannot be told", Result.SKIPPED: "–"}
#: What emphasises, links, makes a table, code or a tag, what begins a heading, a list, a mention or a reference.
_SIGNS: Final = re.compile(r"[\\`*_{}\[\]()<>#|~@:!&$^]|^[-+=]|(?<=^\d)[.)]")
#: What makes an address that stands alone a link: some look for it in the source, some in what is shown.
_ADDRESS: Final = re.compile(r"(?<=www)(?=\.)|(?=//)", re.IGNORECASE)
#: Keeps what is behind it from being a name or a number, and shows nothing.
_WORD_JOINER: Final = "&#8288;"


def markdown(outcome: Outcome) -> str:
    """The summary."""
    title = f"## Proctor: {escaped(outcome.model_id)} – {_TITLES[outcome.decision]}"
    lines = [title, ""]
    if outcome.caveat:
        lines += [escaped(outcome.caveat), ""]
    for reason in outcome.reasons[:MAX_REASONS]:
        lines.append(f"- {escaped(reason)}")
    lines.append("")
    if outcome.numbers:
        lines += ["| | value | | against the suite's limits |", "|---|---|---|---|"]
        lines += [
            f"| {escaped(one.name)} | {escaped(f'{one.value} {one.unit}'.strip())} | {escaped(one.interval)} | "
            f"{escaped(one.status)} |"
            for one in outcome.numbers
        ]
        lines.append("")
    rules = outcome.checks[1:]
    if rules:
        lines += ["| rule | | |", "|---|---|---|"]
        kinds = [one.kind.replace("_", " ") for one in rules]
        lines += [
            f"| {escaped(one.name)} | {_WORDS[one.result]} | {escaped(kind)} |"
            for one, kind in zip(rules, kinds, strict=True)
        ]
        lines.append("")
    facts = {"suite": outcome.suite, "audit": outcome.audit_id, **outcome.facts}
    told = ", ".join(f"{name} {escaped(value)}" for name, value in facts.items() if value)
    lines.append(f"<sub>{told}</sub>")
    if outcome.page:
        # An address that the operator gave; an audit's id has letters, digits and dashes.
        lines += ["", f"[The audit]({outcome.page}) · [its report]({outcome.page}/report)"]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text of others on one line: what it says, and nothing that acts."""
    line = visible(" ".join(text[:MAX_CHARACTERS].split())) + ("…" if len(text) > MAX_CHARACTERS else "")
    plain = _SIGNS.sub(lambda sign: _entity(sign[0]), line)
    return _ADDRESS.sub(_WORD_JOINER, plain)


def _entity(sign: str) -> str:
    # Mentions and references are looked for in what is shown, where an entity is its character again.
    return f"&#{ord(sign)};" + (_WORD_JOINER if sign in "@#!" else "")
