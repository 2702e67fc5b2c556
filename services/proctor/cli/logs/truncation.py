"""`proctor truncation`: were the answers allowed to end, and what became of those that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.logs.log_command import LogCommand
from proctor.cli.options import format_option

if TYPE_CHECKING:
    from proctor.evidence.protocol.lottery import Lottery
    from proctor.evidence.protocol.truncation_results import Rate, RateComparison, TruncationArm
    from proctor.studies.truncation import TriageSummary, TruncationAudit

_LOG = click.Path(path_type=Path, dir_okay=False)
_BASES = {
    "finish_reason": "finish reasons",
    "tokens": "token counts",
    "text": "a guess from the texts",
    "unknown": "not known",
}
_RATES = {"truncated": "cut", "empty": "empty", "unreadable": "unreadable", "error": "error rows"}
_CLASSES = {
    "truncated": "cut before an answer",
    "extraction": "right, but the extractor read another place",
    "stepwise": "a slip in arithmetic; executed again it is right",
    "self_correction_regress": "a right value taken back for a wrong one",
    "numeral_format": "right, but the numeral was taken for another",
    "reasoning": "the rest: the reasoning",
}


@click.command(cls=LogCommand)
@click.argument("run", metavar="RUN", type=_LOG)
@click.option("--against", metavar="RUN", type=_LOG, help="Compare with this run, item by item.")
@click.option(
    "--token-limit", metavar="N", type=int, help="Most tokens an answer could have, where the log does not say."
)
@click.option("--token-limit-against", metavar="N", type=int, help="The same of the run compared with.")
@click.option("--filter", "filter_name", metavar="NAME", help="The logs' own filter whose grades are used.")
@format_option
def truncation(
    run: Path,
    against: Path | None,
    token_limit: int | None,
    token_limit_against: int | None,
    filter_name: str | None,
    output: str,
) -> None:
    """Say whether the answers in RUN were cut, and what that did to its score or to a comparison.

    An answer cut at its token limit is scored as wrong. Whether it was cut is read from its finish reason, or from its
    token count and the limit; from the text alone it is a guess, is called one, and decides nothing.

    Of one run: its truncation rate, and the accuracy it would have had at most. With --against: whether cut, empty,
    unreadable or failed answers differ between the runs (McNemar's exact test by item). More than two points beyond
    chance make a comparison invalid; it is clean when cut answers are shown not to remain.

    Runs of different protocols are not refused here, because whether their limits matter is the question; what differs
    between them is listed.

    Where the log has texts and expected answers, each wrong answer is put in a class by what can be checked: cut,
    not read by the extractor, a slip in arithmetic, a right value taken back, another numeral, or reasoning. With
    several samples an item, also how many wrong answers most samples get right.

    \b
    Example:
      proctor truncation new.json --against old.json
      proctor truncation new.csv --token-limit 300
    """
    from proctor.cli.terminal import print_json
    from proctor.studies.truncation import as_json, audit_truncation

    audit = audit_truncation(
        run,
        against,
        token_limit=token_limit,
        token_limit_against=token_limit_against,
        filter_name=filter_name,
    )
    if output == "json":
        print_json(as_json(audit))
    else:
        _print(audit)


def _print(audit: TruncationAudit) -> None:
    from proctor.cli.logs.protocols import print_protocols
    from proctor.cli.terminal import say, table

    evidence = audit.evidence
    names = "AB"[: len(evidence.arms)]
    for name, arm in zip(names, evidence.arms, strict=True):
        say(
            f"{name}: {arm.run} ({arm.format})\n"
            f"   cut answers known from: {_BASES[arm.basis]}{_limit(arm)}; accuracy {_accuracy(arm)}"
        )
    say("")
    if evidence.comparisons:
        headings = ("", *names, "A − B in points", "p", "p (Holm)")
        compared = {one.rate.value: one for one in evidence.comparisons}
        rows = [(*_rates(which, evidence.arms), *_compared(compared.get(which))) for which in _RATES]
        say(table(headings, rows))
        say(f"(in brackets: 95 % intervals; p: McNemar's exact test by item; {evidence.family})")
    else:
        say(table(("", *names), [_rates(which, evidence.arms) for which in _RATES]))
        say("(in brackets: 95 % intervals)")
    if audit.protocol is not None:
        print_protocols(audit.protocol)
    for name, run in zip(names, audit.runs, strict=True):
        if run.triage is not None:
            _print_triage(name, run.triage)
        if run.lottery is not None:
            say(f"\n{_lottery(name, run.lottery)}")
    say(f"\nVerdict: {evidence.verdict.value}. {evidence.conclusion}")


def _print_triage(name: str, triage: TriageSummary) -> None:
    from proctor.cli.terminal import say, table

    untold = f"; of {triage.without_text:,} more there is no text or expected answer" if triage.without_text else ""
    guess = " (cut is a guess)" if triage.guessed_cuts and triage.counts["truncated"] else ""
    say(f"\nWrong answers of {name}: {triage.wrong - triage.without_text:,}{untold}{guess}")
    rows = [(f"  {what}", triage.counts[label], _some(triage.items[label])) for label, what in _CLASSES.items()]
    say(table(("  class", "answers", "items"), rows))


def _some(items: tuple[str, ...]) -> str:
    return ", ".join(items[:4]) + (", …" if len(items) > 4 else "")


def _limit(arm: TruncationArm) -> str:
    return f", limit {arm.token_limit:,}" if arm.token_limit is not None else ""


def _accuracy(arm: TruncationArm) -> str:
    if arm.accuracy_low is None:
        return "undefined: there is no graded answer"
    low = f"{100 * arm.accuracy_low:.1f} %"
    if arm.accuracy_high is None or arm.accuracy_high == arm.accuracy_low:
        return low
    return f"{low} as logged, {100 * arm.accuracy_high:.1f} % if every cut answer were right"


def _rates(which: str, arms: tuple[TruncationArm, ...]) -> tuple[str, ...]:
    return (_RATES[which], *(_rate(which, arm) for arm in arms))


def _rate(which: str, arm: TruncationArm) -> str:
    rate: TruncationArm | Rate = arm if which == "truncated" else getattr(arm, which)
    count = arm.truncated if which == "truncated" else getattr(arm, which).count
    low, high = rate.rate_ci
    if rate.rate is None or low is None or high is None:
        return "not known"
    return f"{count:,} of {rate.n:,}: {100 * rate.rate:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _compared(one: RateComparison | None) -> tuple[str, ...]:
    if one is None:
        return ("–", "–", "–")
    low, high = (100 * (bound or 0.0) for bound in one.difference_ci)
    holm = "–" if one.p_holm is None else _p(one.p_holm)
    return (f"{100 * one.difference:+.1f} [{low:.1f}, {high:.1f}]", _p(one.p_value), holm)


def _p(p_value: float) -> str:
    return f"{p_value:.4f}" if p_value >= 0.0001 else "< 0.0001"


def _lottery(name: str, found: Lottery) -> str:
    if found.rate.value is None or found.rate.low is None or found.rate.high is None:
        return f"Lottery of {name}: no wrong answer to {found.n:,} items that were sampled {found.k:,} times."
    interval = f"{100 * found.rate.value:.1f} % [{100 * found.rate.low:.1f}, {100 * found.rate.high:.1f}]"
    return (
        f"Lottery of {name}: most of {found.k:,} samples are right for {found.rescued:,} of {found.greedy_wrong:,} "
        f"wrong answers ({interval}), and wrong for {found.lost:,} of {found.greedy_right:,} right ones."
    )
