"""The stage in which solvers answer both wordings of the items, for the answering check of the rewordings."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.domain.answering import AnsweringCheckSection
from proctor.domain.canonical import digest_matches
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import RewriteSet, VariantChunk, VariantIndex
from proctor.domain.suite import Suite
from proctor.domain.trial import CHECK_STAGE, Decoding, Shard
from proctor.router import rewrites
from proctor.router.audit import AuditView
from proctor.router.inputs import Asking, AuditInputs
from proctor.router.plan import plan_shards, plan_trials
from proctor.router.pools.packs import REWRITE_SHARD_TRIALS
from proctor.router.stages.documents import items_of_part, variant_index
from proctor.router.stages.outcome import StageOutcome
from proctor.router.stages.stage import Ending, Stage, StageParts, none_answered
from proctor.router.terms import Role
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.records.audit_state import AuditState


class CheckStage(Stage):
    """One solver after another: each has a stage of the ledger of its own, with its number and how often it was begun.

    A part is one sample of one chunk of the variants, so that a solver's samples of a wording are not asked together.
    The chunks of the control items follow those of the benchmark's.
    """

    kind = CHECK_STAGE
    state = AuditState.ASKING
    asks = Role.CHECKING
    asks_several = True
    asked_for = "answers of solvers"

    def is_due(self, audit: AuditView) -> bool:
        """Whether there are rewordings to check, and a solver that has not answered."""
        inputs = audit.inputs
        return inputs.variants is None and inputs.proposed is not None and _solver(inputs) < len(_check(audit).solvers)

    def name(self, inputs: AuditInputs) -> str:
        """The solver's number, from 1, and how often it was begun, e.g. `check-2-1`."""
        return f"{self.kind}-{_solver(inputs) + 1}-{_asking(inputs).times}"

    def model(self, audit: AuditView) -> str:
        """The solver, and where it is."""
        solver = _check(audit).solvers[_solver(audit.inputs)]
        return f"the solver {solver.model} at {self.endpoint(audit).url}"

    def endpoint(self, audit: AuditView) -> EndpointSpec:
        """The solver's own."""
        return audit.inputs.solvers[_solver(audit.inputs)]

    def decoding(self, audit: AuditView) -> Decoding:
        """The check's."""
        return _check(audit).decoding

    def parts(self, audit: AuditView, store: ArtifactStore) -> StageParts:
        """One a chunk of variants and sample."""
        proposed, samples = _proposed(audit, store), _check(audit).samples
        if proposed[0].n_variants == 0:
            return StageParts(0, 0)
        return StageParts(
            sum(len(one.chunks) for one in proposed) * samples,
            sum(one.n_prompts for one in proposed) * samples,
        )

    def shards(self, audit: AuditView, store: ArtifactStore, part: int, shard_trials: int) -> Iterator[Shard]:
        """One sample of one chunk: each item in its own wording, and in others. Small ones: models write."""
        chunk, sample = divmod(part, _check(audit).samples)
        benchmark, *control = _proposed(audit, store)
        index, place, variants_of = audit.inputs.items, chunk, benchmark
        if control and audit.inputs.control is not None and chunk >= len(benchmark.chunks):
            index, place, variants_of = audit.inputs.control, chunk - len(benchmark.chunks), control[0]
        items = items_of_part(store, index, place).items
        variants = get_model(store, variants_of.chunks[place], VariantChunk).variants
        asked = {"stage": self.kind, "router_index": _solver(audit.inputs), "replicate": sample}
        trials = (trial.model_copy(update=asked) for trial in plan_trials(items, variants, audit.suite.prompt))
        return plan_shards(trials, shard_trials=min(shard_trials, REWRITE_SHARD_TRIALS))

    def calls_of(self, suite: Suite, items: int) -> int:
        """How many prompts all solvers are asked about so many items, if each gets as many rewordings as it should."""
        section = suite.perturbation
        if (check := section.answering_check) is None:
            return 0
        return items * (1 + section.num_variants_per_item) * check.samples * len(check.solvers)

    def ending(self, audit: AuditView, outcome: StageOutcome, store: ArtifactStore) -> Ending:
        """On with the next solver, or with what they said; where one said nothing, or is the model under audit, the
        audit fails."""
        inputs, asking = audit.inputs, _asking(audit.inputs)
        said = RewriteSet(answered=outcome.answered, dead=outcome.dead, in_parts=outcome.in_parts)
        earlier, again = inputs.checking[: _solver(inputs)], asking.model_copy(update={"times": asking.times + 1})
        if (cause := rewrites.first_failure(store, said)) is not None:
            # The ledger keeps this stage as it is, so that an audit that is started again asks in another.
            return Ending({"checking": (*earlier, again)}, failure=none_answered(self.model(audit), outcome, cause))
        audited = inputs.model_digest
        if audited is not None and (same := _same_weights(store, said, audited)) is not None:
            return Ending(
                {"checking": (*earlier, again)},
                failure=f"{self.model(audit)} is the model under audit: its endpoint reports the weights {same}; name "
                "another model in perturbation_config.answering_check.solvers, or have its endpoint serve the solver",
            )
        return Ending({"checking": (*earlier, asking.model_copy(update={"said": put_model(store, said)}))})


def _check(audit: AuditView) -> AnsweringCheckSection:
    check = audit.suite.perturbation.answering_check
    assert check is not None
    return check


def _solver(inputs: AuditInputs) -> int:
    """The first solver that has not answered, from 0."""
    return sum(asking.said is not None for asking in inputs.checking)


def _asking(inputs: AuditInputs) -> Asking:
    number = _solver(inputs)
    return inputs.checking[number] if number < len(inputs.checking) else Asking()


def _proposed(audit: AuditView, store: ArtifactStore) -> tuple[VariantIndex, ...]:
    """What was made of the benchmark's items, and of the control items where the suite has such."""
    inputs = audit.inputs
    assert inputs.proposed is not None
    return tuple(variant_index(store, one) for one in (inputs.proposed, inputs.proposed_control) if one is not None)


def _same_weights(store: ArtifactStore, said: RewriteSet, audited: str) -> str | None:
    """The audited model's digest, if the solver's endpoint reported it; None otherwise."""
    reported = rewrites.facts(store, "", said).digests
    return next((digest for digest in reported if digest_matches(audited, digest)), None)


CHECK = CheckStage()
