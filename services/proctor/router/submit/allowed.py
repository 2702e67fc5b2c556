"""Which endpoints a suite may have asked: those that the operator named, and no URL that they do not cover.

A suite is written by one person and run by another's workers, which reach what the first cannot. So a URL in a suite is
a request, and the operator's list the answer: it is allowed at or below a listed URL, on the machine itself unless that
was switched off, and elsewhere only where the operator opened it.
"""

from __future__ import annotations

import json
import shlex
from typing import NamedTuple

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.endpoint_url import ENCRYPTED, EndpointUrl, endpoint_url
from proctor.domain.errors import BadInputError
from proctor.domain.host import is_loopback, is_public
from proctor.domain.log_origin import LOG_BACKEND
from proctor.domain.operator_endpoint import OperatorEndpoint, OtherEndpoints
from proctor.domain.prices import Prices
from proctor.domain.suite import Backend
from proctor.domain.url import shown
from proctor.runtime.settings import Settings


class Allowed(NamedTuple):
    """An endpoint that a suite may have asked."""

    name: str
    """What the suite calls it: an id or a URL."""
    url: str
    """Where it is, in one form however the suite writes it."""
    listed: OperatorEndpoint | None
    """What the operator says of it, or of the listed URL that covers it; None where nobody names it."""
    takes_private: bool
    """Whether items of private datasets may be sent there."""
    whole: bool = False
    """Whether it is the listed endpoint itself, with its replicas."""
    public_only: bool = False
    """Whether no address may be connected to that is not public."""
    backend: Backend | None = None
    """How it is spoken to; None where its URL says it."""

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost; None where the operator has not said it."""
        return self.listed.prices if self.listed is not None else None


def allowed_endpoint(field: str, name: str, settings: Settings) -> Allowed:
    """Find the endpoint that a suite names, if the operator lets it be asked.

    Args:
        field: where the suite names it, for messages.
        name: an id or a URL.
        settings: the operator's endpoints.

    Raises:
        BadInputError: for an id that the operator has not named, a URL that is none, or one that is not covered.
    """
    listed = settings.endpoints.get(name)
    if listed is not None:
        return Allowed(name, listed.urls[0], listed, listed.takes_private, whole=True, backend=listed.backend)
    if "://" not in name:
        raise BadInputError(
            f"{field} is {name!r}, which is not the id of an endpoint here (known: {_known(settings)}); write a URL, "
            "or name it in PROCTOR_ENDPOINTS"
        )
    place = endpoint_url(name)
    covering = _covering(place, settings)
    if covering:
        # Where the same URL is listed twice, the stricter word holds.
        private = place.is_local or all(one.takes_private for one in covering)
        return Allowed(name, place.text, covering[0], private, backend=covering[0].backend)
    others = settings.other_endpoints
    if others is OtherEndpoints.ANY or (place.is_local and others is OtherEndpoints.LOOPBACK):
        return Allowed(name, place.text, None, place.is_local)
    if others is OtherEndpoints.PUBLIC:
        _check_public(field, name, place)
        return Allowed(name, place.text, None, False, public_only=True)
    # Quoted for a shell: a URL may hold what a shell acts on.
    example = shlex.quote(json.dumps({"my-endpoint": place.text}))
    raise BadInputError(
        f"{field} is {shown(name)}, which no endpoint here covers (known: {_known(settings)}); name it, e.g. "
        f"PROCTOR_ENDPOINTS={example}, or open what suites may ask: "
        "PROCTOR_OTHER_ENDPOINTS=public for encrypted public addresses, =any on a machine of your own"
    )


def hold_private(why: str | None, found: Allowed, field: str) -> None:
    """Refuse an endpoint that may not see the items of a private dataset.

    Args:
        why: why the items are private; None where they are not.
        found: the endpoint.
        field: where the suite names it, for messages.

    Raises:
        BadInputError: when the items are private and the operator has not approved the endpoint for such.
    """
    if why is not None and not found.takes_private:
        raise BadInputError(
            f"{why}, and {field} is {shown(found.name)}, which is not approved for private datasets; have the "
            'operator approve it with "private": true in PROCTOR_ENDPOINTS, or ask an endpoint that is approved, or '
            "one on this machine"
        )


def approved(spec: EndpointSpec, settings: Settings) -> bool:
    """Whether private items may be sent to an endpoint that is on record, as the operator's list is today."""
    if spec.backend == LOG_BACKEND:
        # Nothing is sent: the answers are in the artifact store.
        return True
    if spec.replicas or spec.discovery is not None:
        # Servers of which the first alone stands in the URL: only the operator's word on all of them counts.
        same = [
            one
            for one in settings.endpoints.values()
            if (one.urls[0], one.replicas, one.discovery) == (spec.url, spec.replicas, spec.discovery)
        ]
        return bool(same) and all(one.takes_private for one in same)
    place = endpoint_url(spec.url)
    covering = _covering(place, settings)
    return place.is_local or (bool(covering) and all(one.takes_private for one in covering))


def _known(settings: Settings) -> str:
    return ", ".join(sorted(settings.endpoints)) or "none"


def _covering(place: EndpointUrl, settings: Settings) -> list[OperatorEndpoint]:
    """The listed endpoints that cover a place most closely, by their ids."""
    found: dict[int, list[OperatorEndpoint]] = {}
    for _, listed in sorted(settings.endpoints.items()):
        # What a discovery finds is not a URL that a suite could know.
        depths = [len(one.path) for one in listed.places if listed.discovery is None and one.covers(place)]
        if depths:
            found.setdefault(max(depths), []).append(listed)
    return found[max(found)] if found else []


def _check_public(field: str, name: str, place: EndpointUrl) -> None:
    """Refuse what is not public as it is written; the addresses behind a name are checked when it is connected to."""
    if place.scheme not in ENCRYPTED:
        raise BadInputError(
            f"{field} is {shown(name)}, and here a suite may bring URLs of {' and '.join(ENCRYPTED)} only; write one, "
            "or have the operator name it in PROCTOR_ENDPOINTS"
        )
    address = place.address
    if is_loopback(place.host) or (address is not None and not is_public(place.host)):
        raise BadInputError(
            f"{field} is {shown(name)}, which is no public address; have the operator name it in PROCTOR_ENDPOINTS"
        )
