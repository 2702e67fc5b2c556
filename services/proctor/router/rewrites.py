"""What the model that rewords was asked and said, over the rounds of an audit."""

from __future__ import annotations

from proctor.domain.manifest import (
    AnsweredShard,
    CompletionSet,
    ParaphraserFacts,
    PromptSet,
    RewriteSet,
)
from proctor.router.plan import shard_of
from proctor.runtime.artifacts.calls import calls_of, calls_of_shard
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model


def load(store: ArtifactStore, digest: str | None) -> RewriteSet:
    """The RewriteSet under a digest; an empty one where there is none yet."""
    return RewriteSet() if digest is None else get_model(store, digest, RewriteSet)


def together(earlier: RewriteSet, round_: RewriteSet) -> RewriteSet:
    """What was said so far, with another round."""
    return RewriteSet(answered=(*earlier.answered, *round_.answered), dead=(*earlier.dead, *round_.dead))


def of_part(rewrites: RewriteSet, part: int) -> RewriteSet:
    """What one part of a stage was answered; everything where it is not kept what each part brought."""
    if not rewrites.in_parts:
        return rewrites
    begin, end = sum(rewrites.in_parts[:part]), sum(rewrites.in_parts[: part + 1])
    return RewriteSet(answered=rewrites.answered[begin:end])


def unasked(store: ArtifactStore, prompts: PromptSet, rewrites: RewriteSet) -> PromptSet | None:
    """Of these prompts the ones that were not asked in an earlier round; None where there is none.

    A message of an earlier round that is delivered again asks for nothing new. What was asked and got no answer is
    not asked again either: within an audit the perturbation service counts it as failed.
    """
    asked = {trial.trial_id for trial, _ in calls_of(store, rewrites)}
    new = tuple(trial for trial in prompts.trials if trial.trial_id not in asked)
    return prompts.model_copy(update={"trials": new}) if new else None


def first_failure(store: ArtifactStore, rewrites: RewriteSet) -> str | None:
    """Why no prompt at all was answered, by the first failure; None where one was, or none was asked."""
    causes: list[str] = []
    for _, completion in calls_of(store, rewrites):
        if completion is not None and completion.error is None:
            return None
        if completion is not None and completion.error is not None:
            causes.append(completion.error)
    causes += [dead.cause for dead in rewrites.dead]
    return causes[0] if causes else None


def without_failures(store: ArtifactStore, rewrites: RewriteSet) -> RewriteSet:
    """Only what was answered, so that what failed is asked again: by then its cause may be mended."""
    kept: list[AnsweredShard] = []
    for answered in rewrites.answered:
        asked = list(calls_of_shard(store, answered))
        good = [(trial, said) for trial, said in asked if said is not None and said.error is None]
        if len(good) == len(asked):
            kept.append(answered)
        elif good:
            shard = put_model(store, shard_of([trial for trial, _ in good]))
            completions = put_model(store, CompletionSet(completions=tuple(said for _, said in good)))
            kept.append(AnsweredShard(shard=shard, completions=completions))
    return RewriteSet(answered=tuple(kept))


def facts(store: ArtifactStore, model: str, rewrites: RewriteSet) -> ParaphraserFacts:
    """What the report may say of the model that reworded."""
    n_calls = n_failed = 0
    digests: set[str] = set()
    for _, said in calls_of(store, rewrites):
        n_calls += 1
        n_failed += said is None or said.error is not None
        if said is not None and said.model_digest is not None:
            digests.add(said.model_digest)
    return ParaphraserFacts(model=model, digests=tuple(sorted(digests)), calls=n_calls, failed=n_failed)
