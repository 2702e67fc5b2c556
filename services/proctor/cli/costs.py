"""`proctor costs`: what a month's audits cost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.opened_records import opened_records
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor.domain.usage import Usage
    from proctor.studies.costs import CostGroup, Costs


@click.command()
@click.option("--month", metavar="YYYY-MM", help="The month, in UTC. [default: this one]")
@home_option
@format_option
def costs(month: str | None, home: Path, output: str) -> None:
    """Say what the audits of a month cost: trials, tokens and price, by suite, model and submitter.

    Counted are audits that were decided, failed or were cancelled; one that goes on in another month counts there with
    what it used since. Prices are those that the operator gave the endpoints (PROCTOR_ENDPOINTS) when the audit was
    started, in their currency. Tokens without a known price are counted apart, and never as free.

    \b
    Examples:
      proctor costs
      proctor costs --month 2026-11 --format json

    JSON keys: month, audits, used (trials, input_tokens, output_tokens, cost, unpriced_trials, unpriced_input_tokens,
    unpriced_output_tokens), by_suite[], by_model[], by_submitter[] (name, audits, used), months[] (month, audits,
    used), audits_without_record, cut.
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.studies.costs import read_costs

    with opened_records(home_settings(home)) as records:
        found = read_costs(records, month or datetime.now(UTC).strftime("%Y-%m"))
    if output == "json":
        print_json(found.plain())
    else:
        _print(found)


def _print(found: Costs) -> None:
    used = found.used
    say(f"{found.month}: {found.audits:,} audits, {used.trials:,} trials, {_tokens(used)} tokens, {_cost(used)}")
    if not used.priced:
        unpriced = used.unpriced_input_tokens + used.unpriced_output_tokens
        say(f"No price is known of {used.unpriced_trials:,} trials with {unpriced:,} tokens: they are not in the cost.")
    for heading, groups in (("suite", found.by_suite), ("model", found.by_model), ("submitter", found.by_submitter)):
        if groups:
            say("")
            _print_groups(heading, groups)
    if found.audits_without_record:
        say(
            f"\nOf {found.audits_without_record:,} more audits that were decided in the month it is not on record what "
            "they used."
        )


def _print_groups(heading: str, groups: Sequence[CostGroup]) -> None:
    headings = (heading, "audits", "trials", "tokens", "cost", "tokens without a price")
    say(table(headings, [_row(group) for group in groups]))


def _row(group: CostGroup) -> tuple[str, ...]:
    used = group.used
    unpriced = used.unpriced_input_tokens + used.unpriced_output_tokens
    return (
        "(others)" if group.name is None else group.name,
        f"{group.audits:,}",
        f"{used.trials:,}",
        _tokens(used),
        _cost(used),
        f"{unpriced:,}" if unpriced else "",
    )


def _tokens(used: Usage) -> str:
    return f"{used.input_tokens + used.output_tokens:,}"


def _cost(used: Usage) -> str:
    if used.unpriced_trials and used.unpriced_trials == used.trials:
        return "cost not known"
    return f"{used.cost:,.2f}" if used.priced else f"{used.cost:,.2f} and more"
