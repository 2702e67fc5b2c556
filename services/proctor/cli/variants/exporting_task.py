"""A suite's prompts written as a task of another harness."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from proctor.cli.variants.asking import desk_of
from proctor.cli.variants.opening import open_suite, records_of
from proctor.cli.variants.planned import hold_direct, planned_trials
from proctor.domain.errors import BadInputError
from proctor.formats.tasks.registry import TASK_FORMATS
from proctor.formats.tasks.task import MANIFEST, Prompt, Task, manifest_of
from proctor.perturbation.library.store import VariantLibrary
from proctor.runtime.files import write_atomic
from proctor.runtime.settings import Settings


def export_task(
    suite_file: Path,
    folder: Path,
    settings: Settings,
    *,
    harness: str,
    overwrite: bool,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Write the task into a folder; the result as plain data.

    Args:
        suite_file: the suite.
        folder: where the files go; made if it is not there.
        settings: of the home whose library is used.
        harness: a name of `TASK_FORMATS`.
        overwrite: whether files of those names may be there.
        progress: told now and then how far the rewording is.

    Raises:
        BadInputError: where the suite cannot be asked so, the harness cannot ask it, or a file cannot be written.
        EncoderError: when distances have to be measured and cannot be.
    """
    opened, written = open_suite(suite_file, settings), TASK_FORMATS[harness]
    suite = opened.suite
    hold_direct(suite)
    with records_of(settings) as records, desk_of(suite, settings, progress) as ask:
        trials = planned_trials(opened, VariantLibrary(records), progress, ask)
    targets = {item.item_id: item.target for item in opened.items}
    prompts = [Prompt(trial, targets[trial.item_id]) for trial in trials]
    chat = suite.prompt.chat_template == "user"
    task = Task(suite.audit_suite_id, opened.fingerprint, suite.decoding, chat, prompts)
    try:
        files = dict(written.files(task))
        files[MANIFEST] = manifest_of(task, harness, files)
    except UnicodeEncodeError as error:
        raise BadInputError(
            f"{suite_file}: a prompt is no valid Unicode and cannot be written: {error.reason}"
        ) from None
    _write(folder, files, overwrite=overwrite)
    n_items = len({trial.item_id for trial in trials})
    return {
        "folder": str(folder),
        "harness": harness,
        "task": task.name,
        "plan_digest": task.plan_digest,
        "items": n_items,
        "prompts": len(prompts),
        "files": sorted(files),
        "command": written.command(task),
        "notes": list(opened.notes),
        "conclusion": f"Wrote {len(prompts):,} prompts of {n_items:,} items to {folder} as a task of {written.title}.",
    }


def _write(folder: Path, files: dict[str, bytes], *, overwrite: bool) -> None:
    there = sorted(name for name in files if (folder / name).exists())
    if there and not overwrite:
        raise BadInputError(f"{folder / there[0]} exists already; give another --output, or --force to overwrite it")
    for name, data in files.items():
        try:
            write_atomic(folder / name, data, private=False)
        except OSError as error:
            raise BadInputError(f"{folder / name} cannot be written: {error.strerror}; give another --output") from None
