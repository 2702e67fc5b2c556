"""Signing keys: the operator's or the installation's own, and those that are believed."""

from __future__ import annotations

import base64
import hashlib
import stat
import string
import subprocess
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proctor.domain.errors import BadInputError
from proctor.runtime.signing import (
    MAX_KEY_FILE_BYTES,
    home_key_file,
    key_id,
    known_keys,
    open_signing_key,
    public_pem,
    read_public_key,
    verifies,
)
from tests.record_samples import lay


def pem_of(key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    kept: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        kept = serialization.BestAvailableEncryption(passphrase)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, kept)


def test_an_installation_makes_a_key_of_its_own_once_for_its_owner_alone(tmp_path: Path) -> None:
    first, second = (open_signing_key(tmp_path, None) for _ in range(2))
    assert first.signer == second.signer
    file = home_key_file(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in file.parent.iterdir()) == ["keys", "signing_key.pem"]


def test_many_that_start_at_once_have_one_key(tmp_path: Path) -> None:
    barrier, found = threading.Barrier(8), list[str]()

    def start() -> None:
        barrier.wait()
        found.append(open_signing_key(tmp_path, None).signer.key_id)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_the_operator_s_key_is_used_and_none_is_made(tmp_path: Path) -> None:
    private = Ed25519PrivateKey.generate()
    file = lay(tmp_path, "operator.pem", pem_of(private))
    key = open_signing_key(tmp_path / "home", file)
    assert verifies(key.signer.public_key, b"message", key.sign(b"message"))
    assert base64.b64decode(key.sign(b"message")) == private.sign(b"message")
    assert not home_key_file(tmp_path / "home").exists()


def test_a_key_of_before_is_still_believed_and_a_key_of_nobody_is_not(tmp_path: Path) -> None:
    old = open_signing_key(tmp_path, None).signer
    home_key_file(tmp_path).unlink()
    new = open_signing_key(tmp_path, None).signer
    assert old != new
    known = {signer.key_id for signer in known_keys(tmp_path, None)}
    assert known == {old.key_id, new.key_id}


def test_asking_for_the_keys_that_are_believed_makes_none(tmp_path: Path) -> None:
    assert known_keys(tmp_path / "home", None) == []
    assert not (tmp_path / "home").exists()


def test_a_key_s_id_is_what_openssl_and_sha256sum_give(tmp_path: Path) -> None:
    signer = open_signing_key(tmp_path, None).signer
    pem = lay(tmp_path, "public.pem", public_pem(signer.public_key))
    assert read_public_key(pem) == signer
    assert key_id(signer.public_key) == signer.key_id
    asked = ["openssl", "pkey", "-pubin", "-in", str(pem), "-outform", "DER"]
    try:
        written = subprocess.run(asked, capture_output=True, check=True).stdout
    except FileNotFoundError:
        # RFC 8410: the algorithm's identifier, then the 32 bytes.
        written = bytes.fromhex("302a300506032b6570032100") + base64.b64decode(signer.public_key)
    assert hashlib.sha256(written).hexdigest() == signer.key_id


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it holds no key in PEM"),
        (b"-----BEGIN PRIVATE KEY-----\ngeheim\n-----END PRIVATE KEY-----\n", "it holds no key in PEM"),
        (pem_of(ec.generate_private_key(ec.SECP256R1())), "is not of Ed25519"),
        (pem_of(Ed25519PrivateKey.generate(), b"geheim"), "is encrypted"),
        (b"x" * (MAX_KEY_FILE_BYTES + 1), "is larger than 65,536 bytes"),
    ],
    ids=["empty", "damaged", "other kind", "encrypted", "large"],
)
def test_a_file_that_is_no_signing_key_is_one_clear_error_that_quotes_none_of_it(
    tmp_path: Path, content: bytes, words: str
) -> None:
    file = lay(tmp_path, "key.pem", content)
    with pytest.raises(BadInputError, match=words) as refused:
        open_signing_key(tmp_path, file)
    assert str(file) in str(refused.value)
    assert "geheim" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_signing_key_that_is_not_there_is_told_with_its_variable(tmp_path: Path) -> None:
    with pytest.raises(
        BadInputError, match=r"nowhere.pem, the signing key \(PROCTOR_SIGNING_KEY\), cannot be read: No"
    ):
        open_signing_key(tmp_path, tmp_path / "nowhere.pem")


def test_a_public_key_that_is_none_is_one_clear_error(tmp_path: Path) -> None:
    for content in (b"", pem_of(Ed25519PrivateKey.generate())):
        with pytest.raises(BadInputError, match="`proctor record key` prints one"):
            read_public_key(lay(tmp_path, "public.pem", content))
    with pytest.raises(BadInputError, match="No such file"):
        read_public_key(tmp_path / "nowhere.pem")


@pytest.mark.parametrize("text", ["", "=", "é", "AAAA", "!" * 44])
def test_what_is_no_key_or_signature_verifies_nothing_and_raises_nothing(tmp_path: Path, text: str) -> None:
    key = open_signing_key(tmp_path, None)
    assert not verifies(text, b"m", key.sign(b"m"))
    assert not verifies(key.signer.public_key, b"m", text)
    assert key_id(text) == ""


def test_a_signature_or_a_key_that_is_written_otherwise_is_another_one(tmp_path: Path) -> None:
    key = open_signing_key(tmp_path, None)
    signature = key.sign(b"said")
    public_key = key.signer.public_key
    assert verifies(public_key, b"said", signature)
    alphabet = string.ascii_letters + string.digits + "+/"
    # Before the padding, where bits are left over that decode to nothing.
    for written in (signature, public_key):
        body = written.rstrip("=")
        others = [f"{body[:-1]}{one}{written[len(body) :]}" for one in alphabet if one != body[-1]]
        same_bytes = [other for other in others if base64.b64decode(other) == base64.b64decode(written)]
        assert same_bytes
        for other in same_bytes:
            said = (public_key, b"said", other) if written is signature else (other, b"said", signature)
            assert not verifies(*said)
            if written is public_key:
                assert key_id(other) == ""
