"""The names of the ledger's keys in Redis. What each of them holds is said in `proctor.router.ledger.store`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from proctor.router.ledger.scripts import AUDIT_KEYS, STAGE_KEYS, AuditKey, LedgerKey


def audit_key(audit_id: str, name: AuditKey) -> str:
    """A key of an audit."""
    return f"proctor:{{{audit_id}}}:{name}"


# Every answer asks for those of its stage, several times.
@lru_cache(maxsize=1024)
def keys_of(audit_id: str, stage: str) -> Mapping[LedgerKey, str]:
    """The keys of a stage and of its audit, by their names in the scripts. They share a slot."""
    of_audit: dict[LedgerKey, str] = {name: audit_key(audit_id, name) for name in AUDIT_KEYS}
    return of_audit | {name: f"proctor:{{{audit_id}}}:{stage}:{name}" for name in STAGE_KEYS}
