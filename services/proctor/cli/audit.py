"""`proctor audit`: audit the model version that a suite pins."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option, home_option
from proctor.domain.errors import ExitCode


@click.group()
def audit() -> None:
    """Audit a model version for benchmark contamination."""


@audit.command()
@click.argument("suite_file", metavar="SUITE", type=click.Path(path_type=Path, dir_okay=False))
@home_option
@format_option
def run(suite_file: Path, home: Path, output: str) -> ExitCode:
    """Audit the model version that SUITE pins, and write the decision to the registry.

    Uses the stack that `proctor up` started in the same home, or starts one for the time it takes. An audit that was
    interrupted goes on where it stopped when the same command is given again. The registry is the local MLflow, or
    the one that PROCTOR_REGISTRY_URI names.

    Exit codes: 0 approved, 1 failure, 2 bad input, 3 review, 4 blocked.
    """
    from proctor.cli.auditing import EXIT_CODES, run_audits
    from proctor.cli.local import stack_for
    from proctor.cli.results import print_results
    from proctor.cli.terminal import print_json
    from proctor.formats.suites import load_suite
    from proctor.router.audit import gather
    from proctor.runtime.settings import LOCAL_TRITON, Settings
    from proctor.runtime.stack import StackSpec

    suite, settings = load_suite(suite_file), Settings.from_environment()
    # Before anything is started: a file that cannot be read should cost no start of a stack.
    data = gather(suite, suite_file.parent, settings.bundle)
    spec = StackSpec(mlflow=settings.registry_uri is None, triton=suite.model.endpoint == LOCAL_TRITON)
    with stack_for(home, spec=spec) as stack:
        (result,) = run_audits([data], stack.settings, check_health=stack.check)
    if output == "json":
        print_json(result.summary())
    else:
        print_results([result])
    return EXIT_CODES[result.event.outcome]
