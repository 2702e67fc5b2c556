"""An issuer's two documents: where its keys are, and the keys. Small, soon, over TLS, and from where they should be."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx

from proctor.domain.errors import StackError
from proctor.domain.oidc import is_safe_url

#: Of a document; one of Microsoft's sets of keys has 15 KiB.
MAX_DOCUMENT_BYTES: Final = 256 << 10
#: For both documents together: callers wait for it.
FETCH_S: Final = 8.0
#: Keys of an issuer; more are not looked at.
MAX_KEYS: Final = 100


class IssuerAwayError(StackError):
    """An issuer's keys cannot be had now, so nobody can tell whether a token is good."""


async def fetched_keys(issuer: str) -> list[dict[str, Any]]:
    """The keys that an issuer signs with now, as it publishes them.

    Raises:
        IssuerAwayError: when they cannot be had, or are none.
    """
    where = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
    try:
        async with asyncio.timeout(FETCH_S), httpx.AsyncClient(timeout=FETCH_S, follow_redirects=False) as client:
            said = await _document(client, where)
            if said.get("issuer") != issuer:
                raise IssuerAwayError(f"{where} is of another issuer than {issuer}")
            at = said.get("jwks_uri")
            if not isinstance(at, str) or not is_safe_url(at):
                raise IssuerAwayError(f"{where} names no https URL of keys")
            keys = (await _document(client, at)).get("keys")
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise IssuerAwayError(
            f"the issuer {issuer} does not answer ({type(error).__name__}): try again later"
        ) from None
    if not isinstance(keys, list):
        raise IssuerAwayError(f"the issuer {issuer} has no list of keys")
    return [key for key in keys[:MAX_KEYS] if isinstance(key, dict)]


async def _document(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    # As it is: a small compressed document may be a large one.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body = bytearray()
    async with client.stream("GET", url, headers=headers) as answer:
        if answer.status_code != httpx.codes.OK or answer.headers.get("content-encoding", "identity") != "identity":
            raise IssuerAwayError(f"{url} was answered with {answer.status_code}: try again later")
        async for piece in answer.aiter_raw():
            body += piece
            if len(body) > MAX_DOCUMENT_BYTES:
                raise IssuerAwayError(f"{url} is larger than {MAX_DOCUMENT_BYTES >> 10} KiB")
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise IssuerAwayError(f"{url} is no JSON object")
    return found
