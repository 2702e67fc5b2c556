"""Callers of an issuer, by what the operator says of it."""

from __future__ import annotations

from functools import partial

from proctor.domain.oidc import OidcSettings
from proctor.gateway.oidc.bearer import Bearers
from proctor.gateway.oidc.documents import fetched_keys
from proctor.gateway.oidc.keys import IssuerKeys


def open_bearers(settings: OidcSettings) -> Bearers:
    """Callers whose tokens are verified by the issuer's keys, which are asked for when the first one comes."""
    return Bearers(settings, IssuerKeys(partial(fetched_keys, settings.issuer)))
