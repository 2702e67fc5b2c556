"""What the plan of an audit says of routers, against the trials that are planned."""

from __future__ import annotations

import pytest

from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.router.transmission import plan_routers, plan_workers
from proctor.scorer.channels.noise.calls import router_note

ITEMS = [Item(item_id=f"i{n}", question=f"Question {n}?", choices=("x", "y"), target="y") for n in range(7)]


def suite(**protocol: object) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "s",
            "model_config": {"model_id": "org/m", "model_version": "sha256:" + "ab" * 32, "endpoint": "http://h/v1"},
            "dataset_config": {"benchmark_name": "b"},
            "protocol_config": protocol,
        }
    )


@pytest.mark.parametrize("sampling", ["nested", "independent"])
@pytest.mark.parametrize("matched_clean", [True, False])
def test_the_note_counts_what_will_be_asked(sampling: str, matched_clean: bool) -> None:
    audit = suite(protocol="router_worker", max_routers=4, sampling=sampling, matched_clean=matched_clean)
    routers = list(plan_routers(ITEMS, audit.protocol, chat=False))
    said = {(trial.arm, trial.item_id, trial.router_index): "" for trial in routers}
    workers = list(plan_workers(ITEMS, audit.protocol, said))
    note = router_note(audit, len(ITEMS))
    assert note is not None
    assert f"the routers (org/m) write {len(routers)} messages of at most 1,024 tokens" in note
    assert f"the model answers {len(workers)} prompts" in note


def test_the_direct_protocol_has_no_note() -> None:
    assert router_note(suite(), 7) is None
