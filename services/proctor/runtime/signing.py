"""Ed25519 keys: the one that signs the decision log, and those whose signatures are believed.

The operator's key is the PEM file that PROCTOR_SIGNING_KEY names. Without it an installation has one of its own, made
in its home when it is first needed. The public half of every key that a home has used stays there, so that what an
earlier one signed is still believed after a new one has come.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import secrets
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proctor.domain.errors import BadInputError
from proctor.domain.record.entry import Signer
from proctor.runtime.files import sync_folder, write_atomic
from proctor.runtime.private import PRIVATE_FILE, make_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

logger = logging.getLogger(__name__)

#: Of a PEM file with one key; one of Ed25519 has 119.
MAX_KEY_FILE_BYTES: Final = 65_536
_MAKE_ONE: Final = "make one with `openssl genpkey -algorithm ed25519 -out FILE`"


class Ed25519Key:
    """A private key, and who signs with it."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.signer = _signer(private.public_key())

    def sign(self, message: bytes) -> str:
        """The signature over a message, in base64. The same message has the same one each time."""
        return base64.b64encode(self._private.sign(message)).decode()


def record_folder(home: Path) -> Path:
    """Where a home keeps its keys."""
    return home / "record"


def home_key_file(home: Path) -> Path:
    """The installation's own private key, which may not be there yet."""
    return record_folder(home) / "signing_key.pem"


def open_signing_key(home: Path, told: Path | None) -> Ed25519Key:
    """The key that signs: the operator's, or the installation's own, which is made where there is none.

    Its public half is kept in the home, where that can be written.

    Args:
        home: the home.
        told: the file that PROCTOR_SIGNING_KEY names.

    Raises:
        BadInputError: the operator's file, or the home's, holds no key that can be used.
        OSError: the installation's key cannot be made.
    """
    key = _read_private(told, "PROCTOR_SIGNING_KEY") if told is not None else _own_key(home_key_file(home))
    kept = record_folder(home) / "keys" / f"{key.signer.key_id}.pem"
    if not kept.is_file():
        with suppress(OSError):
            write_atomic(kept, public_pem(key.signer.public_key))
    return key


def known_keys(home: Path, told: Path | None, trusted: Path | None = None) -> list[Signer]:
    """The keys whose signatures this installation believes: its present one and those that it used before.

    Nothing is made or written.

    Args:
        home: the home.
        told: the file that PROCTOR_SIGNING_KEY names.
        trusted: the folder of public keys that PROCTOR_TRUSTED_KEYS names.

    Raises:
        BadInputError: a file that should hold a key does not, or the folder is not there.
    """
    if trusted is not None and not trusted.is_dir():
        raise BadInputError(f"PROCTOR_TRUSTED_KEYS names {trusted}, which is no folder of public keys")
    found: dict[str, Signer] = {}
    others = () if trusted is None else sorted(trusted.glob("*.pem"))
    for file in (*sorted((record_folder(home) / "keys").glob("*.pem")), *others):
        signer = read_public_key(file)
        found[signer.key_id] = signer
    present = told if told is not None else home_key_file(home)
    if told is not None or present.is_file():
        signer = _read_private(present, "PROCTOR_SIGNING_KEY" if told is not None else "the home").signer
        found[signer.key_id] = signer
    return list(found.values())


def read_public_key(file: Path) -> Signer:
    """Whose signatures a PEM file with a public key stands for.

    Raises:
        BadInputError: it holds no public key of Ed25519.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_bounded(file, "the public key"))
    except Exception as error:
        raise _no_key(file, "the public key", error, "`proctor record key` prints one") from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInputError(f"{file} holds a public key that is not of Ed25519; `proctor record key` prints one")
    return _signer(key)


def public_pem(public_key: str) -> bytes:
    """A public key (base64 of its 32 bytes) as a PEM file has it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key))
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@lru_cache(maxsize=256)
def key_id(public_key: str) -> str:
    """The id of a public key (base64 of its 32 bytes); empty for what is none.

    As `openssl pkey -pubin -in FILE -outform DER | sha256sum` gives it.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        return _signer(Ed25519PublicKey.from_public_bytes(_decoded(public_key))).key_id
    except ValueError:
        return ""


def verifies(public_key: str, message: bytes, signature: str) -> bool:
    """Whether a signature (base64) over a message is that of a public key (base64 of its 32 bytes)."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(_decoded(public_key))
        key.verify(_decoded(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _decoded(text: str) -> bytes:
    """The bytes of a text in base64, as it is written and in no other way.

    Of the last character before padding not all bits count (RFC 4648, section 3.5), and Python looks at none of the
    rest: four texts, or sixteen, would be one signature, and a log in which one stands for the other not the log that
    was written.

    Raises:
        ValueError: it is not how these bytes are written.
    """
    found = base64.b64decode(text, validate=True)
    if base64.b64encode(found).decode() != text:
        raise ValueError("not the canonical base64 of its bytes")
    return found


def _signer(key: Ed25519PublicKey) -> Signer:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    written = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return Signer(key_id=hashlib.sha256(written).hexdigest(), public_key=base64.b64encode(raw).decode())


def _read_private(file: Path, said_by: str) -> Ed25519Key:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    what = f"the signing key ({said_by})"
    try:
        key = load_pem_private_key(_bounded(file, what), password=None)
    except TypeError:
        raise BadInputError(
            f"{file}, {what}, is encrypted; give the key without a passphrase, or {_MAKE_ONE}"
        ) from None
    except Exception as error:
        raise _no_key(file, what, error, _MAKE_ONE) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInputError(f"{file}, {what}, is not of Ed25519; {_MAKE_ONE}")
    return Ed25519Key(key)


def _no_key(file: Path, what: str, error: Exception, mend: str) -> BadInputError:
    if isinstance(error, BadInputError):
        return error
    # Not the library's words: they may quote what stands in the file.
    reason = error.strerror if isinstance(error, OSError) else "it holds no key in PEM"
    return BadInputError(f"{file}, {what}, cannot be read: {reason}; {mend}")


def _bounded(file: Path, what: str) -> bytes:
    with file.open("rb") as stream:
        content = stream.read(MAX_KEY_FILE_BYTES + 1)
    if len(content) > MAX_KEY_FILE_BYTES:
        raise BadInputError(f"{file}, {what}, is larger than {MAX_KEY_FILE_BYTES:,} bytes: it is the wrong file")
    return content


def _own_key(file: Path) -> Ed25519Key:
    if not file.is_file():
        _make_key(file)
    return _read_private(file, "this installation's own")


def _make_key(file: Path) -> None:
    """Make the installation's key, whole and for its owner alone; of several that processes make, the first stays."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    written = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    make_folder(file.parent)
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(written)
            stream.flush()
            os.fsync(stream.fileno())
        # A rename would put it in the place of the key that another process made and has signed with meanwhile.
        with suppress(FileExistsError):
            os.link(temporary, file)
            logger.info("made the signing key of this installation: %s", file)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(file.parent)
