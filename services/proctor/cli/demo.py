"""`proctor demo`: the whole job on two models of which one is known to have memorised test items."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import format_option
from proctor.cli.terminal import print_json, say
from proctor.domain.errors import ExitCode

if TYPE_CHECKING:
    from proctor.localstack.stack import LocalStack

#: What the gate must decide: the truth was planted by `scripts/train_reference_models.py`.
LEAKED = "reference-leaked"
EXPECTED = {"reference-clean": "approve", LEAKED: "block"}
#: The ground truth of a reference bundle, beside the leaked model's weights.
LEAKED_ITEMS = "leaked_items.json"


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
@format_option
def demo(home: Path, bundle: Path | None, output: str) -> ExitCode:
    """Audit two reference models, one clean and one that has memorised 15 % of the test.

    Starts a local stack (Valkey, Triton, MLflow, five Celery workers), registers both model versions in MLflow, audits
    them, writes the decisions back, and stops everything it started. Exits with 0 when the clean model is approved and
    the leaked one blocked.
    """
    from proctor.cli.audits.auditing import run_audits
    from proctor.cli.audits.away import Attendant
    from proctor.cli.audits.results import print_results
    from proctor.cli.local import stack_for
    from proctor.domain.suite_problems import parse_suite
    from proctor.localstack.stack import StackSpec
    from proctor.registry.mlflow_registry import MlflowRegistry
    from proctor.router.submit.gathering import gather
    from proctor.runtime.files import write_atomic

    home = home.absolute()
    with stack_for(home, spec=StackSpec(), bundle=bundle, reuse=False) as stack:
        settings = stack.settings
        assert settings.registry_uri is not None
        registry = MlflowRegistry(settings.registry_uri)
        audited = []
        for name in EXPECTED:
            text = demo_suite(name, settings.bundle)
            write_atomic(home / "suites" / f"{name}.json", text.encode())
            suite = parse_suite(text)
            version = registry.ensure_version(suite.model.model_id, suite.model.model_version)
            say(f"Registered {name}, version {version}, in MLflow.", err=True)
            audited.append(gather(suite, home / "suites", settings.bundle))
        results = run_audits(audited, settings, attendant=Attendant(stack))
        services = {service.name: service.version for service in stack.status()}
        counts = {
            "triton_answers": triton_answers(stack),
            "ledger_answers": {result.event.model_id: result.trials.done for result in results},
            "mlflow_decisions": registry.counts().decisions,
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
        }
        print_json(document)
    else:
        print_results(results)
        say(
            f"\nThe planted truth: {truth['leaked_items']} items are in the leaked model's memory, and "
            f"{truth['found_among_most_suspected']} of the {truth['most_suspected']} items that its report suspects "
            "most are among them."
        )
    decisions = {result.event.model_id: result.event.outcome.value for result in results}
    if decisions != EXPECTED:
        say(f"These are not the decisions that the planted truth calls for, which are {EXPECTED}.", err=True)
        return ExitCode.FAILURE
    return ExitCode.APPROVED_OR_DONE


def demo_suite(model_id: str, bundle: Path) -> str:
    """The text of the demo's suite for one of the reference models, pinned to the weights in the bundle."""
    from proctor.domain.canonical import bytes_digest
    from proctor.domain.errors import StoreError

    template = json.loads(files("proctor.cli").joinpath("demo_suite.json").read_text("utf-8"))
    weights = bundle / "models" / model_id / "1" / "model.safetensors"
    try:
        digest = bytes_digest(weights.read_bytes())
    except OSError as error:
        raise StoreError(f"the reference bundle has no {weights}: {error.strerror}") from None
    template["model_config"].update(model_id=model_id, model_version=digest)
    return json.dumps(template, indent=2) + "\n"


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


def triton_answers(stack: LocalStack) -> dict[str, int]:
    """How many requests Triton itself says each model has answered; empty when models are served in process."""
    import httpx

    from proctor.localstack.services import TRITON, triton_sockets

    if all(service.name != TRITON for service in stack.status()):
        return {}
    transport = httpx.HTTPTransport(uds=str(triton_sockets(stack.home).metrics))
    with httpx.Client(transport=transport, timeout=10.0) as client:
        text = client.get("http://localhost/metrics").text
    rows = re.findall(r'^nv_inference_request_success\{model="([^"]+)",[^}]*\} (\d+)', text, re.MULTILINE)
    return {model: int(count) for model, count in rows if model in EXPECTED}
