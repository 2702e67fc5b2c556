"""Which API key an endpoint gets, from the environment; and keeping keys out of everything that is written down."""

from __future__ import annotations

import json
from collections.abc import Mapping

from proctor.domain.errors import BadInputError
from proctor.inference.http.address import HttpAddress

#: JSON object of hosts and their keys, for audits that ask models at several providers.
KEYS_VARIABLE = "PROCTOR_API_KEYS"
KEY_VARIABLE = "PROCTOR_API_KEY"
OPENAI_VARIABLE = "OPENAI_API_KEY"
_OPENAI_HOST = "api.openai.com"
_PLACEHOLDER = "[API key]"
#: A shorter key is no secret, and taking it out of an answer could change what the model said.
_SHORTEST_SECRET = 8


def api_key(address: HttpAddress, environ: Mapping[str, str], *, openai: bool, named: bool) -> str | None:
    """The key for an endpoint: its host's in PROCTOR_API_KEYS, else PROCTOR_API_KEY, else OpenAI's own.

    Args:
        address: the endpoint.
        environ: the environment.
        openai: whether the endpoint speaks OpenAI's protocol. OPENAI_API_KEY, which is set for other programs too,
            goes to such endpoints only, and never in clear to another machine.
        named: whether the operator named or covers the endpoint, or a person started the audit at the terminal
            (`EndpointSpec.gets_keys`). One that only a suite brought gets no key that is not its host's, on this
            machine neither: whoever writes suites could else have the keys sent to a server of their own.

    Raises:
        BadInputError: PROCTOR_API_KEYS is no JSON object of hosts and keys, or the key cannot stand in a header.
    """
    private = address.encrypted or address.loopback
    # A suite that leaves out the s of https does not have the host's key sent in clear.
    key = _host_keys(environ).get(address.host) if private or named else None
    if not key and named:
        key = environ.get(KEY_VARIABLE)
    if not key and openai and private and (named or address.host == _OPENAI_HOST):
        key = environ.get(OPENAI_VARIABLE)
    if not key:
        return None
    if not key.isascii() or not key.isprintable():
        raise BadInputError("the API key in the environment holds a line break or another unprintable character")
    return key


def without_key(text: str, key: str | None) -> str:
    """The text with the key taken out: an endpoint may repeat it in an error or an answer."""
    return text.replace(key, _PLACEHOLDER) if key and len(key) >= _SHORTEST_SECRET else text


def _host_keys(environ: Mapping[str, str]) -> dict[str, str]:
    text = environ.get(KEYS_VARIABLE)
    if not text:
        return {}
    try:
        keys = json.loads(text)
    except (ValueError, RecursionError):
        keys = None
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        raise BadInputError(
            f'{KEYS_VARIABLE} must be a JSON object of hosts and their keys, e.g. {{"models.example:8443": "…"}}'
        )
    return {host.lower(): key for host, key in keys.items()}
