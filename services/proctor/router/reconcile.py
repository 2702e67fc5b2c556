"""Looking for what was left undone by a worker that died with its shard, or a router that died between two steps."""

from __future__ import annotations

import logging

from proctor.domain.errors import NewerVersionError, PluginError, StoreError
from proctor.router.audit import AuditView, inputs_of, view
from proctor.router.counting import count_away
from proctor.router.dispatch import Dispatcher
from proctor.router.ledger.store import Setback
from proctor.router.stages.registry import pool_of, under_way
from proctor.runtime.logs.context import saying
from proctor.runtime.metrics.recording import Redelivery
from proctor.runtime.progress import note_step
from proctor.runtime.records.store import AuditRecord
from proctor.runtime.redis.presence import Held

logger = logging.getLogger(__name__)


def reconcile(dispatcher: Dispatcher) -> None:
    """Give what is overdue or was lost to another worker, and take on every audit whose messenger died."""
    for held in dispatcher.presence.lost():
        try:
            audit = view(dispatcher.records, held.audit_id)
            give_again(dispatcher, audit, held, "its worker has not been heard of any more")
        except NewerVersionError as error:
            # Left where it is: a router of that version comes upon it, too.
            logger.warning("shard %s was lost, and is left to another router: %s", held.shard_id, error)
            continue
        except StoreError:
            logger.exception(
                "shard %s of audit %s was lost, and its audit cannot be read", held.shard_id, held.audit_id
            )
        # Nor is what cannot be read told of again: its lease runs out like any other.
        dispatcher.presence.forget([held])
    running, pools = dispatcher.records.running_audits(), list[tuple[str, ...]]()
    for record in running:
        note_step()
        with saying(audit_id=record.audit_id):
            try:
                pools.append(inputs_of(record).pools)
                reconcile_audit(dispatcher, record)
            except NewerVersionError as error:
                logger.warning("audit %s is left to another router: %s", record.audit_id, error)
            except PluginError as error:
                # It was there when the audit began.
                dispatcher.fail(view(dispatcher.records, record.audit_id), f"the router could not go on: {error}")
            except Exception:
                # What one audit lacks (an artifact, room on a disk) must not keep the others waiting.
                logger.exception("audit %s cannot be taken on now", record.audit_id)
    count_away(dispatcher.pools, pools)


def reconcile_audit(dispatcher: Dispatcher, record: AuditRecord) -> None:
    """Give the overdue shards of one audit to another worker, and do what its state calls for."""
    audit = view(dispatcher.records, record.audit_id)
    if audit.inputs.paused:
        return
    stage, timing = under_way(audit), dispatcher.timing
    if stage is not None:
        for shard_id, attempt in dispatcher.ledger.overdue(audit.audit_id, stage.name, lease=timing.lease):
            cause = f"no answer within {timing.lease_s:g} s: the message or its worker was lost"
            held = Held(audit.audit_id, stage.name, shard_id, attempt)
            give_again(dispatcher, audit, held, cause, Redelivery.OVERDUE)
        dispatcher.handing.sweep(audit, stage)
    dispatcher.take_on(audit.audit_id)


def give_again(
    dispatcher: Dispatcher, audit: AuditView, held: Held, cause: str, redelivery: Redelivery = Redelivery.LOST
) -> None:
    """Queue a shard again whose worker or message is gone."""
    shard = held.audit_id, held.stage, held.shard_id
    outcome = dispatcher.ledger.fail(*shard, held.attempt, setback=Setback.LOST, cause=cause)
    with saying(audit_id=held.audit_id, stage=held.stage, shard_id=held.shard_id):
        logger.warning("shard %s, attempt %d, is lost, and %s: %s", "/".join(shard), held.attempt, outcome, cause)
    dispatcher.counting.failed(*shard, outcome, redelivery)
    pool = pool_of(audit.inputs, held.stage)
    if outcome != "stale" and pool is not None:
        dispatcher.pools.release(pool, held.audit_id, held.stage, [held.shard_id])
