"""`proctor audit import`: the decision of an audit from another harness' logs."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option, home_option
from proctor.domain.errors import ExitCode

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("import")
@click.argument("suite_file", metavar="SUITE", type=_FILE)
@click.argument("log_files", metavar="LOG...", type=_FILE, nargs=-1, required=True)
@click.option(
    "--model-in-log", metavar="NAME", help="What the logs call the model, where that is no name of the suite's."
)
@home_option
@format_option
def import_logs(
    suite_file: Path, log_files: tuple[Path, ...], model_in_log: str | None, home: Path, output: str
) -> ExitCode:
    """Decide on SUITE from LOGs of another harness, which asked the task of `proctor variants export`.

    The model is not asked: its answers are taken from the logs, and graded, weighed, decided, reported, written to the
    registry and put on record as those of `proctor audit run` are. A LOG is lm-evaluation-harness' samples_*.jsonl
    (with --log_samples; its results_*.json beside it may be given too, and says which model it was), Inspect's .eval or
    .json, or a file of a plug-in's format that keeps prompts. Several are parts of one run.

    Refused, saying how many and which first: prompts that are not the suite's, by SHA-256; prompts that are left out;
    a prompt that was answered twice in different ways, or in several epochs; another model than the suite's, settings
    other than the suite pins, logs of different runs. What a log does not record stands as unknown on the protocol
    card, and the report says that the answers came from a log. The suite's own endpoint is not looked at.

    The variants must be those of the export: use the same --home, or take its variants in with `proctor variants
    import`. docs/logs.md walks through it.

    \b
    Examples:
      proctor audit import suite.json OUT/model/samples_proctor_*.jsonl
      proctor audit import suite.json logs/2026-01-01T00-00-00_task.eval --format json

    Exit codes: 0 approved, 1 failure, 2 bad input, 3 review, 4 blocked.
    """
    from proctor.cli.audits.auditing import EXIT_CODES, run_audits
    from proctor.cli.audits.away import Attendant
    from proctor.cli.audits.logs import take_logs
    from proctor.cli.audits.results import print_results
    from proctor.cli.local import settings_to_come, stack_for
    from proctor.cli.terminal import print_json
    from proctor.localstack.stack import StackSpec
    from proctor.localstack.state import live_state

    settings = settings_to_come(home)
    # Before anything is started: a log that is refused should cost no start of a stack.
    taken = take_logs(suite_file, log_files, settings, known_as=model_in_log)
    stays = live_state(home) is not None
    with stack_for(home, spec=StackSpec(mlflow=settings.registry_uri is None, triton=False)) as stack:
        (result,) = run_audits([taken.kept(stack.settings)], stack.settings, attendant=Attendant(stack), stays=stays)
    if output == "json":
        print_json(result.summary())
    else:
        print_results([result])
    return EXIT_CODES[result.event.outcome]
