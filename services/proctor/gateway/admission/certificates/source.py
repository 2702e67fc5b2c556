"""Where the serving certificate comes from, and how it is taken on while requests go on."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from proctor.domain.errors import BadInputError, ProctorError

logger = logging.getLogger(__name__)


class Pair(NamedTuple):
    """A certificate with its key, in PEM."""

    certificate: bytes
    key: bytes


class CertificateSource(Protocol):
    """What gives the certificate that is to be served."""

    every_s: float
    """Between two looks."""

    def pair(self) -> Pair:
        """The certificate as it is now. May take as long as a call to another machine does.

        Raises:
            ProctorError: there is none that could be served.
        """
        ...


class FilePair:
    """Certificate and key in files that somebody else renews, such as cert-manager in a mounted Secret.

    Args:
        certificate: PEM file.
        key: PEM file.
        every_s: between two looks.
    """

    def __init__(self, certificate: Path, key: Path, every_s: float = 10.0) -> None:
        self._certificate = certificate
        self._key = key
        self.every_s = every_s

    def pair(self) -> Pair:
        """See `CertificateSource`."""
        try:
            return Pair(self._certificate.read_bytes(), self._key.read_bytes())
        except OSError as error:
            raise BadInputError(f"the webhook's certificate cannot be read: {error}") from None


@asynccontextmanager
async def presenting(source: CertificateSource, context: ssl.SSLContext) -> AsyncIterator[None]:
    """Have a context present the source's certificate, and each new one, while the block lasts.

    A connection keeps the certificate with which it was made, so nothing that is under way is disturbed.

    Raises:
        ProctorError: there is none to begin with.
    """
    first = await asyncio.to_thread(source.pair)
    present(context, first)
    following = asyncio.create_task(_follow(source, context, first))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _follow(source: CertificateSource, context: ssl.SSLContext, last: Pair) -> None:
    while True:
        await asyncio.sleep(source.every_s)
        try:
            found = await asyncio.to_thread(source.pair)
            if found != last:
                present(context, found)
                last = found
                logger.info("the admission webhook serves a new certificate")
        except ProctorError as error:
            logger.warning("the admission webhook keeps its certificate: %s", error)
        except Exception:
            logger.exception("the admission webhook keeps its certificate")


def present(context: ssl.SSLContext, pair: Pair) -> None:
    """Have new connections be met with a certificate.

    Raises:
        BadInputError: certificate and key are none, or not of each other. The one before stays.
    """
    # Python's ssl takes certificates from files alone: from one that is in memory, so that no key is ever on a disk.
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, pair.key.rstrip() + b"\n" + pair.certificate)
        name = f"/proc/self/fd/{descriptor}"
        # A pair that does not fit would spoil the context that is in use.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(name)
        context.load_cert_chain(name)
    except ssl.SSLError as error:
        raise BadInputError(f"the webhook's certificate cannot be served: {error.reason or error}") from None
    finally:
        os.close(descriptor)
