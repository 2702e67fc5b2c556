"""Making an authority and a certificate by it for the webhook's service. Pure but for the random numbers.

Each certificate has an authority of its own, whose key is forgotten once it has signed: who reads the Secret can serve
as the webhook until that certificate ends, and can issue no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from proctor.domain.host import address_of

#: Clocks of a cluster's machines are not the same.
_SKEW: Final = timedelta(minutes=5)


class Issued(NamedTuple):
    """A certificate with its key and its authority, in PEM."""

    authority: bytes
    certificate: bytes
    key: bytes

    @property
    def begins(self) -> datetime:
        """When it was made, give or take the skew."""
        return _parsed(self.certificate).not_valid_before_utc + _SKEW

    @property
    def ends(self) -> datetime:
        """When it is valid no longer."""
        return _parsed(self.certificate).not_valid_after_utc

    def due(self, now: datetime) -> bool:
        """Whether it is to be renewed: after two thirds of its life."""
        return now >= self.begins + (self.ends - self.begins) * 2 / 3


def issue(names: Iterable[str], life: timedelta, now: datetime) -> Issued:
    """Make a certificate.

    Args:
        names: what the API server calls the webhook by: names of hosts, or addresses.
        life: for how long it is valid.
        now: from when.
    """
    named = list(names)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    # A name of its own, or two authorities in one bundle would be taken for each other.
    issuer = _name(f"proctor admission {identifier.digest.hex()[:16]}")
    authority = (
        _builder(issuer, issuer, authority_key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name("proctor admission"), issuer, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in named]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Issued(authority.public_bytes(Encoding.PEM), certificate.public_bytes(Encoding.PEM), written)


def names_of(certificate: bytes) -> set[str]:
    """What a certificate in PEM is for. Raises ValueError for what is none."""
    try:
        found = _parsed(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = {str(one) for one in found.get_values_for_type(x509.IPAddress)}
    return {*found.get_values_for_type(x509.DNSName), *addresses}


def authorities_of(bundle: bytes) -> list[bytes]:
    """The certificates of a bundle in PEM, one by one. Raises ValueError for what is none."""
    if not bundle.strip():
        return []
    return [one.public_bytes(Encoding.PEM) for one in x509.load_pem_x509_certificates(bundle)]


def ended(authority: bytes, now: datetime) -> bool:
    """Whether an authority in PEM is valid no longer."""
    return now >= _parsed(authority).not_valid_after_utc


def _parsed(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    address = address_of(name)
    return x509.DNSName(name) if address is None else x509.IPAddress(address)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
