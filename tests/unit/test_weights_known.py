"""How it is known which weights answered: proven, declared, unknown. Nothing counts for more than what stands behind
it, from the probe to the gate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from tritonclient.grpc import service_pb2_grpc

from proctor.domain.decision import Decision, DecisionEvent, DecisionOutcome, Reason
from proctor.domain.endpoint import EndpointSpec, Replica
from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import EndpointProbed
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.domain.weights import Weights, falls_short, weakest, weights_known
from proctor.inference.balancing.balanced import BalancedBackend
from proctor.inference.reference.in_process import InProcessBackend
from proctor.inference.reference.model import weights_digest
from proctor.inference.tasks import _weights_of
from proctor.inference.triton.backend import TritonBackend
from proctor.inference.worker.backend import Backend, Probe
from proctor.inference.worker.open_backend import open_server
from proctor.registry.promotion import check
from proctor.registry.version_tags import WEIGHTS_TAG, version_tags
from proctor.runtime.settings import Settings
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, RunFacts, Subject, to_json
from proctor.scorer.weights import with_weights
from tests.report_samples import approved
from tests.scored_audits import manifest_of
from tests.unit.test_promotion import EVENT, HELD, recorded
from tests.unit.test_triton_client import ALL_INPUTS, Server, piece, text_tensor

BUNDLE: Final = Path(__file__).parents[2] / "services" / "triton"
DIGEST: Final = "sha256:" + "ab" * 32
OTHER: Final = "sha256:" + "cd" * 32


class Stating(Server):
    """A model whose configuration declares one digest, and which says in its answers what it computed."""

    def __init__(self, declared: str, stated: str | None, *, decoupled: bool = True) -> None:
        async def answer(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
            async for request in requests:
                yield piece(request.id, "A", **self.statement(request))

        inputs = ALL_INPUTS if stated is None else (*ALL_INPUTS, "return_weights_digest")
        super().__init__(answer, inputs, declared, None if decoupled else {})
        self.stated = stated

    def statement(self, request: Any) -> dict[str, Any]:
        wants = "return_weights_digest" in {tensor.name for tensor in request.inputs}
        return {"weights_digest": text_tensor(self.stated.encode())} if wants and self.stated is not None else {}

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        return piece(request.id, "A", final=None, **self.statement(request)).infer_response


def asked(*servers: Stating, pinned: str | None = DIGEST) -> tuple[Probe, list[Completion]]:
    """What a probe says of servers that stand for one endpoint, and the completion of a trial."""

    async def run() -> tuple[Probe, list[Completion]]:
        running = []
        for servicer in servers:
            server = grpc.aio.server()
            service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            running.append((server, f"grpc://127.0.0.1:{port}"))
        urls = [url for _, url in running]
        spec = EndpointSpec(backend="triton", url=urls[0], served_name="model", model_version=pinned)
        backend: Backend = TritonBackend(spec)
        if len(urls) > 1:
            spec = spec.model_copy(update={"replicas": tuple(Replica(url=url) for url in urls)})
            backend = BalancedBackend(spec, open_server)
        try:
            probe = await backend.probe()
            trial = Trial(arm=Arm.CANONICAL, item_id="1", prompt="?")
            completions = await backend.complete([trial], Decoding(), deadline_s=10.0) if probe.ok else []
            return probe, completions
        finally:
            await backend.close()
            for server, _ in running:
                await server.stop(None)

    return asyncio.run(run())


def kind(probe: Probe) -> Weights:
    return weights_known(probe.weights, reported=probe.model_digest is not None)


def test_a_digest_that_somebody_wrote_into_config_pbtxt_is_declared_and_not_proven() -> None:
    probe, (completion,) = asked(Stating(DIGEST, None))
    assert (probe.ok, probe.model_digest, kind(probe)) == (True, DIGEST, Weights.DECLARED)
    assert completion.model_digest == DIGEST


def test_a_model_that_declares_nothing_is_unknown() -> None:
    probe, (completion,) = asked(Stating("", None))
    assert (probe.ok, probe.model_digest, kind(probe)) == (True, None, Weights.UNKNOWN)
    assert completion.model_digest is None


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("declared", [DIGEST, ""])
def test_what_a_backend_of_proctor_computed_and_says_with_its_answers_is_proven(declared: str, decoupled: bool) -> None:
    probe, (completion,) = asked(Stating(declared, DIGEST, decoupled=decoupled))
    assert (probe.ok, probe.model_digest, kind(probe)) == (True, DIGEST, Weights.PROVEN)
    assert completion.model_digest == DIGEST


def test_weights_that_are_not_the_pinned_ones_are_refused_whatever_is_declared() -> None:
    probe, _ = asked(Stating("", OTHER))
    assert not probe.ok
    assert OTHER in probe.detail


def test_a_declaration_that_the_files_belie_is_refused_by_name() -> None:
    probe, _ = asked(Stating(OTHER, DIGEST), pinned=None)
    assert not probe.ok
    assert "its configuration declares" in probe.detail


@pytest.mark.parametrize("stated", ["", "sha256:ab", "\xff", DIGEST + "0", DIGEST.upper()])
def test_a_statement_that_is_no_digest_proves_nothing(stated: str) -> None:
    probe, _ = asked(Stating(DIGEST, stated))
    assert (probe.ok, probe.model_digest, kind(probe)) == (True, DIGEST, Weights.DECLARED)


def test_an_endpoint_is_known_as_the_least_of_its_replicas() -> None:
    both, _ = asked(Stating(DIGEST, DIGEST), Stating(DIGEST, DIGEST))
    assert kind(both) is Weights.PROVEN
    mixed, _ = asked(Stating(DIGEST, DIGEST), Stating(DIGEST, None))
    assert kind(mixed) is Weights.DECLARED
    assert weakest([]) is Weights.UNKNOWN


def test_a_model_in_process_is_proven(tmp_path: Path) -> None:
    digest = weights_digest(BUNDLE / "models" / "reference-clean" / "1")
    spec = EndpointSpec(backend="in_process", url="in-process://x", served_name="reference-clean", model_version=digest)
    settings = Settings.from_environment({"PROCTOR_HOME": str(tmp_path), "PROCTOR_BUNDLE": str(BUNDLE)})
    probe = asyncio.run(InProcessBackend(spec, settings).probe())
    assert (probe.model_digest, kind(probe)) == (digest, Weights.PROVEN)


def test_a_plug_in_that_says_proven_is_not_believed() -> None:
    claimed = Probe(True, DIGEST, weights=Weights.PROVEN)
    assert _weights_of(claimed, "somebody_s") is None
    assert _weights_of(claimed, "triton") is Weights.PROVEN


def test_the_kinds_are_ordered() -> None:
    order = [Weights.PROVEN, Weights.DECLARED, Weights.UNKNOWN]
    for known in order:
        for wanted in order:
            assert falls_short(known, wanted) is (order.index(known) > order.index(wanted))


def test_what_an_earlier_version_called_verified_is_declared() -> None:
    old = {"audit_id": "a", "ok": True, "model_digest": DIGEST}
    assert EndpointProbed.model_validate(old).weights is None
    manifest = manifest_of(approved().suite).model_copy(update={"weights": None})
    assert manifest.weights_known is Weights.DECLARED
    assert "weights" not in manifest.plain()
    assert AuditManifest.model_validate(manifest.plain()).weights_known is Weights.DECLARED
    subject = {"model_id": "m", "digest": DIGEST, "verified": True, "server": "s"}
    assert Subject.model_validate(subject).weights_known is Weights.DECLARED
    assert Subject.model_validate({**subject, "verified": False}).weights_known is Weights.UNKNOWN


def report_of(weights: Weights) -> Report:
    case = approved()
    proven = weights is Weights.PROVEN
    changes = {"model_digest_verified": weights is not Weights.UNKNOWN, "weights": Weights.PROVEN if proven else None}
    case.manifest = case.manifest.model_copy(update=changes)
    return case.report()


@pytest.mark.parametrize("weights", list(Weights))
def test_a_report_says_how_the_weights_are_known_in_json_on_the_page_and_among_its_limits(weights: Weights) -> None:
    report = report_of(weights)
    document = json.loads(to_json(report))
    assert document["subject"]["weights"] == weights.value
    assert document["subject"]["verified"] is (weights is Weights.PROVEN)
    page = render(report, run=RunFacts(audit_id="a"), digest=DIGEST)
    assert page.count(weights.words) == 2
    limits = {limit.code: limit.text for limit in report.limits}
    assert ("weights_not_proven" in limits) is (weights is not Weights.PROVEN)
    if weights is Weights.DECLARED:
        assert "declared and not proven" in limits["weights_not_proven"]


def suite_of(required: str) -> Suite:
    suite = approved().suite
    governance = suite.governance.model_copy(update={"required_weights": required})
    return suite.model_copy(update={"governance": governance})


@pytest.mark.parametrize("known", list(Weights))
@pytest.mark.parametrize("required", ["any", "declared", "proven"])
def test_a_suite_that_asks_for_more_than_is_known_approves_nothing(required: str, known: Weights) -> None:
    within = Decision(outcome=DecisionOutcome.APPROVE, reasons=(Reason(code="within_limits", text="So."),))
    found = with_weights(within, suite_of(required), known)
    enough = required == "any" or not falls_short(known, Weights(required))
    assert (found == within) is enough
    if not enough:
        assert (found.outcome, found.reasons[0].code) == (DecisionOutcome.REVIEW, "weights_not_enough")
        assert known.words in found.reasons[0].text


def test_a_block_stays_a_block_whatever_is_known_of_the_weights() -> None:
    past = Decision(outcome=DecisionOutcome.BLOCK, reasons=(Reason(code="past", text="So."),))
    found = with_weights(past, suite_of("proven"), Weights.UNKNOWN)
    assert found.outcome is DecisionOutcome.BLOCK
    assert [reason.code for reason in found.reasons] == ["past", "weights_not_enough"]


def of(weights: Weights | None) -> DecisionEvent:
    return EVENT.model_copy(update={"weights": weights})


@pytest.mark.parametrize("wanted", [None, Weights.DECLARED, Weights.PROVEN])
@pytest.mark.parametrize("known", [*Weights, None])
def test_the_gate_takes_no_less_than_it_is_asked_for(known: Weights | None, wanted: Weights | None) -> None:
    found = check(HELD, recorded(of(known)), wanted=wanted)
    # Of a decision of before there were kinds nothing is known.
    enough = wanted is None or not falls_short(known or Weights.UNKNOWN, wanted)
    assert found.approved is enough
    assert found.weights == known
    assert ("weights_not_enough" in {reason.code for reason in found.reasons}) is not enough


def test_an_event_says_how_the_weights_are_known_and_one_of_before_says_nothing() -> None:
    assert of(Weights.DECLARED).plain()["weights"] == "declared"
    assert "weights" not in EVENT.plain()
    assert DecisionEvent.model_validate(EVENT.plain()).weights is None


@pytest.mark.parametrize(("weights", "said"), [(Weights.PROVEN, "proven"), (None, "not recorded")])
def test_the_registry_is_told_how_the_weights_are_known(weights: Weights | None, said: str) -> None:
    from tests.unit.test_version_description import record

    event = record().event.model_copy(update={"weights": weights})
    of_it = record(suites=2)
    suites = (of_it.suites[0]._replace(event=event), *of_it.suites[1:])
    assert version_tags(of_it._replace(suites=suites[:1]))[WEIGHTS_TAG] == said
    # Of several audits the one that says least.
    unknown = event.model_copy(update={"weights": Weights.UNKNOWN})
    both = of_it._replace(suites=(suites[0], suites[1]._replace(event=unknown)))
    assert version_tags(both)[WEIGHTS_TAG] == ("unknown" if weights else "not recorded")
