"""`proctor demo`: the whole job on two models of which one is known to have memorised test items."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import format_option
from proctor.cli.terminal import print_json, say
from proctor.domain.errors import ExitCode

if TYPE_CHECKING:
    from proctor.cli.audits.auditing import AuditResult
    from proctor.localstack.stack import LocalStack

#: What the gate must decide: the truth was planted by `scripts/train_reference_models.py`.
LEAKED = "reference-leaked"
EXPECTED = {"reference-clean": "approve", LEAKED: "block"}
#: The ground truth of a reference bundle, beside the leaked model's weights.
LEAKED_ITEMS = "leaked_items.json"
#: The demo's suite, in the folder of the home's suites.
SUITE_FILE = "proctor-facts.json"


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".proctor/demo"),
    show_default=True,
    help="Folder of the stack, its logs and the reports.",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Reference models and benchmark that `scripts/train_reference_models.py --output DIR` made, instead of "
    "Proctor's own.",
)
@click.option(
    "--design",
    type=click.Choice(["fixed", "sequential"]),
    default="fixed",
    show_default=True,
    help="fixed asks all 600 items; sequential stops each audit where the evidence decides.",
)
@format_option
def demo(home: Path, bundle: Path | None, design: str, output: str) -> ExitCode:
    """Register two reference models, one clean and one that has memorised 15 % of the test, and see them audited.

    Starts a local stack (Valkey, Triton, MLflow, five Celery workers, a gateway) and registers both model versions in
    MLflow. From there on nothing is done by hand: MLflow's signed webhook tells the gateway, which starts the audits
    that a trigger file names, and the decisions come back as tags and an alias. Then it stops everything it started.
    `proctor up` with the same --home keeps the dashboard up, and audits what you register there. Exits with 0 when the
    clean model is approved and the leaked one blocked.
    """
    from proctor.cli.audits.auditing import await_audits
    from proctor.cli.audits.away import Attendant
    from proctor.cli.audits.results import print_results
    from proctor.cli.dashboard import TRIGGER_FILE, send_webhooks
    from proctor.cli.local import stack_for
    from proctor.cli.loop import begun, came_back, register, told
    from proctor.formats.triggers import load_triggers
    from proctor.gateway.audits import local_desk
    from proctor.localstack.stack import StackSpec
    from proctor.registry.mlflow_client import MlflowClient
    from proctor.registry.mlflow_registry import MlflowRegistry
    from proctor.runtime.settings import Settings

    home = home.absolute()
    write_triggers(home, design, bundle or Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)}).bundle)
    spec = StackSpec(gateway=True, triggers=home / TRIGGER_FILE)
    with stack_for(home, spec=spec, bundle=bundle, reuse=False) as stack:
        settings, address = stack.settings, stack.dashboard()
        assert settings.registry_uri is not None
        send_webhooks(stack)
        say(
            f"Dashboard: {address}, for as long as this runs. Log in with: proctor gateway login --home {home}",
            err=True,
        )
        triggers = load_triggers(home / TRIGGER_FILE, settings.bundle, settings.benchmarks)
        attendant = Attendant(stack)
        with MlflowClient(settings.registry_uri) as mlflow, local_desk(settings) as desk:
            registered = [register(mlflow, name, weights_of(name, settings.bundle), triggers) for name in EXPECTED]
            requests = attendant.patiently(partial(begun, registered, desk.records.requests, attendant.check))
            audit_ids = [str(requests[one.name].audit_id) for one in registered]
            results = await_audits(audit_ids, desk, attendant=attendant)
            back = {
                one.name: came_back(mlflow, one.name, result.registry_version or one.version)
                for one, result in zip(registered, results, strict=True)
            }
        services = {service.name: service.version for service in stack.status()}
        with MlflowRegistry(settings.registry_uri) as registry:
            decisions = registry.counts().decisions
        counts = {
            "triton_answers": triton_answers(stack),
            "ledger_answers": {result.event.model_id: result.trials.done for result in results},
            "mlflow_decisions": decisions,
        }
    models = [result.summary() for result in results]
    truth = planted_truth(settings.bundle, models)
    if output == "json":
        document: dict[str, Any] = {
            "protocol_digest": results[0].event.protocol_digest,
            "services": services,
            "counts": counts,
            "planted_truth": truth,
            "models": models,
            "loop": {"dashboard": address, "versions": told(registered, requests, back)},
        }
        print_json(document)
    else:
        print_results(results)
        if design == "sequential":
            say(f"\n{saved(results)}")
        say(
            f"\nThe planted truth: {truth['leaked_items']} items are in the leaked model's memory, and "
            f"{truth['found_among_most_suspected']} of the {truth['most_suspected']} items that its report suspects "
            "most are among them."
        )
        say(f"Keep the dashboard up, and audit what you register there: proctor up --home {home}")
    outcomes = {result.event.model_id: result.event.outcome.value for result in results}
    if outcomes != EXPECTED:
        say(f"These are not the decisions that the planted truth calls for, which are {EXPECTED}.", err=True)
        return ExitCode.FAILURE
    return ExitCode.APPROVED_OR_DONE


def write_triggers(home: Path, design: str, bundle: Path) -> None:
    """Write the demo's trigger file, and beside it the one suite for whichever reference model is registered.

    Args:
        home: where both go.
        design: of the audits, as a suite says it.
        bundle: with the models.

    Raises:
        StoreError: when the bundle lacks the models, or the files cannot be written.
    """
    from proctor.cli.dashboard import TRIGGER_FILE
    from proctor.domain.errors import StoreError
    from proctor.runtime.files import write_atomic

    suite = home / "suites" / SUITE_FILE
    rule = {"name": "reference models", "models": sorted(EXPECTED), "suites": [str(suite.relative_to(home))]}
    # From now on: what an earlier demo registered in this home is decided, or was left where it was interrupted.
    triggers = {"since": datetime.now(UTC).isoformat(timespec="seconds"), "rules": [rule]}
    try:
        write_atomic(suite, demo_suite(next(iter(EXPECTED)), bundle, design=design).encode())
        write_atomic(home / TRIGGER_FILE, (json.dumps(triggers, indent=2) + "\n").encode())
    except OSError as error:
        raise StoreError(f"the demo's suite cannot be written to {home}: {error.strerror or error}") from None


def demo_suite(model_id: str, bundle: Path, *, design: str = "fixed") -> str:
    """The text of the demo's suite for one of the reference models, pinned to the weights in the bundle."""
    template = json.loads(files("proctor.cli").joinpath("demo_suite.json").read_text("utf-8"))
    template["model_config"].update(model_id=model_id, model_version=weights_of(model_id, bundle))
    if design != "fixed":
        template["scoring_config"]["design"] = {"kind": design}
    return json.dumps(template, indent=2) + "\n"


def weights_of(model_id: str, bundle: Path) -> str:
    """The digest of a reference model's weights.

    Raises:
        StoreError: when the bundle lacks them.
    """
    from proctor.domain.canonical import bytes_digest
    from proctor.domain.errors import StoreError

    weights = bundle / "models" / model_id / "1" / "model.safetensors"
    try:
        return bytes_digest(weights.read_bytes())
    except OSError as error:
        raise StoreError(f"the reference bundle has no {weights}: {error.strerror}") from None


def planted_truth(bundle: Path, models: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many items were leaked into the leaked model, and how many of the most suspected ones are of those.

    The most suspected are as many as leaked, or all that have a rank where these are fewer: an item without suspicion
    is not found by standing next in the list.
    """
    leaked = set(json.loads((bundle / "models" / LEAKED / LEAKED_ITEMS).read_text("utf-8"))["item_ids"])
    (ranked,) = (
        [item["item_id"] for item in model["items"] if item["rank"] is not None]
        for model in models
        if model["model"] == LEAKED
    )
    most_suspected = ranked[: len(leaked)]
    return {
        "leaked_items": len(leaked),
        "most_suspected": len(most_suspected),
        "found_among_most_suspected": len(leaked.intersection(most_suspected)),
    }


def saved(results: Sequence[AuditResult]) -> str:
    """How many trials the audits took of those that the fixed design asks, in one sentence."""
    asked = sum(result.trials.done for result in results)
    suites = [result.report["suite"] for result in results]
    fixed = sum(
        suite["dataset_config"]["sample_size"] * (1 + suite["perturbation_config"]["num_variants_per_item"])
        for suite in suites
    )
    return (
        f"The audits stopped where the evidence decided: {asked:,} trials were asked of the {fixed:,} of the fixed "
        f"design ({asked / fixed:.0%})."
    )


def triton_answers(stack: LocalStack) -> dict[str, int]:
    """How many requests Triton itself says each model has answered; empty when models are served in process.

    Every trial is one, and so is the probe's question which weights the model loaded.
    """
    import httpx

    from proctor.localstack.services import TRITON, triton_sockets

    if all(service.name != TRITON for service in stack.status()):
        return {}
    transport = httpx.HTTPTransport(uds=str(triton_sockets(stack.home).metrics))
    with httpx.Client(transport=transport, timeout=10.0) as client:
        text = client.get("http://localhost/metrics").text
    rows = re.findall(r'^nv_inference_request_success\{model="([^"]+)",[^}]*\} (\d+)', text, re.MULTILINE)
    return {model: int(count) for model, count in rows if model in EXPECTED}
