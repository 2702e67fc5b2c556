"""The perturbation service's Celery task."""

from __future__ import annotations

import logging
from functools import cache

from proctor.domain.errors import ProctorError
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.manifest import ItemSet
from proctor.domain.messages import BuildVariants, VariantsBuilt
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.calibration import with_window
from proctor.perturbation.encoder import SentenceEncoder, resolve_encoder
from proctor.perturbation.engine import build
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.recipe import Recipe
from proctor.perturbation.suite_rewordings import matched_rewordings
from proctor.runtime.artifacts import ArtifactStore, get_model, put_model
from proctor.runtime.records import Records
from proctor.runtime.settings import Settings
from proctor.runtime.tasks import handles, send, worker_artifacts, worker_records, worker_settings

log = logging.getLogger(__name__)


@handles(BuildVariants)
def build_variants(message: BuildVariants) -> None:
    """Reword the items of an audit and answer with the variants, or with why there are none."""
    try:
        digest = variants_for(message, worker_settings(), worker_records(), worker_artifacts(), _encoder())
    except ProctorError as error:
        send(VariantsBuilt(audit_id=message.audit_id, error=str(error)))
    except Exception as error:
        # Without an answer the audit would wait for ever.
        log.exception("audit %s: variants could not be made", message.audit_id)
        send(VariantsBuilt(audit_id=message.audit_id, error=f"perturbation failed: {type(error).__name__}: {error}"))
    else:
        send(VariantsBuilt(audit_id=message.audit_id, variants=digest))


def variants_for(
    message: BuildVariants, settings: Settings, records: Records, artifacts: ArtifactStore, encoder: SentenceEncoder
) -> str:
    """Build what a message asks for and return the digest of the VariantSet in the artifact store.

    Raises:
        ProctorError: when the variants cannot be made, with the mend.
    """
    items = get_model(artifacts, message.items, ItemSet).items
    section = with_window(
        get_model(artifacts, message.settings, PerturbationSection),
        None if message.calibration is None else get_model(artifacts, message.calibration, GateCalibration),
        benchmark=message.benchmark,
        encoder=encoder,
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
    variants = build(items, section, chain=chain, encoder=encoder, library=VariantLibrary(records))
    return put_model(artifacts, variants)


@cache
def _encoder() -> SentenceEncoder:
    return resolve_encoder(worker_settings().encoder)
