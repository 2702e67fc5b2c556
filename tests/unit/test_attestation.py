"""An entry's attestation is a DSSE envelope around an in-toto Statement, as others understand the two."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.domain.record.attestation import (
    CHECKPOINT_PAYLOAD,
    PREDICATE_TYPE,
    STATEMENT_PAYLOAD,
    signed_bytes,
    statement_bytes,
)
from proctor.domain.record.entry import Entry
from proctor.domain.record.finding import Code
from proctor.runtime.signing import public_pem
from proctor.studies.record.checks import attestation_of
from tests.record_samples import DIGESTS, a_key, a_log
from tests.support import REPOSITORY, missing


def test_what_is_signed_is_the_encoding_of_the_specification() -> None:
    # The example of https://github.com/secure-systems-lab/dsse/blob/v1.0.2/implementation/signing_spec.py
    assert (
        signed_bytes("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    # Lengths are of bytes.
    assert signed_bytes("é", "ü".encode() * 5) == b"DSSEv1 2 \xc3\xa9 10 " + b"\xc3\xbc" * 5


def test_a_statement_has_the_weights_as_its_subject_and_the_entry_as_its_predicate() -> None:
    (logged,) = a_log(1)
    statement = json.loads(statement_bytes(json.loads(logged.text)))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [
        {"name": "org/modèle", "digest": {"sha256": DIGESTS["weights"].removeprefix("sha256:")}}
    ]
    assert statement["predicateType"] == PREDICATE_TYPE
    assert statement["predicate"] == json.loads(logged.text)


def test_a_pin_of_fewer_digits_is_not_called_a_sha_256() -> None:
    entry = json.loads(a_log(1)[0].text)
    entry["content"]["digests"]["weights"] = "sha256:0123456789ab"
    (subject,) = json.loads(statement_bytes(entry))["subject"]
    assert subject["digest"] == {"sha256Prefix": "0123456789ab"}


@pytest.mark.parametrize("weights", [None, "", "main", 7])
def test_an_entry_without_weights_has_no_statement(weights: object) -> None:
    entry = json.loads(a_log(1)[0].text)
    entry["content"]["digests"]["weights"] = weights
    with pytest.raises(ValueError, match="names no weights"):
        statement_bytes(entry)


def test_the_same_entry_has_the_same_attestation_each_time() -> None:
    assert attestation_of(a_log(2)[1]) == attestation_of(a_log(2)[1])


def test_the_page_has_every_field_of_an_entry_every_code_and_both_types() -> None:
    page = (REPOSITORY / "docs" / "record.md").read_text("utf-8")
    fields = {line.split("`")[1] for line in page.partition("## An entry")[2].splitlines() if line.startswith("| `")}
    assert Entry.model_fields.keys() <= fields
    found = page.partition("## What is found")[2].partition("**The end of a log.**")[0]
    named = {name for line in found.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+)`", line[:90])}
    assert {code.value for code in Code} <= named
    assert PREDICATE_TYPE in page
    assert STATEMENT_PAYLOAD in page
    assert CHECKPOINT_PAYLOAD in page


#: What somebody writes who has an attestation, a public key, and no Proctor.
_ELSEWHERE = """
import json, sys
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import SSlibKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

envelope = Envelope.from_dict(json.load(open(sys.argv[1])))
public = load_pem_public_key(open(sys.argv[2], "rb").read())
key = SSlibKey.from_crypto(public, keyid=sys.argv[3])
try:
    accepted = envelope.verify([key], 1)
except VerificationError as error:
    print("refused:", error)
    sys.exit(3)
assert list(accepted) == [sys.argv[3]]
assert envelope.payload_type == "application/vnd.in-toto+json"
said = json.loads(envelope.payload)
from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1 import statement_pb2
Statement.copy_from_pb(ParseDict(said, statement_pb2.Statement())).validate()
assert "proctor" not in sys.modules
print(said["subject"][0]["digest"]["sha256"], said["predicate"]["content"]["event"]["outcome"])
"""


def _verified_elsewhere(tmp_path: Path, envelope: dict[str, object], pem: bytes) -> subprocess.CompletedProcess[str]:
    attestation, public = tmp_path / "attestation.json", tmp_path / "public.pem"
    attestation.write_text(json.dumps(envelope))
    public.write_bytes(pem)
    # Isolated: neither this folder nor PYTHONPATH brings Proctor in.
    command = [sys.executable, "-I", "-c", _ELSEWHERE, str(attestation), str(public), a_key().signer.key_id]
    return subprocess.run(command, capture_output=True, text=True, timeout=50)


@pytest.fixture
def other_tools() -> None:
    probe = [sys.executable, "-I", "-c", "import securesystemslib.dsse, in_toto_attestation.v1.statement"]
    if subprocess.run(probe, capture_output=True).returncode:
        missing(
            "securesystemslib and in-toto-attestation are not installed: pip install -c constraints.txt -e '.[dev]'"
        )


@pytest.mark.usefixtures("other_tools")
def test_securesystemslib_and_in_toto_accept_an_attestation(tmp_path: Path) -> None:
    run = _verified_elsewhere(tmp_path, attestation_of(a_log(2)[1]), public_pem(a_key().signer.public_key))
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [DIGESTS["weights"].removeprefix("sha256:"), "approve"]


@pytest.mark.usefixtures("other_tools")
def test_securesystemslib_refuses_an_attestation_whose_payload_was_edited(tmp_path: Path) -> None:
    envelope = attestation_of(a_log(1)[0])
    payload = base64.b64decode(envelope["payload"]).replace(b'"approve"', b'"block"')
    edited = {**envelope, "payload": base64.b64encode(payload).decode()}
    run = _verified_elsewhere(tmp_path, edited, public_pem(a_key().signer.public_key))
    assert (run.returncode, run.stdout[:8]) == (3, "refused:"), run.stderr


@pytest.mark.usefixtures("other_tools")
def test_securesystemslib_refuses_an_attestation_of_another_key(tmp_path: Path) -> None:
    envelope = attestation_of(a_log(1, a_key(2))[0])
    envelope["signatures"][0]["keyid"] = a_key().signer.key_id
    run = _verified_elsewhere(tmp_path, envelope, public_pem(a_key().signer.public_key))
    assert (run.returncode, run.stdout[:8]) == (3, "refused:"), run.stderr
