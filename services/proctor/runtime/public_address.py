"""The address under which people reach the gateway's pages, as it is written into registries and messages."""

from __future__ import annotations

from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.url import UrlFault, parts_of, url_of

_SCHEMES: Final = ("http", "https")
_MEND: Final = "give the gateway's, like https://proctor.example.org"


def public_address(text: str) -> str:
    """An http or https URL without a slash at its end.

    Raises:
        BadInputError: for anything else, and for one with a user, a query or a fragment, which would stand in every
            registry. It repeats nothing of it, because a password may be in it.
    """
    try:
        url = url_of(parts_of(text))
    except UrlFault as fault:
        raise BadInputError(f"PROCTOR_DASHBOARD_URL {fault.fault}: {_MEND}") from None
    if url.scheme not in _SCHEMES:
        raise BadInputError(f"PROCTOR_DASHBOARD_URL is no address of a web page: {_MEND}")
    return url.text.rstrip("/")


def report_address(dashboard_url: str, audit_id: str) -> str:
    """The page of an audit's report."""
    return f"{dashboard_url}/audits/{audit_id}/report"
