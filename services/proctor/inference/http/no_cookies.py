"""A cookie jar that stays empty."""

from __future__ import annotations

from http.cookiejar import CookieJar
from typing import Any


class NoCookies(CookieJar):
    """Takes no cookie: an endpoint could else fill the memory with them, and slow every later request by their number.

    That they are not even read is why this is not a policy of a usual jar.
    """

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Nothing."""
