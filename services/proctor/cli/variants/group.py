"""`proctor variants`: build the rewordings of a suite, read them, exchange them with another team."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option, home_option

_PATH = click.Path(path_type=Path, dir_okay=False)
_SUITE = click.argument("suite_file", metavar="SUITE", type=_PATH)


class _Group(click.Group):
    """The group, with `calibrate` and `fidelity` imported from modules of their own when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the work."""
        return ["build", "show", "diff", "export", "import", "calibrate", "fidelity"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; None when there is none of that name."""
        if cmd_name == "calibrate":
            from proctor.cli.variants.calibrate import calibrate

            return calibrate
        if cmd_name == "fidelity":
            from proctor.cli.variants.fidelity import fidelity

            return fidelity
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Group)
def variants() -> None:
    """Build a suite's rewordings, read them, and exchange them with another team.

    The library is part of a home's record store, and append-only: a row's key is the digest of the item, strategies,
    seed, gate and encoder, so a second audit of the same suite makes and embeds nothing.
    """


@variants.command()
@_SUITE
@home_option
@format_option
def build(suite_file: Path, home: Path, output: str) -> None:
    """Reword the items of SUITE now, and keep the variants for its audits.

    Runs in this process; no stack is needed. A strategy that asks a model (paraphrase_llm, back_translation,
    forward_full, noisy_rewrite) asks it from here. What the library has is not made again, and an interrupted build
    goes on where it stopped. Where fewer than min_yield of the items get a variant, the build ends with exit code 2
    and says what would mend that.

    \b
    Examples:
      proctor variants build suite.json
      proctor variants build suite.json --home /srv/proctor --format json

    JSON keys: suite, benchmark, strategy, encoder, encoder_loaded, wanted, items, items_from_library,
    items_with_variants, variants, variants_from_library, rejected (reason to number), short[] (items with fewer
    variants than wanted), without (item to reasons), notes[], conclusion.
    """
    from proctor.cli.terminal import print_json, say
    from proctor.cli.variants.asking import desk_of
    from proctor.cli.variants.building import build_suite
    from proctor.cli.variants.opening import open_suite, records_of, settings_of
    from proctor.cli.variants.results import print_build
    from proctor.perturbation.library.store import VariantLibrary

    settings = settings_of(home)
    opened = open_suite(suite_file, settings)

    def progress(text: str) -> None:
        say(text, err=True)

    with records_of(settings) as records, desk_of(opened.suite, settings, progress) as ask:
        summary = build_suite(opened, VariantLibrary(records), progress, ask)
    if output == "json":
        print_json(summary.document())
    else:
        print_build(summary)


@variants.command()
@_SUITE
@click.argument("item", metavar="[ITEM]", required=False)
@home_option
@format_option
def show(suite_file: Path, item: str | None, home: Path, output: str) -> None:
    """Show the variants of ITEM with their measurements, or the counts of all of SUITE.

    Shows what the library has under the suite's present settings, what made it, what rewording has cost models that
    are known to be clean, and which rewordings the suite's answering check holds for reading.

    \b
    Examples:
      proctor variants show suite.json
      proctor variants show suite.json gsm8k-00012

    JSON keys of a suite: suite, benchmark, strategy, encoder, items, items_in_library, items_with_variants, variants,
    rejected, measurements (name to low, median, high), origins[], fidelity[], held[], conclusion. Of an item: item,
    in_library, key, variants[], rejections[], held[], origin, conclusion. What stands in held[] is to be read before it
    is added to answering_check.allowed.
    """
    from proctor.cli.terminal import print_json
    from proctor.cli.variants.opening import open_suite, records_of, settings_of
    from proctor.cli.variants.showing import item_document, print_item, print_suite, suite_document
    from proctor.perturbation.library.fidelity import fidelities
    from proctor.perturbation.library.store import VariantLibrary

    settings = settings_of(home)
    opened = open_suite(suite_file, settings)
    with records_of(settings) as records:
        library = VariantLibrary(records)
        if item is not None:
            document = item_document(opened, item, library)
        else:
            measured = fidelities(records, opened.chain.name, opened.benchmark)
            document = suite_document(opened, opened.entries(library), library, measured)
    if output == "json":
        print_json(document)
    elif item is not None:
        print_item(document)
    else:
        print_suite(document)


@variants.command()
@click.argument("a", metavar="A", type=_PATH)
@click.argument("b", metavar="B", type=_PATH)
@home_option
@format_option
def diff(a: Path, b: Path, home: Path, output: str) -> None:
    """Say how the variants of A and B differ; each is an export, or a suite with what the library has of it.

    Items are paired by identifier and compared where question, options and target are the same. The exit code is 0
    whether or not they differ.

    \b
    Examples:
      proctor variants diff theirs.jsonl suite.json
      proctor variants diff monday.jsonl tuesday.jsonl --format json

    JSON keys: a, b, equal, settings[] (name, a, b), items_only_in_a[], items_only_in_b[], items_changed[],
    variants_only_in_a[] and variants_only_in_b[] (item_id, variant_id), measurements_changed[] (item_id, variant_id, a,
    b), items_same, variants_same, conclusion.
    """
    from proctor.cli.terminal import print_json
    from proctor.cli.variants.opening import open_side, settings_of
    from proctor.cli.variants.results import diff_document, print_diff
    from proctor.perturbation.library.diff import diff_variants

    settings = settings_of(home)
    sides = [open_side(path, settings) for path in (a, b)]
    found = diff_variants(*((side.header, side.entries) for side in sides))
    if output == "json":
        print_json(diff_document(found, a, b))
    else:
        print_diff(found, a, b)


@variants.command()
@_SUITE
@click.argument("file", metavar="[FILE]", type=_PATH, required=False)
@home_option
@click.option(
    "--as",
    "form",
    type=click.Choice(["jsonl", "lm-eval", "inspect"]),
    default="jsonl",
    show_default=True,
    help="jsonl: the library's own form, in FILE. lm-eval, inspect: a task of that harness, in the folder --output.",
)
@click.option(
    "--output",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for a task's files; made if it is not there.",
)
@click.option("--with-rejections", is_flag=True, help="Also write what was turned away, and why; of jsonl alone.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@format_option
def export(
    suite_file: Path,
    file: Path | None,
    home: Path,
    form: str,
    folder: Path | None,
    with_rejections: bool,
    force: bool,
    output: str,
) -> None:
    """Write the variants of SUITE to FILE, or its prompts as a task of another harness.

    FILE has one JSON object a line, for another team to review and pin. The first line says what made them (suite,
    settings, encoder, gate) and holds the digest of the lines after it. The same library gives the same bytes; the
    digest that is printed is the whole file's.

    With --as lm-eval or --as inspect: every prompt that an audit by SUITE would ask, canonical and reworded, as a task
    of lm-evaluation-harness or of Inspect, for whoever runs models there and not here. What the library lacks is
    reworded first. Run the task as the command that is printed says, then give the logs to `proctor audit import`: the
    decision is that of an audit that asked the model itself. A manifest.json beside the task has the digest of each
    prompt. docs/logs.md walks through both.

    \b
    Examples:
      proctor variants export suite.json variants.jsonl
      proctor variants export suite.json all.jsonl --with-rejections
      proctor variants export suite.json --as lm-eval --output task
      proctor variants export suite.json --as inspect --output task

    JSON keys: file, digest, items, variants, rejections, items_missing, conclusion. Of a task: folder, harness, task,
    plan_digest, items, prompts, files[], command, notes[], conclusion.
    """
    from proctor.cli.terminal import print_json, say
    from proctor.cli.variants.opening import settings_of

    _check_target(form, file, folder, with_rejections)
    if folder is not None:
        from proctor.cli.variants.exporting_task import export_task

        document = export_task(
            suite_file, folder, settings_of(home), harness=form, overwrite=force, progress=lambda t: say(t, err=True)
        )
        told = [*document["notes"], f"In {folder}: {document['command']}"]
    else:
        from proctor.cli.variants.exporting import export_suite

        assert file is not None
        document = export_suite(suite_file, file, settings_of(home), with_rejections=with_rejections, overwrite=force)
        told = [f"digest {document['digest']}"]
    if output == "json":
        print_json(document)
    else:
        say(document["conclusion"])
        for line in told:
            say(line)


def _check_target(form: str, file: Path | None, folder: Path | None, with_rejections: bool) -> None:
    """Raises UsageError where what is to be written and where do not go together."""
    if form == "jsonl":
        if file is None or folder is not None:
            raise click.UsageError("give FILE, the file to write; --output is for --as lm-eval and --as inspect")
    elif folder is None or file is not None:
        raise click.UsageError(f"--as {form} writes several files: name their folder with --output DIR, and no FILE")
    elif with_rejections:
        raise click.UsageError("--with-rejections is of --as jsonl alone: a harness asks what was admitted")


@variants.command("import")
@click.argument("file", type=_PATH)
@home_option
@click.option(
    "--pin", metavar="DIGEST", help="Refuse FILE unless its digest is this one (sha256:…, or the start of it)."
)
@click.option(
    "--remeasure", is_flag=True, help="Measure every variant again with the encoder and the gate of this home."
)
@format_option
def import_file(file: Path, home: Path, pin: str | None, remeasure: bool, output: str) -> None:
    """Take the variants of FILE, which `proctor variants export` wrote, into the library of --home.

    All of them or none: every line is checked, and every variant passes this gate again. Distances are believed where
    they were measured by the encoder of this home; another encoder's are refused, unless --remeasure measures them
    again. Rows of the library are never changed: the same variants again are nothing new, others under the same key are
    refused by name.

    \b
    Examples:
      proctor variants import variants.jsonl --pin sha256:0123456789ab
      proctor variants import variants.jsonl --remeasure

    JSON keys: file, digest, items, new, variants, rejected (reason to number), conclusion.
    """
    from proctor.cli.terminal import print_json, say
    from proctor.cli.variants.exporting import import_variants
    from proctor.cli.variants.opening import settings_of

    document = import_variants(file, settings_of(home), pin=pin, remeasure=remeasure)
    if output == "json":
        print_json(document)
    else:
        say(document["conclusion"])
