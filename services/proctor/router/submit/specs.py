"""From an endpoint that a suite may have asked to what an inference worker needs to ask it."""

from __future__ import annotations

from typing import Any

from proctor.domain.backends import BACKENDS
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.endpoint_url import backend_of
from proctor.domain.errors import BadInputError
from proctor.domain.suite import Backend, Suite
from proctor.domain.url import shown
from proctor.router.submit.allowed import Allowed, hold_private
from proctor.router.submit.chat import applied_template
from proctor.router.submit.privacy import private_by_word
from proctor.runtime.settings import Settings


def held_endpoint(suite: Suite, found: Allowed, field: str, settings: Settings) -> Allowed:
    """The endpoint, if it may see the suite's items, as far as the suite says which they are.

    Raises:
        BadInputError: when it may not.
    """
    hold_private(private_by_word(suite, settings), found, field)
    return found


def endpoint_spec(
    found: Allowed,
    backend: Backend | None,
    *,
    chat: bool,
    chat_field: str,
    own: bool,
    at_terminal: bool,
    **asked: Any,
) -> EndpointSpec:
    """What an inference worker needs to ask an endpoint.

    Args:
        found: where it is.
        backend: how it is spoken to; None where the operator or its URL says it.
        chat: whether the model is asked by chat.
        chat_field: where the suite says so, for messages.
        own: whether the endpoint was named for this model, and not for another that it stands in for.
        at_terminal: whether a person at this machine's terminal started the audit.
        asked: of the model: its name there, and its version.

    Raises:
        BadInputError: when a backend of a plug-in would be asked at a public URL that nobody names, or the model would
            be asked by chat where no chat template would be applied.
    """
    listed = found.listed
    spoken = backend or found.backend or backend_of(found.url)
    if found.public_only and spoken not in BACKENDS.built_in:
        # Proctor's own connect to no address that is not public. What a plug-in connects to is not seen from here.
        raise BadInputError(
            f"{shown(found.name)} is named by nobody here, and the backend {spoken!r} is a plug-in, which cannot be "
            "held to public addresses; have the operator name it in PROCTOR_ENDPOINTS, or use another backend"
        )
    said: dict[str, Any] = {} if listed is None else {"max_in_flight": listed.max_in_flight}
    if listed is not None and found.whole:
        said |= {"replicas": listed.replicas, "balance": listed.balance, "discovery": listed.discovery}
    return EndpointSpec(
        backend=spoken,
        url=found.url,
        chat=chat,
        chat_template=applied_template(found, spoken, field=chat_field, own=own) if chat else None,
        public_only=found.public_only,
        # Where suites may bring public URLs, they come from many: a key for those is bound to its host.
        gets_keys=listed is not None or (at_terminal and not found.public_only),
        **said,
        **asked,
    )
