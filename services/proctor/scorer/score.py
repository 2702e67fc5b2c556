"""From an audit's graded trials to its evidence and decision. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from proctor.domain.decision import Decision
from proctor.domain.evidence import Evidence
from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm
from proctor.evidence.answers import guess_chance, pair_answers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.clean_control import NONE_ON_RECORD, OnRecord, choose_control
from proctor.evidence.protocol.channel import protocol_evidence
from proctor.scorer.channels.noise import Messages, noise_of
from proctor.scorer.grading.rows import Rows
from proctor.scorer.policy import decide

#: Why a channel did not run. What did not run is never clean.
_NOT_AUDITED = {
    "noise": "the suite asks for no noisy-router arms",
    "exposure": "no training corpus was given",
    "fresh": "no freshly written items were given",
}


class Score(NamedTuple):
    """What an audit's completions amount to."""

    evidence: Evidence
    decision: Decision


def score(
    suite: Suite,
    items: Sequence[Item],
    rows: Rows,
    on_record: OnRecord = NONE_ON_RECORD,
    messages: Messages = (),
) -> Score:
    """Weigh the evidence, and decide.

    Args:
        items: the items of the audit.
        rows: its graded trials.
        on_record: the clean models of which one may control the comparison.
        messages: what the routers wrote; nothing where the suite asks none.
    """
    paired = pair_answers(rows.answers(direct=True), rows.item_ids)
    noise = None
    if suite.protocol.asks_routers:
        noise = noise_of(suite, items, list(rows.answers(direct=False)), messages)
    evidence = Evidence(
        perturbation=perturbation_evidence(
            paired,
            suite.scoring,
            suite.governance,
            guess_chance(suite.scoring, items),
            choose_control(paired, on_record),
        ),
        protocol=protocol_evidence(
            rows.answers(direct=True),
            expected_arms=(Arm.CANONICAL, Arm.PERTURBED),
            level=suite.scoring.confidence_level,
        ),
        noise=noise,
        not_audited={name: why for name, why in _NOT_AUDITED.items() if name != "noise" or noise is None},
    )
    return Score(evidence, decide(evidence, suite))
