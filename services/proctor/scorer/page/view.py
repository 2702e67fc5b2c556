"""What the report's page says, worked out from the document: headline, arms, channels, suspects, card rows.

Wording and rounding happen here and in `proctor.scorer.headline`, so the template holds layout alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from proctor.domain import decision
from proctor.domain.channel_results import ChannelEvidence, Figure, HypothesisEvidence, OtherEvidence, Section
from proctor.domain.channels import ALWAYS_REQUIRED
from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import ArmAccuracy, Estimate, Evidence, Verdict
from proctor.domain.scope import MEASURED, NOT_RULED_OUT, TO_COVER_IT, Scope
from proctor.evidence.perturbation.rewording_cost import CODE as REWORDING_COST
from proctor.scorer.channels.registry import CHANNELS
from proctor.scorer.page import phrases
from proctor.scorer.page.phrases import count, counted, percent
from proctor.scorer.page.plots import Interval, Marker, interval_plot, nice_axis, rank_plot
from proctor.scorer.report.document import Report

ARM_NAMES = {"canonical": "Canonical wording", "perturbed": "Reworded"}
_ARM_MARKERS: dict[str, Marker] = {"canonical": "circle", "perturbed": "square"}
_CARD_TITLES = {
    "task_set": "Task set",
    "split": "Split and sample",
    "prompt_template": "Prompt template",
    "decoding_policy": "Decoding policy",
    "metric": "Metric",
    "evaluator_version": "Evaluator version",
    "model_run_config": "Model and run",
    "contamination_policy": "Contamination policy",
    "plugins": "Plug-ins",
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


class ScopeCaveat(NamedTuple):
    """What an approval by wordings does not rule out: in short, and what it rests on, which takes up room."""

    short: str
    measured: str


class ChannelRow(NamedTuple):
    """One line of the channel table."""

    name: str
    compares: str
    null_hypothesis: str
    verdict: Verdict
    word: str
    reasons: tuple[str, ...]
    required: bool


class ShownSection(NamedTuple):
    """A channel's own section, with the name under which the page links to it."""

    anchor: str
    section: Section
    figures: tuple[tuple[str, str], ...] = ()
    """Name and value in words."""


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


def scope_caveat(outcome: DecisionOutcome, scope: Scope) -> ScopeCaveat | None:
    """What an approval by wordings alone says before anything else; None of any other decision."""
    if decision.scope_caveat(outcome, scope) is None:
        return None
    return ScopeCaveat(f"{NOT_RULED_OUT} {TO_COVER_IT}", MEASURED)


def harder_wordings(report: Report) -> str:
    """That nobody knows what rewording costs a clean model, where the report says so of a block; else empty."""
    return next((limit.text for limit in report.limits if limit.code == REWORDING_COST), "")


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
    """Suspicion by rank over the items that have any: the order of the others says nothing."""
    found = report.evidence.perturbation
    ranked = found.suspected if found is not None else ()
    if not ranked:
        return Markup("")
    flagged = sum(item.flagged for item in ranked)
    return rank_plot(
        "ranks",
        title="Suspicion by rank",
        description=f"{counted(len(ranked), 'suspected item', 'suspected items')}, {count(flagged)} of them flagged",
        suspicions=[item.suspicion for item in ranked],
        n_flagged=flagged if all(item.flagged for item in ranked[:flagged]) else 0,
        n_detailed=len(report.items),
    )


def channel_rows(report: Report) -> tuple[ChannelRow, ...]:
    """One row a channel, those that every audit needs first. A channel without a result was not audited."""
    return tuple(
        _channel_row(name, report.evidence, required=name in report.suite.required_channels)
        for name in _channel_names(report.evidence)
    )


def _channel_names(evidence: Evidence) -> list[str]:
    """The built-in channels, then what else the document speaks of."""
    built_in = sorted(CHANNELS.built_in, key=lambda name: name not in ALWAYS_REQUIRED)
    return [*built_in, *sorted({*evidence.others, *evidence.not_audited} - set(built_in))]


def _channel_row(name: str, evidence: Evidence, *, required: bool) -> ChannelRow:
    # A plug-in's channel is not asked for anything: it need not be installed where a page is made.
    channel = CHANNELS.get(name) if name in CHANNELS.built_in else None
    result, verdict = evidence.result_of(name), evidence.verdict_of(name)
    null, reasons = "–", tuple[str, ...]()
    if result is not None:
        null, reasons = _null_hypothesis(name, result), result.reasons
    else:
        reasons = (evidence.not_audited.get(name) or (channel.gap if channel is not None else "It did not run."),)
    compares, word = "", phrases.VERDICT_WORDS[verdict]
    if channel is not None:
        compares, word = channel.compares, channel.word(verdict)
    elif isinstance(result, OtherEvidence):
        compares, word = result.compares, result.wording
    return ChannelRow(
        name=name,
        compares=cut(compares, MAX_SENTENCE_CHARACTERS),
        null_hypothesis=cut(null, MAX_SENTENCE_CHARACTERS),
        verdict=verdict,
        word=word,
        reasons=tuple(cut(phrases.sentence(reason), MAX_SENTENCE_CHARACTERS) for reason in reasons),
        required=required,
    )


def _null_hypothesis(name: str, result: ChannelEvidence) -> str:
    return result.null_hypothesis if isinstance(result, HypothesisEvidence) else CHANNELS.get(name).null_hypothesis


def channel_sections(report: Report) -> tuple[ShownSection, ...]:
    """The sections of the channels that have one, in the order of their rows."""
    found = []
    for name in _channel_names(report.evidence):
        result = report.evidence.result_of(name)
        if isinstance(result, OtherEvidence):
            found.append(_section_of_plugin(name, result))
        elif result is not None:
            for number, section in enumerate(CHANNELS.get(name).sections(result), start=1):
                found.append(ShownSection(name if number == 1 else f"{name}-{number}", section))
    return tuple(section for section in found if section is not None)


def _section_of_plugin(name: str, result: OtherEvidence) -> ShownSection | None:
    if result.section is None and not result.figures:
        return None
    section = result.section or Section(
        title=f"The {cut(name, 80)} channel", introduction=result.compares, label="", columns=(), rows=()
    )
    figures = tuple((cut(figure, 80), _figure(found)) for figure, found in result.figures.items())
    # Under a name of its own, for the page has anchors of its own.
    return ShownSection(f"channel-{name}", section, figures)


def _figure(figure: Figure) -> str:
    estimate, unit = figure.value, f" {figure.unit}" if figure.unit else ""
    if not isinstance(estimate, Estimate):
        return f"{_number(estimate)}{unit}"
    return f"{_number(estimate.value)}{unit} ({phrases.level(estimate)} interval {_bounds(estimate)})"


def _bounds(estimate: Estimate) -> str:
    low, high = ("unbounded" if bound is None else _number(bound) for bound in (estimate.low, estimate.high))
    return f"{low} to {high}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}".replace("-", phrases.MINUS)


def card_groups(report: Report) -> tuple[CardGroup, ...]:
    """The protocol card field by field, every setting on a row of its own."""
    plain = report.card.plain()
    # Not a setting, and in no digest: what was found of the subject when it was asked.
    plain["model_run_config"] = {**plain["model_run_config"], "weights": report.subject.weights_known.words}
    return tuple(
        CardGroup(title, tuple(_flat(plain[field]))) for field, title in _CARD_TITLES.items() if field in plain
    )


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
