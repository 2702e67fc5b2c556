"""An entry as an attestation: an in-toto Statement v1 in a DSSE envelope, which other tools verify.

DSSE: https://github.com/secure-systems-lab/dsse/blob/v1.0.2/protocol.md. Statement:
https://github.com/in-toto/attestation/blob/v1.1.0/spec/v1/statement.md. What is signed follows from the entry alone, so
that only the signature has to be kept beside it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from proctor.domain.canonical import FULL_DIGEST, canonical_json

PREDICATE_TYPE: Final = "urn:proctor:record-entry:v1"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
STATEMENT_PAYLOAD: Final = "application/vnd.in-toto+json"
#: What it is called in the folder of a report.
ATTESTATION: Final = "attestation.json"
CHECKPOINT_PAYLOAD: Final = "application/vnd.proctor.checkpoint+json"


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """What a DSSE signature is over: the pre-authentication encoding (PAE) of a payload."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def statement_bytes(entry: Mapping[str, Any]) -> bytes:
    """Canonical JSON of the Statement about an entry's weights.

    Args:
        entry: an entry as plain data.

    Raises:
        ValueError: it names no weights, and so has no subject.
    """
    content = entry["content"]
    weights = (content.get("digests") or {}).get("weights")
    if not isinstance(weights, str) or not weights.startswith("sha256:"):
        raise ValueError("the entry names no weights")
    # A pin of fewer digits is no SHA-256, and is not to be taken for one.
    algorithm = "sha256" if FULL_DIGEST.fullmatch(weights) else "sha256Prefix"
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [
                {
                    "name": str((content.get("event") or {}).get("modelId") or content.get("model_id") or "model"),
                    "digest": {algorithm: weights.removeprefix("sha256:")},
                }
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": dict(entry),
        }
    )


def checkpoint_bytes(sequence: int, digest: str | None, time: str) -> bytes:
    """What is signed of a log's end: how many entries it had at a time, and the digest of the last."""
    return canonical_json({"sequence": sequence, "digest": digest, "time": time})


def envelope(payload_type: str, payload: bytes, signature: tuple[str, str] | None) -> dict[str, Any]:
    """A DSSE envelope as plain data.

    Args:
        payload_type: what the payload is.
        payload: its bytes.
        signature: key id and signature in base64; None leaves the list of signatures empty, which verifies nowhere.
    """
    return {
        "payloadType": payload_type,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [] if signature is None else [{"keyid": signature[0], "sig": signature[1]}],
    }


def entry_envelope(entry: Mapping[str, Any], signature: str | None) -> dict[str, Any]:
    """The attestation of an entry, from its plain data and the signature that is kept beside it.

    Raises:
        ValueError: it names no weights.
    """
    signer = entry["signer"]
    known = None if signer is None or signature is None else (str(signer["key_id"]), signature)
    return envelope(STATEMENT_PAYLOAD, statement_bytes(entry), known)
