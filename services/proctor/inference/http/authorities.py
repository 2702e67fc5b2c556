"""Whose certificates are accepted of endpoints."""

from __future__ import annotations

import asyncio
import os
import ssl
from functools import lru_cache
from typing import Final

import httpx

#: Variables that name other authorities than certifi's: a file and a folder.
_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


async def trusted() -> ssl.SSLContext:
    """The authorities; one of the operator's own (SSL_CERT_FILE, SSL_CERT_DIR) holds for this machine's servers too.

    One context for all endpoints, and read beside the event loop: that takes 40 ms.

    Raises:
        OSError: the file or folder cannot be read.
    """
    return await asyncio.to_thread(_read, *map(os.environ.get, _VARIABLES))


@lru_cache(maxsize=4)
def _read(file: str | None, folder: str | None) -> ssl.SSLContext:
    # httpx looks at the variables itself: they are arguments for the cache's sake.
    del file, folder
    return httpx.create_ssl_context()
