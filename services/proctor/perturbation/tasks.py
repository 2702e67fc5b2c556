"""The perturbation service's Celery task."""

from __future__ import annotations

import logging
from functools import cache

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.manifest import ItemSet
from proctor.domain.messages import BuildVariants, VariantsBuilt
from proctor.domain.suite import PerturbationSection
from proctor.formats.rewordings import match_rewordings, parse_rewordings
from proctor.perturbation.encoder import SentenceEncoder, resolve_encoder
from proctor.perturbation.engine import build
from proctor.perturbation.library import VariantLibrary
from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.compose import make_chain
from proctor.perturbation.strategies.imported import Imported
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.wordings import Wordings, load_wordings
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
    section = get_model(artifacts, message.settings, PerturbationSection)

    def imported() -> Strategy:
        if message.rewordings is None:
            raise BadInputError("perturbation_strategy 'imported' needs rewordings_path, a JSONL file of rewordings")
        name = section.rewordings_path or "rewordings"
        rows = parse_rewordings(artifacts.get(message.rewordings), name)
        matched = match_rewordings(rows, items, message.benchmark)
        if not matched.by_item:
            first = matched.unmatched[0]
            raise BadInputError(
                f"none of the {len(rows)} rewordings in {name} belongs to one of the {len(items)} items "
                f"(line {first.line}: {first.reason}): match rows by item_id, by index or by the original's text"
            )
        if matched.unmatched:
            # Expected where a sample of the benchmark is asked; a person looking for a missing row finds it here.
            log.info(
                "audit %s: %d of %d rewordings belong to no item of the sample, the first in line %d (%s)",
                message.audit_id,
                len(matched.unmatched),
                len(rows),
                matched.unmatched[0].line,
                matched.unmatched[0].reason,
            )
        return Imported(matched)

    chain = make_chain(
        section.perturbation_strategy,
        {
            "imported": imported,
            "option_shuffle": OptionShuffle,
            "wordings": lambda: Wordings(load_wordings(settings.bundle, message.benchmark)),
        },
    )
    variants = build(items, section, chain=chain, encoder=encoder, library=VariantLibrary(records))
    return put_model(artifacts, variants)


@cache
def _encoder() -> SentenceEncoder:
    return resolve_encoder(worker_settings().encoder)
