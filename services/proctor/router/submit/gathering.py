"""A suite with the content of the files that it names, read before anything of it is put on record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from proctor.domain.card import ContentDigests
from proctor.domain.corpus_search import CorpusPlan
from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import WITHOUT_MARGIN
from proctor.domain.hub import NO_HUB, HubAccess
from proctor.domain.item import Item
from proctor.domain.log_origin import LogOrigin
from proctor.domain.manifest import ItemSet, QuestionSet
from proctor.domain.panel import Panel
from proctor.domain.suite import Suite
from proctor.evidence.sequential.item_order import in_clusters
from proctor.formats.clusters import related_notes
from proctor.formats.control import load_control
from proctor.formats.corpora import plan_search
from proctor.formats.fresh import load_fresh
from proctor.formats.gate_calibration import parse_gate_calibration
from proctor.formats.items import load_items, select_items
from proctor.formats.named_file import read_named_file
from proctor.formats.panel import panel_notes, parse_panel
from proctor.formats.suites import calibration_path, content_digests, panel_path
from proctor.grading import EXECUTION, resolve_extractor
from proctor.router.submit.allowed import hold_private
from proctor.router.submit.endpoints import asked_endpoints
from proctor.router.submit.privacy import private_by_content
from proctor.router.submit.prompt_sizes import check_sizes
from proctor.router.submit.solvers import solver_endpoints
from proctor.router.transmission import check_options
from proctor.runtime.settings import CodeExecution, Settings


class AuditData(NamedTuple):
    """A suite with the content of the files that it names."""

    suite: Suite
    items: ItemSet
    rewordings: bytes | None
    calibration: bytes | None
    contents: ContentDigests
    questions: QuestionSet | None
    """Of the whole benchmark; None where the gate keeps no margin to its other items."""
    notes: tuple[str, ...]
    """What a person should know of the data, e.g. that the file holds fewer items than the sample asks for."""
    fresh: ItemSet | None = None
    """The fresh items; None where the suite asks none."""
    panel: Panel | None = None
    """What reference models answered to both; None where the suite names none."""
    corpora: CorpusPlan | None = None
    """What training data are searched; None where the suite names none."""
    control: ItemSet | None = None
    """The control items; None where the suite asks none."""
    log: LogOrigin | None = None
    """Where the answers come from, where they were taken from logs and nobody is asked."""


def gather(
    suite: Suite,
    base: Path,
    bundle: Path,
    benchmarks: Path | None = None,
    *,
    hub: HubAccess = NO_HUB,
    corpora: Path | None = None,
) -> AuditData:
    """Read the files that a suite names.

    Args:
        suite: the suite.
        base: the folder that its relative paths start from.
        bundle: the reference bundle, for the benchmark that Proctor ships.
        benchmarks: the operator's folder of benchmarks, for suites that name no file.
        hub: what the operator lets suites have of the hub; by default nothing.
        corpora: the operator's folder of training data, from whose files alone may be searched; None where the suite is
            the operator's own, whose paths are relative to `base`.

    Raises:
        BadInputError: when one cannot be read or used, the suite's protocol cannot ask its items, or its prompts would
            be too large.
    """
    loaded = load_items(suite.dataset, base, bundle, benchmarks, hub=hub)
    rewordings = _named_file("perturbation_config.rewordings_path", suite.perturbation.rewordings_path, base)
    calibration = _named_file("perturbation_config.calibration_path", calibration_path(suite), base)
    min_margin, notes = suite.perturbation.min_margin, loaded.notes(suite.dataset)
    if calibration is not None:
        learned = parse_gate_calibration(calibration, str(base / str(calibration_path(suite))))
        min_margin = learned.min_margin
        if min_margin is None:
            notes += (f"{calibration_path(suite)} {WITHOUT_MARGIN}",)
    items = select_items(loaded.items, suite.dataset)
    if suite.scoring.design.sequential:
        items = in_clusters(items, suite.dataset.sampling_seed)
    if suite.protocol.asks_routers:
        check_options(items)
    fresh = load_fresh(suite, base, loaded.items)
    panel, noted = None, tuple[str, ...]()
    if fresh is not None:
        _hold_alike("fresh_config", fresh.items, items, suite.metric.extractor)
        panel, noted = _panel(suite, base, items, fresh.items)
        notes += (*fresh.notes, *noted)
    if resolve_extractor(suite.metric.extractor, items).name == EXECUTION and suite.perturbation.answering_check:
        raise BadInputError(
            "perturbation_config.answering_check compares answers with each other, and answers that are code are "
            "judged by running them; leave it out, or audit items of another kind"
        )
    control = load_control(suite, base, loaded.items, () if fresh is None else fresh.items)
    if control is not None:
        _hold_alike("control_config", control.items, items, suite.metric.extractor)
        notes += control.notes
    check_sizes(items, suite, () if fresh is None else fresh.items, () if control is None else control.items)
    searched = None
    if suite.exposure is not None:
        searched = plan_search(suite.exposure, corpora or base, operators=corpora is not None)
    return AuditData(
        suite=suite,
        items=ItemSet(items=items),
        rewordings=rewordings,
        calibration=calibration,
        contents=content_digests(suite, base, bundle, benchmarks, corpora=searched),
        questions=None if min_margin is None else question_set(loaded.items),
        notes=(*notes, *related_notes(items, suite.dataset)),
        fresh=None if fresh is None else ItemSet(items=fresh.items),
        panel=panel,
        corpora=searched,
        control=None if control is None else ItemSet(items=control.items),
    )


def question_set(items: Sequence[Item]) -> QuestionSet:
    """What the items of a benchmark ask."""
    return QuestionSet(questions=tuple(sorted({item.question for item in items})))


def _named_file(field: str, name: str | None, base: Path) -> bytes | None:
    return None if name is None else read_named_file(base / name, field)


def _hold_alike(field: str, beside: Sequence[Item], items: Sequence[Item], extractor: str) -> None:
    """Raises BadInputError where answers to these items would be read in another way than those to the benchmark."""
    own, other = resolve_extractor(extractor, beside), resolve_extractor(extractor, items)
    if own.name != other.name:
        kind = field.removesuffix("_config")
        raise BadInputError(
            f"{field}.path: answers to the {kind} items would be read as {own.name}, and those to the benchmark as "
            f"{other.name}, so that their accuracies could not be compared; make them of the same kind, or name one in "
            "metric_config.extractor"
        )


def _panel(
    suite: Suite, base: Path, items: Sequence[Item], fresh: Sequence[Item]
) -> tuple[Panel | None, tuple[str, ...]]:
    """What reference models answered, with what a person should know of it."""
    name = panel_path(suite)
    data = _named_file("fresh_config.panel_path", name, base)
    if data is None:
        return None, ()
    source = str(base / str(name))
    panel = parse_panel(data, source)
    ids = ({item.item_id for item in items}, {item.item_id for item in fresh})
    return panel, panel_notes(panel, *ids, source)


def hold_content_private(data: AuditData, settings: Settings) -> None:
    """Refuse to send items that the operator marks as private, whatever they are called, where they may not go.

    Raises:
        BadInputError: when an endpoint of the suite is not approved for such.
    """
    why = private_by_content(data.contents.dataset, data.items.items, settings)
    if why is None and data.fresh is not None:
        why = private_by_content(data.contents.fresh, data.fresh.items, settings)
    if why is None and data.control is not None:
        why = private_by_content(data.contents.control, data.control.items, settings)
    asked = asked_endpoints(data.suite, settings) if data.log is None else solver_endpoints(data.suite, settings)
    for field, found in asked.items():
        hold_private(why, found, field)


def hold_unrun_code(data: AuditData, settings: Settings) -> None:
    """Refuse an audit whose answers are code where none is run, before a model is asked for it.

    Raises:
        BadInputError: with the setting.
    """
    if settings.code_execution is CodeExecution.OFF and (
        resolve_extractor(data.suite.metric.extractor, data.items.items).name == EXECUTION
    ):
        raise BadInputError(
            "metric_config.extractor: the answers are code, which is graded by running it, and that is switched off "
            "here; the operator switches it on by PROCTOR_CODE_EXECUTION=sandbox (docs/security.md)"
        )
