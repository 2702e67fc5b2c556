"""From an audit's completions to its evidence and decision. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from proctor.domain.decision import Decision
from proctor.domain.evidence import Evidence
from proctor.domain.item import Item
from proctor.domain.manifest import AuditManifest, VariantSet
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm, Completion, Trial
from proctor.evidence.answers import Answer, answer_of, guess_chance, pair_answers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.clean_control import NONE_ON_RECORD, OnRecord, choose_control
from proctor.evidence.protocol.channel import protocol_evidence
from proctor.grading import grade, resolve_extractor
from proctor.scorer.assembly import GradedTrial
from proctor.scorer.noise import Messages, noise_of
from proctor.scorer.policy import decide

#: Why a channel did not run. What did not run is never clean.
_NOT_AUDITED = {
    "noise": "the suite asks for no noisy-router arms",
    "exposure": "no training corpus was given",
    "fresh": "no freshly written items were given",
}


class AskedTrial(NamedTuple):
    """A planned trial with its completion; None where its shard was given up."""

    trial: Trial
    completion: Completion | None


class Score(NamedTuple):
    """What an audit's completions amount to."""

    answers: list[GradedTrial]
    evidence: Evidence
    decision: Decision


def clean_models(manifest: AuditManifest, variants: VariantSet) -> OnRecord:
    """The clean models that an audit's variants bring along, and what they are to be compared with."""
    return OnRecord(variants.controls, manifest.model_digest, variants.rewordings_digest)


def score(
    suite: Suite,
    items: Sequence[Item],
    asked: Sequence[AskedTrial],
    on_record: OnRecord = NONE_ON_RECORD,
    messages: Messages = MappingProxyType({}),
) -> Score:
    """Grade the completions, weigh the evidence, and decide.

    Args:
        on_record: the clean models of which one may control the comparison.
        messages: what the routers wrote; nothing where the suite asks none.

    Raises:
        BadInputError: when the suite's extractor cannot read the items' answers.
    """
    extractor = resolve_extractor(suite.metric.extractor, items)
    targets = {item.item_id: item.target for item in items}
    answers: list[GradedTrial] = []
    rows: list[Answer] = []
    for trial, completion in asked:
        if completion is None:
            answers.append(GradedTrial(trial, None, None))
            rows.append(Answer(arm=trial.arm, item_id=trial.item_id, outcome=None))
            continue
        graded = None if completion.error is not None else grade(trial, completion, targets[trial.item_id], extractor)
        answers.append(GradedTrial(trial, completion, graded))
        rows.append(answer_of(trial, completion, graded))
    paired = pair_answers(rows, [item.item_id for item in items])
    noise = noise_of(suite, items, rows, messages) if suite.protocol.asks_routers else None
    evidence = Evidence(
        perturbation=perturbation_evidence(
            paired,
            suite.scoring,
            suite.governance,
            guess_chance(suite.scoring, items),
            choose_control(paired, on_record),
        ),
        protocol=protocol_evidence(
            [row for row in rows if row.arm.is_direct],
            expected_arms=(Arm.CANONICAL, Arm.PERTURBED),
            level=suite.scoring.confidence_level,
        ),
        noise=noise,
        not_audited={name: why for name, why in _NOT_AUDITED.items() if name != "noise" or noise is None},
    )
    return Score(answers, evidence, decide(evidence, suite))
