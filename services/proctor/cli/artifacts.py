"""`proctor artifacts`: what is kept of prompts and completions, and for how long."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say

if TYPE_CHECKING:
    from proctor.router.retention.forgetting import Forgotten

#: Ids of audits that the table names; JSON has all of them.
_NAMED = 5


@click.group()
def artifacts() -> None:
    """Prompts, completions and reports in the artifact store."""


@artifacts.command()
@click.option(
    "--older-than-days",
    "days",
    type=int,
    required=True,
    metavar="N",
    help="Remove what was decided, and last stored, more than N days ago; at least 8.",
)
@click.option(
    "--override-suites",
    is_flag=True,
    help="Remove as well what a suite's governance.result_retention_days (365 by default) keeps for longer.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing, and say what would be.")
@home_option
@format_option
def prune(days: int, override_suites: bool, dry_run: bool, home: Path, output: str) -> None:
    """Remove old prompts and completions from the artifact store.

    Of a decided audit go its shards, completions, grades and prompts of rewording. Its report stays, with the
    manifest, items and variants by which it is verified, and so does every row of the record store. An audit that is
    not at its end keeps everything, and so does a failed one, which can be started again: cancel it to let go of it.
    What two audits share goes when both may lose it. Broken off, the same command goes on.

    Needs the ledger: that of the stack that runs in the home, or of PROCTOR_LEDGER_URL; else Valkey is started in the
    home for the time it takes. The router does the same by itself once a day, by what each suite says.

    \b
    Examples:
      proctor artifacts prune --older-than-days 90 --dry-run
      proctor artifacts prune --older-than-days 30 --override-suites --format json

    JSON keys: days, dry_run, objects, n_bytes, left_behind (of the objects: unfinished ones of writers that died),
    kept (objects), past[] (audits whose prompts and completions are past their period), held_by_suites, open (audits).
    """
    from collections import deque
    from contextlib import closing

    from proctor.cli.audits.reaching import home_settings
    from proctor.cli.local import stack_for
    from proctor.localstack.stack import StackSpec
    from proctor.localstack.state import live_state
    from proctor.router.ledger.store import Ledger
    from proctor.router.retention.forgetting import Period, forget
    from proctor.runtime.artifacts.opening import open_artifacts
    from proctor.runtime.private import tighten_stores
    from proctor.runtime.records.store import Records
    from proctor.runtime.settings import Settings

    period = Period(days, override_suites)

    def pruned(settings: Settings) -> Forgotten:
        tighten_stores(settings.home, settings.artifacts)
        with closing(Records(settings.records_url)) as records, closing(Ledger(settings.ledger_url)) as ledger:
            return deque(forget(records, ledger, open_artifacts(settings), period, dry_run=dry_run), maxlen=1)[0]

    if live_state(home) is not None or os.environ.get("PROCTOR_LEDGER_URL"):
        seen = pruned(home_settings(home))
    else:
        # Any other ledger, such as one that happens to listen on Redis' own port, knows nothing of this home's audits.
        with stack_for(home, spec=StackSpec(mlflow=False, triton=False, workers=())) as stack:
            seen = pruned(stack.settings)
    if output == "json":
        print_json({"days": days, "dry_run": dry_run, **asdict(seen)})
    else:
        _print(seen, dry_run)


def _print(seen: Forgotten, dry_run: bool) -> None:
    verb = "would be removed" if dry_run else "removed"
    say(f"{seen.objects} objects {verb} ({seen.n_bytes / 1e6:.1f} MB), {seen.kept} kept")
    if seen.past:
        names = ", ".join(seen.past[:_NAMED]) + (f" and {len(seen.past) - _NAMED} more" if seen.past[_NAMED:] else "")
        say(f"  past the period: {names}")
    if seen.held_by_suites:
        say(f"  kept for longer by their suites: {seen.held_by_suites} audits (--override-suites)")
    if seen.open:
        say(f"  not at their end, so that they keep everything: {seen.open} audits")
