"""A suite's prompts as a task of another harness: what every harness' form of it says, and the manifest beside it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from proctor import __version__
from proctor.domain.canonical import bytes_digest, canonical_json, json_digest
from proctor.domain.trial import Decoding, Trial

SCHEMA: Final = "proctor-task/1"
MANIFEST: Final = "manifest.json"
#: Of a suite's name in a task's: harnesses make paths and patterns of it.
_SLUG_CHARACTERS: Final = 48


class Prompt(NamedTuple):
    """One prompt of a task, with the trial that it is."""

    trial: Trial
    target: str

    @property
    def digest(self) -> str:
        """SHA-256 of the prompt's UTF-8."""
        return bytes_digest(self.trial.prompt.encode())

    def identity(self) -> dict[str, str]:
        """What a log has to give back for its row to be bound to a trial. Text alone: a table's column has one type."""
        trial = self.trial
        return {
            "trial_id": trial.trial_id,
            "item_id": trial.item_id,
            "variant_id": trial.variant_id or "",
            "arm": trial.arm.value,
            "prompt_sha256": self.digest.removeprefix("sha256:"),
        }


class Task(NamedTuple):
    """Everything that a harness has to be told to ask what an audit by a suite would."""

    suite: str
    fingerprint: str
    """Of the suite's protocol card."""
    decoding: Decoding
    chat: bool
    """Whether the prompt is sent as one user message."""
    prompts: Sequence[Prompt]

    @property
    def name(self) -> str:
        """The task's name: the suite's, and the beginning of its fingerprint, so that two of them do not meet."""
        slug = re.sub(r"[^A-Za-z0-9]+", "_", self.suite)[:_SLUG_CHARACTERS].strip("_").lower()
        return f"proctor_{slug}_{self.fingerprint.removeprefix('sha256:')[:8]}"

    @property
    def plan_digest(self) -> str:
        """Digest of which trials are asked with which prompts, in whatever order."""
        return json_digest(sorted([prompt.trial.trial_id, prompt.digest] for prompt in self.prompts))


class TaskFormat(NamedTuple):
    """A harness for which tasks are written."""

    title: str
    files: Callable[[Task], Mapping[str, bytes]]
    """Name → content. Raises BadInputError for what the harness cannot ask."""
    command: Callable[[Task], str]
    """How it is run there, as a line for a shell in the task's folder, with capitals for what the user fills in."""


def manifest_of(task: Task, harness: str, files: Mapping[str, bytes]) -> bytes:
    """The manifest of a task, as JSON that a person can read too."""
    arms = Counter(prompt.trial.arm.value for prompt in task.prompts)
    return readable_json(
        {
            "schema": SCHEMA,
            "proctor": __version__,
            "harness": harness,
            "task": task.name,
            "suite": task.suite,
            "suite_fingerprint": task.fingerprint,
            "plan_digest": task.plan_digest,
            "decoding": task.decoding.plain(),
            "chat": task.chat,
            "items": len({prompt.trial.item_id for prompt in task.prompts}),
            "prompts": len(task.prompts),
            "prompts_by_arm": dict(sorted(arms.items())),
            "files": {name: bytes_digest(data) for name, data in sorted(files.items())},
            "prompt_digests": {prompt.trial.trial_id: prompt.digest for prompt in task.prompts},
        }
    )


def readable_json(value: Any) -> bytes:
    """Plain data as indented JSON in ASCII."""
    return (json.dumps(value, indent=2) + "\n").encode()


def json_lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as JSONL. Half of a surrogate pair is refused with a ValueError, since no file could hold the prompt."""
    return b"".join(canonical_json(row) + b"\n" for row in rows)
