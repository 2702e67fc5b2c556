"""`proctor dataset draw`: items that a model was not shown, noted as shown."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("items", type=_FILE)
@click.option("--model", required=True, help="Who is to be shown them, e.g. NAME@VERSION.")
@click.option("--out", required=True, type=_FILE, help="File that a suite names, FILE.jsonl.")
@click.option("--count", type=click.IntRange(1, 100_000), help="How many. [default: all that it was not shown]")
@click.option("--force", is_flag=True, help="Overwrite what stands at --out.")
@format_option
def draw(items: Path, model: str, out: Path, count: int | None, force: bool, output: str) -> None:
    """Hand out items that a model was not shown, and note that it was.

    Nothing is shown twice to the same model: where too few are left, this is an error. They are noted as shown before
    they are written, so what goes wrong in between costs items and repeats none. What is asked without this command is
    not known here.

    \b
    Example:
      proctor dataset draw reasoning.jsonl --model llama@7 --count 300 --out llama-7.jsonl

    JSON keys: model, items, left (that it was not shown), path.
    """
    from proctor.cli.terminal import print_json, say
    from proctor.domain.errors import BadInputError
    from proctor.runtime.files import write_atomic
    from proctor.studies.datasets.item_files import written_items
    from proctor.studies.datasets.rotating import shown_to
    from proctor.studies.datasets.store import opened

    if not model.strip() or len(model) > 300 or not model.isprintable():
        raise BadInputError("--model is a name of 1 to 300 printable characters, such as llama@7")
    if out.exists() and not force:
        raise BadInputError(f"{out} is there already; name another file, or overwrite it with --force")
    with opened(items) as dataset:
        ids, state = shown_to(dataset.state, model, count)
        dataset.keep(state)
        try:
            write_atomic(out, written_items(dataset.items(ids)))
        except OSError as error:
            raise BadInputError(
                f"{out} cannot be written ({error.strerror or error}); the items are noted as shown all the same"
            ) from None
        seen = set(state.shown[model])
        left = sum(one.item_id not in seen for one in state.active)
    if output == "json":
        print_json({"model": model, "items": len(ids), "left": left, "path": str(out)})
    else:
        say(f"{out}: {len(ids):,} items that {model} was not shown; {left:,} are left of those that are asked now")
