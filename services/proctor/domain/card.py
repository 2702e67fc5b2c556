"""The protocol card: every setting that produced a score, and the two digests over it.

The first eight fields are those of the protocol tuple (task set, split, prompt template, decoding policy, metric,
evaluator version, model and run configuration, contamination policy).
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from proctor import __version__
from proctor.domain.asked import SERVED_NAME, Asked, AskedModels
from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.exposure import exposure_form
from proctor.domain.log_origin import CHAT, DECODING_SETTINGS, UNKNOWN, LogOrigin
from proctor.domain.suite import Suite
from proctor.domain.suite_plugins import BACKEND, plugins_of
from proctor.domain.versions import added


def evaluator_version() -> str:
    """The evaluator's name and version as they stand on a protocol card."""
    return f"proctor {__version__}"


class ContentDigests(Frozen):
    """Digests of the files that a suite names, so that a card binds content and not a path."""

    dataset: str | None = None
    """Digest of the benchmark's file; None where the suite names no file that could be read."""
    rewordings: str | None = None
    calibration: str | None = None
    """Digest of the calibration of the gate; None where the gate is fixed."""
    fresh: str | None = added(None, since=3)
    """Digest of the file of fresh items; None where the suite names none that could be read."""
    panel: str | None = added(None, since=3)
    """Digest of the file of what reference models answered; None where the suite names none that could be read."""
    corpora: str | None = added(None, since=4)
    """Digest of the files of training data; None where the suite names none, or some that could not be read."""

    control: str | None = added(None, since=4)
    """Digest of the file of control items; None where the suite names none that could be read."""

    def of_benchmark(self) -> Self:
        """Those of the benchmark and its rewordings alone."""
        beside = {"fresh": None, "panel": None, "corpora": None, "control": None}
        return self.model_copy(update=beside)


class ProtocolCard(Frozen):
    """Every setting that produced a score."""

    task_set: dict[str, Any]
    split: dict[str, Any]
    prompt_template: dict[str, Any]
    decoding_policy: dict[str, Any]
    metric: dict[str, Any]
    evaluator_version: str
    model_run_config: dict[str, Any]
    contamination_policy: dict[str, Any]
    # Not written where there is none, so that cards keep the fingerprints of the time before it.
    plugins: dict[str, str] = Field(default={}, exclude_if=lambda plugins: not plugins)
    """Parts that other distributions brought → distribution and version."""

    @property
    def fingerprint(self) -> str:
        """Digest of the whole card."""
        return json_digest(self.plain())

    @property
    def protocol_digest(self) -> str:
        """Digest of the card without its subject (model and run): equal digests make two results comparable."""
        card = {key: value for key, value in self.plain().items() if key not in ("model_run_config", "plugins")}
        plugins = self.protocol_plugins
        return json_digest(card | ({"plugins": plugins} if plugins else {}))

    @property
    def protocol_plugins(self) -> dict[str, str]:
        """The plug-ins' parts that belong to the protocol."""
        # Which backend speaks to the model is part of the run, whoever brings it.
        return {part: origin for part, origin in self.plugins.items() if not part.startswith(BACKEND)}


def protocol_card(
    suite: Suite,
    contents: ContentDigests,
    *,
    evaluator_version: str,
    log: LogOrigin | None = None,
    asked: AskedModels | None = None,
) -> ProtocolCard:
    """Lay out a suite as a protocol card.

    Every field of the suite but the budget is on the card, so any other changed field changes the fingerprint. Paths,
    governance and privacy, which take no part in the score, stand under the run, so they leave `protocol_digest` alone.
    A raised budget lets the same audit go on. Where answers came from logs, what those do not record of the asking is
    unknown; where they record all of it, the `protocol_digest` is that of an audit that asked.

    Args:
        suite: the suite.
        contents: of the files that it names.
        evaluator_version: whose card it is.
        log: where the answers came from, where nobody was asked.
        asked: what of the settings is in force at the suite's endpoints; what is not stands there as unknown. None
            where it is not known, so that all of it is taken to be.
    """
    plain, asked = suite.plain(), asked or AskedModels()
    if SERVED_NAME in asked.audited.not_sent:
        plain["model_config"][SERVED_NAME] = UNKNOWN
    dataset, perturbation, scoring = plain["dataset_config"], plain["perturbation_config"], plain["scoring_config"]
    governance = plain["governance"]
    source_path, rewordings_path = dataset.pop("path"), perturbation.pop("rewordings_path")
    calibration_path = perturbation.pop("calibration_path")
    # Not written where it is false, so that suites keep the fingerprints of the time before it.
    reading = {"strict_relations": True} if perturbation.pop("strict_relations") else {}
    # Not written where it is false, so that suites keep the fingerprints of the time before it.
    privacy = {"dataset_private": True} if dataset.pop("private") else {}
    # Where the rewording model runs takes no part in what it says; which model, and how it is asked, does.
    paraphraser = perturbation["paraphraser"]
    paraphraser_run = _where(paraphraser, asked.paraphraser)
    # The rewordings themselves are bound by their content, those of the library too, whatever made them.
    of_chat = asked.paraphraser.chat(paraphraser["chat_template"])
    paraphraser["chat_template"] = of_chat.pop("chat_template")
    paraphraser_run |= of_chat
    paraphraser["decoding"] = asked.paraphraser.said(paraphraser["decoding"])
    check = perturbation.get("answering_check")
    solvers = check["solvers"] if check is not None else []
    of_solvers = asked.solvers or (Asked(),) * len(solvers)
    solvers_run = [_where(solver, of) for solver, of in zip(solvers, of_solvers, strict=True)]
    for solver, of in zip(solvers, of_solvers, strict=True):
        solver |= of.chat(solver["chat_template"])
        # One decoding for all of them: in force where it is so for each.
        check["decoding"] = of.said(check["decoding"])
    protocol = plain["protocol_config"]
    router = protocol["router"]
    router_run = _where(router, asked.router)
    router |= asked.router.chat(router["chat_template"])
    router["decoding"] = asked.router.said(router["decoding"])
    # Not written where there is none, so that suites keep the fingerprints of the time before it.
    fresh_run: dict[str, Any] = {}
    fresh_asked: dict[str, Any] = {}
    if suite.fresh is not None:
        section = plain["fresh_config"]
        fresh_run = {"fresh_path": section.pop("path"), "panel_path": section.pop("panel_path")}
        digests = {"content_digest": contents.fresh, "panel_digest": contents.panel}
        fresh_asked = {"fresh": {**section, **digests}}
    searched_run: dict[str, Any] = {}
    searched: dict[str, Any] = {}
    if suite.exposure is not None:
        section = plain["exposure_config"]
        stages = section.pop("corpora")
        searched_run = {"corpora": stages}
        form = exposure_form(suite.exposure.without_markup)
        searched = {
            "exposure": {**section, "stages": sorted(stages), "normalisation": form, "corpora_digest": contents.corpora}
        }
    # Nor this.
    control_run: dict[str, Any] = {}
    control_asked: dict[str, Any] = {}
    if suite.control is not None:
        section = plain["control_config"]
        control_run = {"control_path": section.pop("path")}
        control_asked = {"control": {**section, "content_digest": contents.control}}
    limits = {
        key: governance.pop(key) for key in ("review_required_above_cs", "block_deployment_above_contaminated_pct")
    }
    # Not written where it is the default, so that suites keep the fingerprints of the time before it.
    profile = {"profile": governance.pop("profile")} if "profile" in governance else {}
    # Not written where the model was asked, so that cards keep the fingerprints of the time before it.
    answers = {"answers_from_logs": log.on_card()} if log is not None else {}
    unrecorded = {CHAT, *DECODING_SETTINGS} - set(log.settings) if log is not None else set[str]()
    prompt, decoding = plain["prompt_config"], asked.audited.said(plain["decoding_config"])
    chat = {"chat_template": UNKNOWN} if CHAT in unrecorded else asked.audited.chat(prompt["chat_template"])
    split = {key: dataset.pop(key) for key in ("dataset_variant", "split", "selection", "sample_size", "sampling_seed")}
    return ProtocolCard(
        task_set={**dataset, "content_digest": contents.dataset},
        split=split,
        prompt_template={**prompt, **chat},
        decoding_policy={name: UNKNOWN if name in unrecorded else value for name, value in decoding.items()},
        metric=plain["metric_config"],
        evaluator_version=evaluator_version,
        model_run_config={
            "model": plain["model_config"],
            "run": {
                "audit_suite_id": suite.audit_suite_id,
                "schema": suite.schema_uri,
                "dataset_path": source_path,
                **privacy,
                "rewordings_path": rewordings_path,
                "calibration_path": calibration_path,
                **fresh_run,
                **searched_run,
                **control_run,
                "paraphraser": paraphraser_run,
                "router": router_run,
                **({"solvers": solvers_run} if solvers_run else {}),
                "governance": governance,
                **answers,
            },
        },
        contamination_policy={
            "perturbation": {
                **perturbation,
                **reading,
                "rewordings_digest": contents.rewordings,
                "calibration_digest": contents.calibration,
            },
            "protocol": protocol,
            "scoring": scoring,
            "limits": limits,
            **fresh_asked,
            **searched,
            **control_asked,
            **profile,
        },
        plugins=plugins_of(suite),
    )


def _where(section: dict[str, Any], asked: Asked) -> dict[str, Any]:
    """Where a model beside the audited one is asked, taken out of its section."""
    return asked.said({key: section.pop(key) for key in ("endpoint", "backend", SERVED_NAME)})
