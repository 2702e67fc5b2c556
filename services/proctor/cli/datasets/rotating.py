"""`proctor dataset rotate`: items retired, and others of the pool in their place."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import format_option

if TYPE_CHECKING:
    from datetime import date

    from proctor.domain.rotation import Rotation
    from proctor.studies.datasets.rotating import Rotated
    from proctor.studies.datasets.store import Dataset

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("items", type=_FILE)
@click.option("--early", is_flag=True, help="Rotate though it is not due.")
@click.option("--reason", help="Why, kept with each retired item. [default: the schedule]")
@click.option("--only-shown", is_flag=True, help="Keep items that no model was shown.")
@click.option("--partly", is_flag=True, help="Where the pool is short, replace as many as it has.")
@click.option(
    "--item", "singles", multiple=True, help="Retire this item at once, whatever the schedule; needs --reason."
)
@click.option("--add", "added_from", type=_FILE, help="Put the items of this file into the pool first.")
@click.option("--status", is_flag=True, help="Change nothing; say how it stands.")
@click.option("--on", "day", type=click.DateTime(["%Y-%m-%d"]), help="The day. [default: today, UTC]")
@format_option
def rotate(
    items: Path,
    early: bool,
    reason: str | None,
    only_shown: bool,
    partly: bool,
    singles: tuple[str, ...],
    added_from: Path | None,
    status: bool,
    day: datetime | None,
    output: str,
) -> None:
    """Retire the items that are asked, and put held-out ones in their place.

    A dataset that is asked again and again leaks, by logs and by whoever serves the models. So it is due every quarter
    (`proctor dataset new --every`). Before that day this does nothing and says when it is: give it to a timer that runs
    more often. A retired item is never asked again, and none that asks the same can be added. The state lies beside the
    items in FILE.rotation.json; with the files in PROCTOR_BENCHMARKS, metrics and dashboard show when each is due.

    \b
    Examples:
      proctor dataset rotate reasoning.jsonl
      proctor dataset rotate reasoning.jsonl --item reasoning-0f3a… --reason "quoted in a paper"
      proctor dataset rotate reasoning.jsonl --add more.jsonl --early --reason "a log was published"
      proctor dataset rotate reasoning.jsonl --status --format json

    JSON keys: rotated (whether), retired[], promoted[], active, held_out, retired_in_all, every, last, due, overdue,
    shown (model → number of items).
    """
    from proctor.cli.terminal import print_json, say
    from proctor.domain.errors import BadInputError
    from proctor.studies.datasets.store import opened

    today = (day or datetime.now(UTC)).date()
    if singles and reason is None:
        raise BadInputError("--item retires for a reason of its own; say it with --reason")
    if reason is not None and not (reason.strip() and len(reason) <= 500 and reason.isprintable()):
        raise BadInputError("--reason is a text of 1 to 500 printable characters")
    with opened(items) as dataset:
        if status:
            done, note = None, ""
        else:
            try:
                done, note = _change(
                    dataset,
                    today,
                    early,
                    reason,
                    only_shown=only_shown,
                    partly=partly,
                    singles=singles,
                    more=added_from,
                )
            except OSError as error:
                raise BadInputError(f"{items} cannot be rotated: {error.strerror or error}") from None
        document = _document(dataset.state, done, today)
    if output == "json":
        print_json(document)
    else:
        _say(say, items, document, note)


def _change(
    dataset: Dataset,
    today: date,
    early: bool,
    reason: str | None,
    *,
    only_shown: bool,
    partly: bool,
    singles: tuple[str, ...],
    more: Path | None,
) -> tuple[Rotated | None, str]:
    """Rotate as far as it is due; what was done, and why nothing was."""
    from proctor.studies.datasets.item_files import read_items
    from proctor.studies.datasets.rotating import added, retired, rotated

    new = () if more is None else read_items(more)
    state = added(dataset.state, new)
    done: Rotated | None = None
    note = ""
    if singles:
        done = retired(state, singles, reason=str(reason), today=today)
    elif early or today >= state.due:
        why = reason or f"rotation, {state.every.value}, due on {state.due}"
        done = rotated(state, reason=why, today=today, only_shown=only_shown, partly=partly)
    else:
        note = f"Not due before {state.due}; --early rotates now."
    if done is not None or new:
        dataset.keep(state if done is None else done.state, new)
    return done, note


def _document(state: Rotation, done: Rotated | None, today: date) -> dict[str, Any]:
    return {
        "rotated": done is not None,
        "retired": [] if done is None else list(done.retired),
        "promoted": [] if done is None else list(done.promoted),
        "active": len(state.active),
        "held_out": len(state.pool),
        "retired_in_all": len(state.retired),
        "every": state.every.value,
        "last": state.rotated.isoformat(),
        "due": state.due.isoformat(),
        "overdue": today >= state.due,
        "shown": {model: len(ids) for model, ids in sorted(state.shown.items())},
    }


def _say(say: Any, items: Path, document: dict[str, Any], note: str) -> None:
    if document["rotated"]:
        say(f"{len(document['retired']):,} items were retired, and {len(document['promoted']):,} took their place.")
    elif note:
        say(note)
    say(
        f"{items}: {document['active']:,} items are asked, {document['held_out']:,} held out, "
        f"{document['retired_in_all']:,} retired; {document['every']}, last on {document['last']}, "
        f"{'overdue since' if document['overdue'] else 'due on'} {document['due']}"
    )
    for model, count in document["shown"].items():
        say(f"  {model} was shown {count:,} items")
    if document["held_out"] < document["active"]:
        say("The pool is smaller than what is asked: the next rotation needs more items (--add FILE).")
