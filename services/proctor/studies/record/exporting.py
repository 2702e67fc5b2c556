"""Writing the record to one file, entry by entry, and the checkpoint that says where it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from proctor.domain.errors import StoreError
from proctor.domain.record.attestation import CHECKPOINT_PAYLOAD, checkpoint_bytes, envelope, signed_bytes
from proctor.domain.record.chain import Chain
from proctor.domain.record.entry import LoggedEntry, Signer
from proctor.formats.record_export import entry_line, head_line
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.records.decision_log import Head, NoKey, SigningKey
from proctor.runtime.records.store import Records
from proctor.runtime.signing import public_pem
from proctor.studies.record.checks import attestation_of, trust_in


def export_lines(
    records: Records, artifacts: ArtifactStore | None, key: SigningKey | NoKey, keys: Iterable[Signer]
) -> Iterator[bytes]:
    """The lines of an export, the head first. The log is exported as it is, whatever is wrong with it.

    Args:
        records: the store.
        artifacts: where reports are; None leaves them out.
        key: what signs the checkpoint.
        keys: public keys that travel with it.

    Raises:
        StoreError: the store cannot be read.
    """
    with records.log_view() as view:
        yield _head(view.head() or Head(0, None), key, keys)
        chain = Chain(trust_in(()))
        for logged in view.entries():
            # For what it reads, and not for what it finds.
            for _ in chain.feed(logged):
                pass
            yield entry_line(logged, _attestation(logged), _report(chain, artifacts))


def checkpoint_line(records: Records, key: SigningKey | NoKey, keys: Iterable[Signer]) -> bytes:
    """The head of an export alone: how many entries there are now, and the digest of the last, signed.

    Raises:
        StoreError: the store cannot be read.
    """
    with records.log_view() as view:
        return _head(view.head() or Head(0, None), key, keys)


def _head(head: Head, key: SigningKey | NoKey, keys: Iterable[Signer]) -> bytes:
    payload = checkpoint_bytes(head.sequence, head.digest, datetime.now(UTC).isoformat(timespec="seconds"))
    checkpoint = envelope(CHECKPOINT_PAYLOAD, payload, None)
    if not isinstance(key, NoKey):
        signature = key.sign(signed_bytes(CHECKPOINT_PAYLOAD, payload))
        checkpoint = envelope(CHECKPOINT_PAYLOAD, payload, (key.signer.key_id, signature))
    return head_line(
        checkpoint, [{"key_id": one.key_id, "public_key": public_pem(one.public_key).decode()} for one in keys]
    )


def _attestation(logged: LoggedEntry) -> dict[str, object] | None:
    try:
        return None if logged.signature is None else attestation_of(logged)
    except StoreError:
        return None


def _report(chain: Chain, artifacts: ArtifactStore | None) -> bytes | None:
    decided = None if chain.last is None else chain.decided.get(chain.last.audit_id)
    if artifacts is None or decided is None or decided.report is None or decided.sequence != chain.length:
        return None
    try:
        return artifacts.get(decided.report)
    except StoreError:
        return None
