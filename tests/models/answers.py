"""What a model said in an audit, from the stores of the home that had it asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.domain.manifest import AuditManifest, CompletionSet
from proctor.domain.trial import Completion, Shard
from proctor.router.audit import view
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings

#: By the prompt without what a chat template puts around it.
Answers = Mapping[str, Completion]


def answers_of(audit_id: str, home: Path) -> Answers:
    """Every answer of an audit, those that never came among them, by its trial's identifier."""
    settings = Settings(home=home)
    records, store = Records(settings.records_url), LocalArtifacts(Path(settings.artifacts))
    try:
        digest = view(records, audit_id).inputs.manifest
    finally:
        records.close()
    assert digest is not None
    found = dict[str, Completion]()
    for one in get_model(store, digest, AuditManifest).answered:
        trials = get_model(store, one.shard, Shard).trials
        said = get_model(store, one.completions, CompletionSet).completions
        found |= {trial.trial_id: completion for trial, completion in zip(trials, said, strict=True)}
    return found
