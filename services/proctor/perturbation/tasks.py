"""The perturbation service's Celery task."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Final

from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.manifest import PromptSet, QuestionSet
from proctor.domain.messages import BuildVariants, VariantsBuilt
from proctor.domain.suite import PerturbationSection
from proctor.domain.trial import Trial
from proctor.perturbation.admission.learned import other_items, with_window
from proctor.perturbation.answering.check import check_variants
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import Encoder, ResolvedEncoder, resolve_encoder
from proctor.perturbation.engine import collected, distances_for, reword_by_answers, variant_set
from proctor.perturbation.kept_vectors import KeptVectors
from proctor.perturbation.library.fidelity import with_controls
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.recipe import Recipe
from proctor.perturbation.rewrites import read_answers
from proctor.perturbation.suite_rewordings import matched_rewordings
from proctor.runtime.artifacts.chunks import get_items, put_variants
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.messaging.tasks import handles, send, worker_artifacts, worker_records, worker_settings
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings

log = logging.getLogger(__name__)


#: Of the prompts that a model is asked in one round, all of which the router looks into for each part that it plans.
#: More are asked in further rounds.
MAX_ROUND_BYTES: Final = 64 << 20


def _not_built(message: BuildVariants, cause: str) -> None:
    send(VariantsBuilt(audit_id=message.audit_id, error=f"rewording failed: {cause}", look=message.look))


@handles(BuildVariants, given_up=_not_built, failed=_not_built)
def build_variants(message: BuildVariants) -> None:
    """Reword the items of an audit: answer with the variants, with what to ask a model first, or why there are none."""
    built = variants_for(message, worker_settings(), worker_records(), worker_artifacts(), _encoder())
    send(built.model_copy(update={"look": message.look}))


def variants_for(
    message: BuildVariants, settings: Settings, records: Records, artifacts: ArtifactStore, encoder: Encoder
) -> VariantsBuilt:
    """Build what a message asks for, as far as the model's answers that it brings allow.

    Returns:
        The answer to the message, with the digest of the VariantIndex in the artifact store, or of the PromptSet that
        the model must be asked before the same message is sent again with the answers.

    Raises:
        ProctorError: when the variants cannot be made, with the mend.
    """
    if message.check is not None:
        asked = get_model(artifacts, message.settings, PerturbationSection)
        held = VariantLibrary(records)
        checked = check_variants(artifacts, message.items, message.check, asked, held)
        control = None
        if message.control is not None and message.check.control is not None:
            # Of control items any number may be held: the channel says where too few are left.
            beside = message.check.model_copy(update={"variants": message.check.control})
            control = check_variants(artifacts, message.control, beside, asked, held, min_yield=0.0)
        return VariantsBuilt(audit_id=message.audit_id, variants=checked, checked=True, control=control)
    benchmark = get_items(artifacts, message.items).items
    # Control items go the same way, together with the benchmark's: a model that rewords cannot tell which is which.
    items = benchmark if message.control is None else benchmark + get_items(artifacts, message.control).items
    calibration = None if message.calibration is None else get_model(artifacts, message.calibration, GateCalibration)
    section = with_window(
        get_model(artifacts, message.settings, PerturbationSection),
        calibration,
        benchmark=message.benchmark,
        encoder=encoder,
    )
    others = other_items(
        section,
        calibration,
        None if message.questions is None else get_model(artifacts, message.questions, QuestionSet).questions,
        KeptVectors(settings.vectors, encoder).encode,
    )

    rewordings = None if message.rewordings is None else artifacts.get(message.rewordings)
    matched = matched_rewordings(section, items, message.benchmark, rewordings)
    if matched.unmatched:
        # Expected where a sample of the benchmark is asked; a person looking for a missing row finds it here.
        log.info(
            "audit %s: %d rewordings belong to no item of the sample, the first in line %d (%s)",
            message.audit_id,
            len(matched.unmatched),
            matched.unmatched[0].line,
            matched.unmatched[0].reason,
        )
    chain = Recipe(section, benchmark=message.benchmark, bundle=settings.bundle).chain(matched.by_item)
    answers = {} if message.rewrites is None else read_answers(artifacts, message.rewrites)
    library = VariantLibrary(records)
    measured = None
    if chain.asks_a_model:
        measured = _distances_of(message.audit_id, section, encoder, others)  # type: ignore[arg-type]  # by identity
    reworded = reword_by_answers(
        items,
        section,
        chain=chain,
        encoder=encoder,
        library=library,
        answers=answers,
        measured=measured,
        others=others,
    )
    if reworded.needed:
        prompts = PromptSet(trials=_of_one_round(reworded.needed), decoding=section.paraphraser.decoding)
        return VariantsBuilt(audit_id=message.audit_id, prompts=put_model(artifacts, prompts))
    n = len(benchmark)
    variants = variant_set(reworded.results[:n], section, chain=chain, encoder=encoder)
    controlled = with_controls(variants, records, chain.name, message.benchmark)
    control = None
    if message.control is not None:
        # Of these so few may get a variant that they control nothing: the channel says so, and the audit goes on.
        control = put_variants(artifacts, message.control, collected(reworded.results[n:], encoder))
    return VariantsBuilt(
        audit_id=message.audit_id, variants=put_variants(artifacts, message.items, controlled), control=control
    )


def _of_one_round(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The first of the trials, as many as a round may have; one in any case."""
    sizes = list(accumulate(len(trial.prompt.encode("utf-8")) for trial in trials))
    return tuple(trials[: max(1, bisect_right(sizes, MAX_ROUND_BYTES))])


@lru_cache(maxsize=1)
def _distances_of(
    audit_id: str, section: PerturbationSection, encoder: Encoder, others: OtherItems | None
) -> PairDistances:
    """The embeddings of the audit that this worker saw last, for its next rounds."""
    return distances_for(section, encoder, others)


@cache
def _encoder() -> ResolvedEncoder:
    settings = worker_settings()
    return resolve_encoder(settings.encoder, settings.encoder_precision)
