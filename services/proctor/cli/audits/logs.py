"""Logs read and held against a suite, ready to be audited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from proctor.cli.terminal import say
from proctor.cli.variants.opening import open_suite, records_of
from proctor.cli.variants.planned import hold_direct, planned_trials
from proctor.domain.errors import BadInputError
from proctor.domain.run_log import RunLog
from proctor.domain.trial import Trial
from proctor.formats.logs.lm_eval_results import model_of_results
from proctor.formats.logs.log_file import MAX_BYTES
from proctor.formats.logs.reading import read_answers
from proctor.formats.rows import file_digest, unreadable
from proctor.perturbation.library.store import VariantLibrary
from proctor.router.submit.gathering import AuditData, gather
from proctor.router.submit.log_keeping import keep_answers
from proctor.router.submit.logged import Matched, match_logs
from proctor.router.submit.terms import terms_of
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.settings import Settings
from proctor.studies.unusable_parts import hold_usable

#: Logs of one run, and bytes of all of them: they are in memory together.
_MAX_LOGS: Final = 64
_MAX_TOTAL_BYTES: Final = 4 * MAX_BYTES


class TakenLogs(NamedTuple):
    """A suite with the answers of logs to all that it asks."""

    data: AuditData
    trials: Sequence[Trial]
    matched: Matched
    files: tuple[str, ...]
    """Digests of the logs."""

    def kept(self, settings: Settings) -> AuditData:
        """What is to be audited, with the answers in the artifact store. Raises StoreError where that is away."""
        origin = keep_answers(open_artifacts(settings), self.trials, self.matched, self.files)
        return self.data._replace(log=origin)


def take_logs(suite_file: Path, log_files: Sequence[Path], settings: Settings, *, known_as: str | None) -> TakenLogs:
    """Read a suite and logs, and hold them against each other. Nothing is stored but variants that were not there.

    Args:
        suite_file: the suite.
        log_files: logs of one run.
        settings: of the stack that is to audit it.
        known_as: what the logs call the model.

    Raises:
        BadInputError: where the suite cannot be audited so, a log cannot be read, or they are not of one another.
    """
    opened = open_suite(suite_file, settings)
    suite = opened.suite
    hold_usable(suite, str(suite_file))
    hold_direct(suite)
    _hold_sizes(log_files)
    logs = _read(log_files)
    with records_of(settings) as records:
        trials = planned_trials(opened, VariantLibrary(records), lambda told: say(told, err=True), None)
    matched = match_logs(trials, logs, suite, known_as=known_as)
    if matched.repeated:
        say(f"note: {matched.repeated:,} rows say again what another row says, and count once", err=True)
    terms_of(suite, settings, from_logs=True)
    data = gather(suite, suite_file.parent, settings.bundle, settings.benchmarks, hub=settings.hub)
    return TakenLogs(data, trials, matched, tuple(map(file_digest, log_files)))


def _read(paths: Sequence[Path]) -> list[RunLog]:
    """The logs, with the model that files of results among them name."""
    models = {path: model_of_results(path) for path in paths}
    named = {model: path for path, model in models.items() if model is not None}
    if len(named) > 1:
        raise BadInputError(f"{' and '.join(map(str, named.values()))} name different models: give those of one run")
    logs = [read_answers(path) for path in paths if models[path] is None]
    if not logs:
        raise BadInputError(
            f"{paths[0]} has results and no answers: give the samples_*.jsonl beside it, which --log_samples writes"
        )
    model = next(iter(named), None)
    return [log if log.model is not None else replace(log, model=model) for log in logs]


def _hold_sizes(paths: Sequence[Path]) -> None:
    """Raises BadInputError for more logs than one run has, or more than fit into memory together."""
    if len(paths) > _MAX_LOGS:
        raise BadInputError(f"{len(paths)} logs are more than the {_MAX_LOGS} that one run may consist of")
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size
        except OSError as error:
            unreadable(path, error)
    if total > _MAX_TOTAL_BYTES:
        raise BadInputError(f"the logs are {total:,} bytes together, and {_MAX_TOTAL_BYTES:,} are the most")
