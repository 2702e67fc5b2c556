"""What the report's page says, worked out from the document: headline, arms, channels, suspects, card rows.

Wording and rounding happen here and in `proctor.scorer.headline`, so the template holds layout alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import ArmAccuracy, Verdict
from proctor.scorer.page import phrases
from proctor.scorer.page.phrases import count, counted, percent
from proctor.scorer.page.plots import Interval, Marker, interval_plot, nice_axis, rank_plot
from proctor.scorer.report.document import Report
from proctor.scorer.report.limitations import CHANNEL_GAPS

ARM_NAMES = {"canonical": "Canonical wording", "perturbed": "Reworded"}
_ARM_MARKERS: dict[str, Marker] = {"canonical": "circle", "perturbed": "square"}
_CHANNELS = {
    "perturbation": "Accuracy on the canonical wording against accuracy on rewordings. Suspicious when the canonical "
    "wording is answered better.",
    "protocol": "Truncated, empty, unreadable and failed answers, arm against arm. Says whether the other channels "
    "can be trusted; never evidence of contamination itself.",
    "noise": "Answers from intact input against answers from degraded input. Suspicious when degraded input is "
    "answered better.",
    "exposure": "Items against training corpora. Suspicious when their text is found there.",
    "fresh": "The benchmark against newly written items of the same kind. Suspicious when the benchmark is answered "
    "better.",
}
_PROTOCOL_NULL = "The arms do not differ in how often answers are truncated, empty, unreadable or missing."
_CARD_TITLES = {
    "task_set": "Task set",
    "split": "Split and sample",
    "prompt_template": "Prompt template",
    "decoding_policy": "Decoding policy",
    "metric": "Metric",
    "evaluator_version": "Evaluator version",
    "model_run_config": "Model and run",
    "contamination_policy": "Contamination policy",
}
_MAX_CARD_VALUE_CHARACTERS = 600
MAX_SENTENCE_CHARACTERS = 600


class Headline(NamedTuple):
    """The decision in a word, and what follows from it."""

    word: str
    meaning: str


HEADLINES = {
    DecisionOutcome.APPROVE: Headline("Approved", "The gate lets this model version be promoted on this score."),
    DecisionOutcome.REVIEW: Headline("Needs review", "A person has to decide before this model version is promoted."),
    DecisionOutcome.BLOCK: Headline("Blocked", "This model version must not be promoted on this score."),
}


class ChannelRow(NamedTuple):
    """One line of the channel table."""

    name: str
    compares: str
    null_hypothesis: str
    verdict: Verdict
    word: str
    reasons: tuple[str, ...]
    required: bool


class CardGroup(NamedTuple):
    """One field of the protocol card with its settings by dotted name."""

    title: str
    rows: tuple[tuple[str, str], ...]


def cut(text: str, max_characters: int) -> str:
    """Cap a line of text, with a mark that says how much is missing."""
    if len(text) <= max_characters:
        return text
    return f"{text[:max_characters]} […{count(len(text) - max_characters)} more characters]"


def why(report: Report) -> str:
    """The deciding reason in one sentence."""
    reasons = report.decision.reasons
    if not reasons:
        return "The decision came without a reason."
    return cut(phrases.sentence(reasons[0].text), MAX_SENTENCE_CHARACTERS)


def accuracy_plot(report: Report) -> Markup:
    """Accuracy of each arm with its interval, in percent."""
    arms = report.evidence.protocol.arms
    if not arms:
        return Markup("")
    rows = [
        Interval(
            label=ARM_NAMES.get(arm.arm, arm.arm),
            value=_pct(arm.accuracy.value),
            low=_pct(arm.accuracy.low),
            high=_pct(arm.accuracy.high),
            reading=f"{percent(arm.accuracy.value)}  ({phrases.interval(arm.accuracy, digits=1, scale=100)})",
            marker=_ARM_MARKERS.get(arm.arm, "diamond"),
        )
        for arm in arms
    ]
    return interval_plot(
        "accuracy",
        title="Accuracy by arm",
        description="; ".join(f"{row.label}: {row.reading}" for row in rows),
        rows=rows,
        axis=nice_axis([0.0, 100.0]),
        tick_unit=f"{phrases.NBSP}%",
    )


def _pct(fraction: float | None) -> float | None:
    return None if fraction is None else 100.0 * fraction


def suspicion_plot(report: Report) -> Markup:
    """Suspicion by rank over all audited items."""
    found = report.evidence.perturbation
    if found is None or not found.items:
        return Markup("")
    flagged = sum(item.flagged for item in found.items)
    return rank_plot(
        "ranks",
        title="Suspicion by rank",
        description=f"{counted(len(found.items), 'item', 'items')}, {count(flagged)} of them flagged",
        suspicions=[item.suspicion for item in found.items],
        n_flagged=flagged if all(item.flagged for item in found.items[:flagged]) else 0,
        n_detailed=len(report.items),
    )


def channel_rows(report: Report) -> tuple[ChannelRow, ...]:
    """One row a channel, the ones that ran first. A channel without a result was not audited."""
    evidence, required = report.evidence, report.suite.scoring.required_channels
    names = [*_CHANNELS, *sorted(set(evidence.not_audited) - set(_CHANNELS))]
    rows = []
    for name in names:
        verdict = evidence.verdict_of(name) if name in _CHANNELS else Verdict.NOT_AUDITED
        null, reasons = "–", tuple[str, ...]()
        if name == "perturbation" and evidence.perturbation is not None:
            null, reasons = evidence.perturbation.null_hypothesis, evidence.perturbation.reasons
        elif name == "noise" and evidence.noise is not None:
            null, reasons = evidence.noise.null_hypothesis, evidence.noise.reasons
        elif name == "protocol":
            null, reasons = _PROTOCOL_NULL, evidence.protocol.reasons
        else:
            reasons = (evidence.not_audited.get(name) or CHANNEL_GAPS.get(name, "It did not run."),)
        rows.append(
            ChannelRow(
                name=name,
                compares=_CHANNELS.get(name, ""),
                null_hypothesis=cut(null, MAX_SENTENCE_CHARACTERS),
                verdict=verdict,
                word="Clean" if (name, verdict) == ("protocol", Verdict.CLEAN) else phrases.VERDICT_WORDS[verdict],
                reasons=tuple(cut(phrases.sentence(reason), MAX_SENTENCE_CHARACTERS) for reason in reasons),
                required=name in required,
            )
        )
    return tuple(rows)


def card_groups(report: Report) -> tuple[CardGroup, ...]:
    """The protocol card field by field, every setting on a row of its own."""
    return tuple(CardGroup(title, tuple(_flat(report.card.plain()[field]))) for field, title in _CARD_TITLES.items())


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in sorted(value.items()):
            yield from _flat(inner, f"{prefix}.{key}" if prefix else str(key))
        return
    yield prefix, cut(_setting(value), _MAX_CARD_VALUE_CHARACTERS)


def _setting(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, str):
        return value or "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        # As the canonical document writes it: 5, not 5.0.
        return str(int(value))
    if isinstance(value, (list, tuple, dict)) and not value:
        return "none"
    if isinstance(value, (list, tuple)) and all(isinstance(inner, str) for inner in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def arm_rows(report: Report) -> tuple[tuple[str, ArmAccuracy], ...]:
    """Arms with their plain names."""
    return tuple((ARM_NAMES.get(arm.arm, arm.arm), arm) for arm in report.evidence.protocol.arms)


def flagged_ids(report: Report) -> tuple[str, ...]:
    """Ids of all flagged items, most suspected first."""
    found = report.evidence.perturbation
    return tuple(item.item_id for item in found.items if item.flagged) if found is not None else ()
