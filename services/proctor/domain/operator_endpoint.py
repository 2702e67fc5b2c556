"""The endpoints that the operator of a deployment names: where each is, what it may be asked, and what it costs.

They come as one JSON object, endpoint ids with a URL or an object each. What is wrong with it is said of one endpoint
and key at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from proctor.domain.backends import TEMPLATED, Backend
from proctor.domain.base import Frozen
from proctor.domain.chat_template import OperatorTemplate
from proctor.domain.endpoint import Balance, Discovery, DnsDiscovery, Replica
from proctor.domain.endpoint_url import EndpointUrl, OddUrlError, backend_of, endpoint_url
from proctor.domain.errors import BadInputError
from proctor.domain.operator_json import operator_object
from proctor.domain.plugins import HANDED_IN
from proctor.domain.prices import Price
from proctor.domain.prices import Prices as Prices
from proctor.domain.problems import path_text, quoted
from proctor.domain.url import shown

_EXAMPLE: Final = '{"prod": "grpc://triton:8001", "org/model": {"url": "https://host/v1", "private": true}}'
_MAX_ID: Final = 200


class OtherEndpoints(StrEnum):
    """Which URLs a suite may bring that no endpoint of the operator covers."""

    NONE = "none"
    LOOPBACK = "loopback"
    """Those of the machine that asks."""
    PUBLIC = "public"
    """Encrypted ones whose addresses are all public: nothing inside the operator's network, nor the machine that asks,
    on which a server has neighbours that trust it."""
    ANY = "any"
    """For a person's own machine: whoever writes a suite reaches whatever the workers reach."""


class OperatorEndpoint(Frozen):
    """An endpoint as its operator describes it: one server, several replicas, or a way to find them."""

    url: str | None = None
    replicas: tuple[Replica, ...] = Field(default=(), max_length=256)
    discovery: Discovery | None = None
    backend: Backend | None = None
    """How it is spoken to, for suites that do not say it; by default told from the URL."""
    balance: Balance = Balance.MEASURED
    max_in_flight: int | None = Field(default=None, ge=1, le=4096)
    chat_template: OperatorTemplate | None = None
    """The model's chat template, which Proctor applies where a suite asks by chat and the server takes text alone."""
    private: bool = False
    """Whether items of private datasets may be sent there."""
    input_price_per_million: Price | None = None
    output_price_per_million: Price | None = None

    @model_validator(mode="after")
    def _is_one_place_that_can_be_read(self) -> Self:
        given = [name for name in ("url", "replicas", "discovery") if getattr(self, name)]
        if len(given) != 1:
            said = " and ".join(given) or "none of url, replicas and discovery"
            raise _fault(f"has {said}", "give one of the three: a url, a list of replicas, or a discovery")
        if (self.input_price_per_million is None) != (self.output_price_per_million is None):
            raise _fault(
                "has one price", "give both input_price_per_million and output_price_per_million; 0 is a price"
            )
        urls = [endpoint_url(url) for url in self.urls]
        if len(set(urls)) != len(urls):
            raise _fault("names a replica twice", "give each server once, with a weight if it should have more")
        if self.backend is None and len({backend_of(url) for url in self.urls}) != 1:
            raise _fault(
                "has replicas that are spoken to in different ways",
                "replicas serve the same model in the same way: give them the same scheme and path, or say the backend",
            )
        for replica in self.replicas:
            if replica.metrics_url is not None and endpoint_url(replica.metrics_url).scheme not in ("http", "https"):
                raise _fault("has a metrics_url that is not http or https", "e.g. http://triton:8002/metrics")
        template, spoken = self.chat_template, self.backend or backend_of(self.urls[0])
        if template is not None and spoken != TEMPLATED:
            raise _fault(
                f"has a chat_template and is asked as {spoken}",
                f"leave it out: Proctor applies one before it asks {TEMPLATED}, and nowhere else",
            )
        if template is not None and (template.path is None) == (template.text is None):
            raise _fault(
                "has a chat_template of " + ("neither path nor text" if template.path is None else "both"),
                'give a path, e.g. {"path": "/etc/proctor/tokenizer_config.json"}, or the text itself',
            )
        if template is not None and template.path is not None and not template.path.startswith("/"):
            raise _fault("has a chat_template whose path is not from the root", "write the whole path")
        if isinstance(self.discovery, DnsDiscovery) and urls[0].address is not None:
            raise _fault("discovers an address", "give a name that DNS has addresses for, or the address as url")
        return self

    @property
    def urls(self) -> tuple[str, ...]:
        """Where it is: its URL, its replicas' in their order, or what its discovery starts from."""
        if self.url is not None:
            return (self.url,)
        if self.discovery is None:
            return tuple(replica.url for replica in self.replicas)
        if isinstance(self.discovery, DnsDiscovery):
            return (self.discovery.url,)
        place = self.discovery
        return (f"{place.scheme}://{place.service}.{place.namespace}.svc{place.path}",)

    @property
    def places(self) -> tuple[EndpointUrl, ...]:
        """The URLs taken apart."""
        return tuple(endpoint_url(url) for url in self.urls)

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost; None where the operator has not said it."""
        if self.input_price_per_million is None or self.output_price_per_million is None:
            return None
        return Prices(input_per_million=self.input_price_per_million, output_per_million=self.output_price_per_million)

    @property
    def takes_private(self) -> bool:
        """Whether items of private datasets may be sent there: the operator says so, or they stay on the machine."""
        return self.private or (self.discovery is None and all(place.is_local for place in self.places))

    def written(self) -> str | dict[str, Any]:
        """The form in which an operator would write it; `parse_operator_endpoints` reads it back."""
        said = self.model_dump(mode="json", exclude_defaults=True)
        if self.discovery is not None:
            said["discovery"] = self.discovery.plain()
        return said["url"] if said.keys() == {"url"} else said


def parse_operator_endpoints(text: str, *, source: str) -> dict[str, OperatorEndpoint]:
    """Read the operator's endpoints.

    Args:
        text: a JSON object of endpoint ids, each with a URL or an object; empty for none.
        source: the variable or file that it comes from, for messages.

    Raises:
        BadInputError: with the endpoint, the key and what to do. User names, queries and fragments of URLs, which may
            be secrets, are not repeated.
    """
    pairs = operator_object(text, source=source, example=_EXAMPLE)
    return {name: _operator_endpoint(name, value, source) for name, value in pairs.items()}


def operator_endpoints_json(endpoints: Mapping[str, OperatorEndpoint]) -> str:
    """The JSON that `parse_operator_endpoints` reads back as the same endpoints."""
    return json.dumps({name: endpoint.written() for name, endpoint in endpoints.items()})


def _operator_endpoint(name: str, value: Any, source: str) -> OperatorEndpoint:
    where = f"{source}: endpoint {quoted(name)}"
    if not name or len(name) > _MAX_ID or not name.isprintable() or "://" in name:
        raise BadInputError(f"{where} is no id; use letters, digits, '.', '_', '-' and '/', e.g. prod or org/model")
    if not isinstance(value, (str, dict)):
        raise BadInputError(
            f"{where} is neither text nor an object; write a URL, or an object with a url, replicas or discovery"
        )
    try:
        # By way of JSON, where a list is a tuple and a number is no text.
        return OperatorEndpoint.model_validate_json(json.dumps(_spelt_out(value)), strict=True, context=HANDED_IN)
    except OddUrlError as odd:
        raise BadInputError(f"{where}: {odd}") from None
    except ValidationError as error:
        raise BadInputError(f"{where}{_words(error)}") from None


def _spelt_out(value: str | dict[str, Any]) -> dict[str, Any]:
    """An endpoint with an object wherever a URL may stand for one."""
    if isinstance(value, str):
        return {"url": value}
    replicas, template = value.get("replicas"), value.get("chat_template")
    if isinstance(template, str):
        value = {**value, "chat_template": {"path": template}}
    if not isinstance(replicas, list):
        return value
    return {**value, "replicas": [{"url": one} if isinstance(one, str) else one for one in replicas]}


def _words(error: ValidationError) -> str:
    """The first fault: the key, what stands there, and what to do."""
    fault = error.errors(include_url=False)[0]
    path = tuple(part for part in fault["loc"] if part not in ("dns", "endpoint_slices"))
    key, kind = path_text(path) if path else "", fault["type"]
    mend = (fault.get("ctx") or {}).get("mend")
    if mend is not None:
        return f" {fault['msg']}; {mend}"
    if kind == "extra_forbidden":
        return f": {key} is an unknown key; " + (
            "remove it" if len(path) > 1 else f"known: {', '.join(OperatorEndpoint.model_fields)}"
        )
    if kind == "missing":
        return f": {key} is missing; add it"
    value = fault["input"]
    # An object or a list may hold URLs with secrets.
    if isinstance(value, (dict, list)):
        said = "an object" if isinstance(value, dict) else "a list"
    else:
        said = shown(value) if isinstance(value, str) else quoted(value)
    return f": {key} is {said}; {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _fault(message: str, mend: str) -> PydanticCustomError:
    return PydanticCustomError("operator_endpoint", "{fault}", {"fault": message, "mend": mend})
