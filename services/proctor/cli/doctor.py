"""`proctor doctor`: what this machine has and lacks."""

from __future__ import annotations

import os
from pathlib import Path

import click

from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table
from proctor.domain.errors import ExitCode
from proctor.localstack.doctor.cluster import examine_cluster
from proctor.localstack.doctor.configured import examine_outside, readable_settings
from proctor.localstack.doctor.installed import State, examine
from proctor.localstack.doctor.models import examine_models
from proctor.localstack.real_models import RealModels


@click.command()
@click.option(
    "--models",
    "with_models",
    is_flag=True,
    help="Look for the real model and its servers, which `make models` sets up.",
)
@home_option
@format_option
def doctor(with_models: bool, home: Path, output: str) -> ExitCode:
    """Say what this machine has and lacks, and the mend for each. Exit code 1 when something required is missing.

    The endpoints of PROCTOR_ENDPOINTS are read and not asked. Of object storage and Kubernetes, the client libraries
    are looked for where the settings need them. The Redis of PROCTOR_LEDGER_URL is asked whether it keeps what is
    written there. In a pod, the API server is asked whether its account may do what the settings have it do.

    \b
    Examples:
      PROCTOR_ENDPOINTS=@/etc/proctor/endpoints.json proctor doctor
      proctor doctor --models
    """
    settings, faults = readable_settings({**os.environ, "PROCTOR_HOME": str(home)})
    findings = examine(settings) + (faults or examine_outside(settings)) + examine_cluster(settings, os.environ)
    if with_models:
        findings += examine_models(RealModels.here())
    complete = all(finding.state is not State.MISSING or not finding.required for finding in findings)
    if output == "json":
        print_json({"complete": complete, "findings": [finding._asdict() for finding in findings]})
    else:
        rows = [(item.name, item.state, " — ".join(filter(None, (item.found, item.mend)))) for item in findings]
        say(table(("what", "state", "found"), rows))
        say("This machine can run Proctor." if complete else "Something required is missing; the mend is beside it.")
    return ExitCode.APPROVED_OR_DONE if complete else ExitCode.FAILURE
