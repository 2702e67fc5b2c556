"""Certificates for servers and clients that tests start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_HOUR = timedelta(hours=1)


class Pair(NamedTuple):
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """An authority of its own, which issues certificates into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        certificate = _builder(self._name, self._name, self._key.public_key(), datetime.now(UTC) + _HOUR).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem = _written(folder, name, certificate.sign(self._key, hashes.SHA256()), self._key).certificate

    def issue(self, file: str, *, names: Sequence[str] = ("localhost",), expired: bool = False) -> Pair:
        """A certificate for some host names, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        until = datetime.now(UTC) + (-_HOUR if expired else _HOUR)
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        certificate = _builder(_name(names[0]), self._name, key.public_key(), until).add_extension(
            alternatives, critical=False
        )
        return _written(self._folder, file, certificate.sign(self._key, hashes.SHA256()), key)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that is its own authority, and its key, as PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("localhost")
    certificate = (
        _builder(name, name, key.public_key(), datetime.now(UTC) + _HOUR)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return _written(folder, "certificate", certificate.sign(key, hashes.SHA256()), key)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - 3 * _HOUR)
        .not_valid_after(until)
    )


def _written(folder: Path, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pair = Pair(folder / f"{file}.pem", folder / ("key.pem" if file == "certificate" else f"{file}-key.pem"))
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pair
