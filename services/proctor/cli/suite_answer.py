"""What `proctor suite validate` answers about a valid suite: what it is, what is not bound yet, what does nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor.domain.asked import AskedModels
from proctor.domain.card import ContentDigests, evaluator_version, protocol_card
from proctor.domain.certain_review import certain_review
from proctor.domain.channels import REQUIRED_BY_PROFILE
from proctor.domain.errors import BadInputError
from proctor.domain.notify.recipients import named_by
from proctor.domain.problems import quoted
from proctor.domain.profiles import PROFILES, STANDARD
from proctor.domain.strict_json import read_document
from proctor.domain.suite import DatasetSection, GovernanceSection, Suite
from proctor.formats.benchmark_files import PACKAGED_BENCHMARK
from proctor.formats.suites import calibration_path, content_digests, panel_path
from proctor.router.submit.asked import asked_models
from proctor.runtime.settings import Settings

_SHA256_CHARACTERS = len("sha256:") + 64
_SHOWN_CHARACTERS = len("sha256:") + 12


class CardKnown(NamedTuple):
    """What is known of a suite's protocol card before an audit."""

    fingerprint: str | None
    """None where an audit's card would differ from the one that can be made now."""
    reasons: list[str]
    """Why there is none."""


def described(suite: Suite) -> dict[str, str]:
    """What a suite is, in words under a label for each part."""
    model, dataset, rewording = suite.model, suite.dataset, suite.perturbation
    weights = model.model_version
    shown = weights if len(weights) <= _SHOWN_CHARACTERS else f"{weights[:_SHOWN_CHARACTERS]}…"
    items = "the first" if dataset.selection == "first" else "at most"
    parts = {
        "model": f"{model.model_id} at {model.endpoint}, weights {shown}",
        "benchmark": f"{dataset.benchmark_name} ({dataset.dataset_variant}), version {dataset.dataset_version}, "
        f"{items} {dataset.sample_size:,} items",
        "rewordings": f"{rewording.num_variants_per_item} of each item, by {rewording.perturbation_strategy}",
    }
    if suite.protocol.asks_routers:
        parts["routers"] = f"1 to {suite.protocol.max_routers} noisy ones, beside clean ones"
    return parts


def profile_described(suite: Suite, left_out: Mapping[str, Any]) -> dict[str, str]:
    """What a suite's profile asks for, in words under a label; nothing of the standard one.

    Args:
        suite: the suite.
        left_out: the fields that its file does not set itself, by path.
    """
    name = suite.governance.profile
    if name == STANDARD:
        return {}
    said = [f"requires {channel}" for channel in REQUIRED_BY_PROFILE.get(name, ())]
    for section, field in PROFILES[name].sets:
        value, is_own = left_out.get(f"{section}.{field}"), f"{section}.{field}" not in left_out
        said.append(f"{field} is the suite's own" if is_own else f"sets {field} to {value:g}")
    return {"profile": f"{name}: {', '.join(said)}"}


def card_known(suite: Suite, folder: Path) -> CardKnown:
    """The fingerprint of a suite's card, where everything that it binds can be read.

    Args:
        suite: the suite.
        folder: of its file, which the paths in it are relative to.
    """
    try:
        settings = Settings.from_environment()
    except BadInputError as error:
        return CardKnown(None, [str(error)])
    contents = content_digests(suite, folder, settings.bundle, settings.benchmarks)
    unbound = card_warnings(suite, contents)
    if unbound:
        return CardKnown(None, unbound)
    asked, _ = asked_or_why(suite, settings)
    card = protocol_card(suite, contents, evaluator_version=evaluator_version(), asked=asked)
    return CardKnown(card.fingerprint, [])


def asked_or_why(suite: Suite, settings: Settings) -> tuple[AskedModels | None, str | None]:
    """What of a suite's settings its endpoints put in force, or why that is not known here."""
    try:
        return asked_models(suite, settings), None
    except BadInputError as error:
        return None, f"{error}; the card says here that every setting is in force"


def card_warnings(suite: Suite, contents: ContentDigests) -> list[str]:
    """What the card of a suite does not bind by content, and why."""
    warnings = []
    dataset, rewordings = suite.dataset, suite.perturbation.rewordings_path
    if len(suite.model.model_version) < _SHA256_CHARACTERS:
        warnings.append(
            f"model_config.model_version {quoted(suite.model.model_version)} is abbreviated; the audit resolves it to "
            "the full digest, and its fingerprint differs from this one"
        )
    if contents.dataset is None and dataset.hub_id is None:
        cause = f"dataset_config.path {quoted(dataset.path)} cannot be read" if dataset.path else _no_items(dataset)
        warnings.append(f"{cause}, so the card holds no digest of the items")
    if rewordings is not None and contents.rewordings is None:
        warnings.append(
            f"perturbation_config.rewordings_path {quoted(rewordings)} cannot be read, so the card has no digest of it"
        )
    calibration = calibration_path(suite)
    if calibration is not None and contents.calibration is None:
        warnings.append(
            f"perturbation_config.calibration_path {quoted(calibration)} cannot be read, so the card has no digest of "
            "it"
        )
    if suite.fresh is not None and contents.fresh is None:
        warnings.append(f"fresh_config.path {quoted(suite.fresh.path)} cannot be read, so the card has no digest of it")
    if suite.control is not None and contents.control is None:
        warnings.append(
            f"control_config.path {quoted(suite.control.path)} cannot be read, so the card has no digest of it"
        )
    panel = panel_path(suite)
    if panel is not None and contents.panel is None:
        warnings.append(f"fresh_config.panel_path {quoted(panel)} cannot be read, so the card has no digest of it")
    if suite.exposure is not None and contents.corpora is None:
        warnings.append("exposure_config.corpora names files that cannot be read, so the card has no digest of them")
    return warnings


def _no_items(dataset: DatasetSection) -> str:
    if dataset.benchmark_name == PACKAGED_BENCHMARK:
        return f"the files of {PACKAGED_BENCHMARK} are not in the bundle"
    return "dataset_config has neither path nor hub_id, and no file of that name is among the operator's benchmarks"


def less_than_expected(suite: Suite) -> list[str]:
    """Where a field that was set does nothing, or other than its name says: a note for each."""
    governance, unset = suite.governance, GovernanceSection()
    notes = [] if (why := certain_review(suite)) is None else [why]
    notes += _unheard(governance)
    if governance.result_retention_days != unset.result_retention_days:
        notes.append(
            f"governance.result_retention_days {governance.result_retention_days}: a router removes this audit's "
            "prompts and completions so long after its decision (after 8 days at the earliest, and later where the "
            "operator's PROCTOR_RETENTION_DAYS is more); its report and its record are kept"
        )
    return notes


def _unheard(governance: GovernanceSection) -> list[str]:
    """Whom a suite names in vain, by the settings that a command here would have."""
    if not governance.notify_on_failure:
        return []
    try:
        notify = Settings.from_environment().notify
    except BadInputError:
        # Said once already, of the fingerprint.
        return []
    if not notify:
        return [
            "governance.notify_on_failure: nothing is configured here (PROCTOR_NOTIFY), so nobody is notified by "
            "what runs here; the exit code and the registry's tags say how an audit ended"
        ]
    unheard = named_by(notify.said, governance).unheard
    return [f"governance.notify_on_failure: {quoted(one.name)} is not told: {one.why}" for one in unheard]


def defaults_left_out(suite: Suite, written: bytes) -> dict[str, Any]:
    """The fields that a suite's file does not set itself, by path, with the defaults that stand for them."""
    return dict(_left_out(suite.plain(), read_document(written).tree, ""))


def _left_out(plain: Mapping[str, Any], tree: Mapping[str, Any], section: str) -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        if isinstance(value, dict):
            yield from _left_out(value, tree.get(name, {}), f"{section}{name}.")
        elif name not in tree:
            yield section + name, value
