"""What an audit cannot say: sentences that hold for every audit, and those that this one's conditions call for."""

from __future__ import annotations

from typing import Final

from proctor.domain.decision import Decision, DecisionOutcome, scope_caveat
from proctor.domain.evidence import CleanControl, ControlItems, Evidence
from proctor.domain.limitation import Limitation
from proctor.domain.log_origin import DECODING_SETTINGS, LOG_BACKEND, UNKNOWN
from proctor.domain.manifest import AuditManifest
from proctor.domain.risk_register import exposure_of_dataset, published
from proctor.domain.weights import Weights
from proctor.evidence.perturbation.rewording_cost import not_on_record
from proctor.scorer.channels.plugin_calls import gap_of, limitations_of_plugin
from proctor.scorer.channels.registry import CHANNELS, plugins_of
from proctor.scorer.logged import limitations_of_logs
from proctor.scorer.page.phrases import count, counted
from proctor.scorer.report.cut_short import cut_short

_NOT_PROVEN: Final = {
    Weights.DECLARED: "Which weights answered is declared and not proven: the digest stands in the configuration of "
    "the endpoint, or in what the endpoint says of itself, and no backend of Proctor computed it from the files. That "
    "it is the pinned version is the operator's word.",
    Weights.UNKNOWN: "The endpoint did not prove which weights it serves. That it is the pinned version is the "
    "operator's word.",
}


def _always(num_variants: int, control: CleanControl | ControlItems | None) -> list[Limitation]:
    return [
        Limitation(
            code="clean_under_this_policy",
            text="Approved, or clean, means clean under this policy: no effect larger than the suite's limits was "
            "found. It is not proof that the model never saw the benchmark.",
        ),
        _harder_rewording(control),
        Limitation(
            code="rewordings_known_too",
            text="A model that has also memorised the rewordings, or that learned the facts behind the questions "
            "from leaked text, answers both wordings alike. This comparison does not find it.",
        ),
        Limitation(
            code="silent_memory",
            text="A memorised item that the model would have answered rightly anyway leaves no trace. Score "
            "inflation counts only the answers that memory changed, so it is a lower bound of the share of items "
            "that leaked.",
        ),
        Limitation(
            code="rank_is_not_proof",
            text="The ranking says where to look first. No single item is proven memorised: with "
            f"{counted(num_variants, 'rewording', 'rewordings')} an item's own p-value cannot fall below "
            f"1/{num_variants + 1}, and a lucky guess looks the same.",
        ),
        Limitation(
            code="this_protocol_only",
            text="The result holds for this model version, benchmark version, prompt, decoding and metric. Compare "
            "it only with results that have the same protocol digest.",
        ),
        Limitation(
            code="not_how_or_why",
            text="The audit says nothing of how or when an item was seen, nor whether anyone meant it.",
        ),
    ]


def _harder_rewording(control: CleanControl | ControlItems | None) -> Limitation:
    code = "harder_rewording"
    if control is None:
        return Limitation(
            code=code,
            text="A rewording that is simply harder looks like memory. Without control items, which no model can "
            "have seen, accuracy alone cannot tell the two apart.",
        )
    if isinstance(control, ControlItems):
        return Limitation(
            code=code,
            text="A rewording that is simply harder looks like memory. The two are told apart by what rewording cost "
            "on control items, which are taken to be clean by the suite's word: if they have leaked as well, or lose "
            "more by rewording than the benchmark would without memory, memory is taken for difficulty.",
        )
    return Limitation(
        code=code,
        text="A rewording that is simply harder looks like memory. The two are told apart by what rewording cost "
        f"{control.model_id[:80]!r}, which a person declared clean: if that has seen the benchmark, or loses more by "
        "rewording than this model would without memory, memory is taken for difficulty.",
    )


def limitations(
    manifest: AuditManifest,
    evidence: Evidence,
    decision: Decision,
    *,
    n_selected: int,
    n_left_out: int,
    n_unanswered: int,
) -> tuple[Limitation, ...]:
    """The limits of an audit: that an approval rests on wordings alone, before anything else; then what the audit's own
    conditions call for; then what holds for every audit.

    Args:
        manifest: the audit's.
        evidence: what its channels found.
        decision: what the gate made of it.
        n_selected: items that the suite drew from the benchmark.
        n_left_out: those of them that took no part in the perturbation evidence.
        n_unanswered: trials to which no answer came back.
    """
    suite = manifest.suite
    special: list[Limitation] = []

    def add(code: str, text: str) -> None:
        special.append(Limitation(code=code, text=text))

    if caveat := scope_caveat(decision.outcome, decision.scope):
        add("scope_wording", caveat)
    found = evidence.perturbation
    if decision.outcome is DecisionOutcome.BLOCK and found is not None:
        harder = not_on_record(found, suite.scoring, suite.governance)
        special += [harder] if harder is not None else []
    special += limitations_of_logs(manifest.card)
    if manifest.backend != LOG_BACKEND and (said := _NOT_PROVEN.get(manifest.weights_known)) is not None:
        add("weights_not_proven", said)
    unsent = [name for name in DECODING_SETTINGS if manifest.card.decoding_policy.get(name) == UNKNOWN]
    if manifest.backend == "infer":
        add(
            "decoding_not_sent",
            "The endpoint's contract has no place for decoding settings, so it answered under its own; decoding_config "
            "says what was asked for, not what was done.",
        )
    elif unsent and manifest.backend != LOG_BACKEND:
        add(
            "decoding_not_sent",
            f"The backend {manifest.backend} does not say that it puts decoding_config in force. Under which settings "
            "the model answered is not known.",
        )
    for channel in CHANNELS.built_in:
        special += CHANNELS.get(channel).limitations(suite, evidence.result_of(channel))
    for channel in plugins_of(suite):
        special += limitations_of_plugin(channel, suite, evidence.result_of(channel))
    for channel in sorted(evidence.not_audited):
        add(f"{channel}_not_audited", gap_of(channel))
    special += cut_short(evidence, suite)
    if n_left_out:
        add(
            "items_left_out",
            f"{count(n_left_out)} of the {counted(n_selected, 'selected item', 'selected items')} took no part in "
            "the comparison. Nothing is known of them.",
        )
    if n_unanswered:
        add(
            "answers_missing",
            f"{counted(n_unanswered, 'prompt', 'prompts')} got no answer from the endpoint. A missing answer counts "
            "neither as right nor as wrong.",
        )
    if suite.decoding.temperature > 0.0:
        add(
            "answers_drawn_at_random",
            f"Answers were drawn at random (temperature {suite.decoding.temperature:g}), so the same model can "
            "answer otherwise next time. "
            + (
                "Each prompt was asked several times, and the intervals, which are over items, count what that leaves."
                if suite.decoding.replicates > 1
                else "The intervals count that only as far as it shows between items."
            ),
        )
    if manifest.card.task_set.get("content_digest") is None:
        add(
            "benchmark_not_bound",
            "The protocol card holds no digest of the benchmark's file, so it cannot show later which text was asked.",
        )
    for one in exposure_of_dataset(suite.dataset.benchmark_name, suite.dataset.hub_id):
        add("known_exposure", published(one))
    control = None if found is None else found.control_items or found.control
    return (*special, *_always(suite.perturbation.num_variants_per_item, control))
