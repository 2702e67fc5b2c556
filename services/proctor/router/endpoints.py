"""Which endpoints a suite asks: those of the model under audit, of the model that rewords, and of the routers."""

from __future__ import annotations

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.suite import Backend, Suite
from proctor.runtime.settings import Settings

#: URL scheme of an endpoint → how it is spoken to.
_BACKENDS: dict[str, Backend] = {
    "grpc": "triton",
    "grpcs": "triton",
    "http": "openai",
    "https": "openai",
    "in-process": "in_process",
}


def backend_of(url: str) -> Backend:
    """How an endpoint is spoken to when nothing says it: by its scheme, and by the path `/infer` of the article.

    Raises:
        BadInputError: for a scheme that no backend speaks.
    """
    scheme, _, address = url.partition("://")
    path = address.partition("#")[0].partition("?")[0]
    if scheme in ("http", "https") and path.rstrip("/").endswith("/infer"):
        return "infer"
    if scheme not in _BACKENDS:
        raise BadInputError(
            f"the endpoint {url[:200]!r} has no known scheme; write grpc, grpcs, http or https before ://"
        )
    return _BACKENDS[scheme]


def resolve_endpoint(suite: Suite, settings: Settings) -> EndpointSpec:
    """Find the endpoint of the model under audit.

    Raises:
        BadInputError: for an id that the operator has not named, or a URL that no backend speaks.
    """
    url = _url("model_config.endpoint", suite.model.endpoint, settings)
    return EndpointSpec(
        backend=suite.model.backend or backend_of(url),
        url=url,
        served_name=suite.model.name_on_endpoint,
        model_version=suite.model.model_version,
        chat=suite.prompt.chat_template == "user",
    )


def resolve_paraphraser(suite: Suite, settings: Settings) -> EndpointSpec | None:
    """Find the endpoint of the model that rewords; None where no strategy of the suite asks one.

    It is `paraphraser.endpoint`, else the endpoint that the operator named like `paraphrase_model`, else the one of
    the model under audit, which then serves both.

    Raises:
        BadInputError: when a strategy asks a model and the suite names none, for an id that the operator has not
            named, or a URL that no backend speaks.
    """
    name, section = paraphrase_model(suite), suite.perturbation.paraphraser
    if name is None:
        return None
    if section.endpoint is not None:
        url = _url("perturbation_config.paraphraser.endpoint", section.endpoint, settings)
        backend = section.backend or backend_of(url)
    elif name in settings.endpoints:
        url = settings.endpoints[name]
        backend = section.backend or backend_of(url)
    else:
        audited = resolve_endpoint(suite, settings)
        url, backend = audited.url, section.backend or audited.backend
    return EndpointSpec(
        backend=backend,
        url=url,
        served_name=section.served_name or name.rsplit("/", 1)[-1],
        model_version=section.version,
        chat=section.chat_template == "user",
    )


def paraphraser_notes(suite: Suite, settings: Settings) -> tuple[str, ...]:
    """What a person should know of where the rewording model is asked, before the audit.

    Raises:
        BadInputError: as `resolve_paraphraser` does.
    """
    found = resolve_paraphraser(suite, settings)
    if found is None or found.backend != "infer" or suite.perturbation.paraphraser.endpoint is not None:
        return ()
    name = suite.perturbation.paraphrase_model
    if name in settings.endpoints:
        return ()
    return (
        f"paraphrase_model {name!r} is asked at the audited model's endpoint, {found.url}, whose contract names no "
        "model: whatever answers there rewords; name its own in paraphraser.endpoint, or in PROCTOR_ENDPOINTS under "
        "that id",
    )


def resolve_router(suite: Suite, settings: Settings) -> EndpointSpec | None:
    """Find the endpoint of the routers' model; None where the suite asks no routers.

    It is `router.endpoint`, else the endpoint that the operator named like `router.model`, else the one of the model
    under audit, which then serves both. Without a name of its own the router is the model under audit.

    Raises:
        BadInputError: for an id that the operator has not named, or a URL that no backend speaks.
    """
    if not suite.protocol.asks_routers:
        return None
    section, audited = suite.protocol.router, resolve_endpoint(suite, settings)
    url, backend = audited.url, section.backend or audited.backend
    if section.endpoint is not None:
        url = _url("protocol_config.router.endpoint", section.endpoint, settings)
        backend = section.backend or backend_of(url)
    elif section.model is not None and section.model in settings.endpoints:
        url = settings.endpoints[section.model]
        backend = section.backend or backend_of(url)
    itself = section.model is None
    name = audited.served_name if section.model is None else section.model.rsplit("/", 1)[-1]
    return EndpointSpec(
        backend=backend,
        url=url,
        served_name=section.served_name or name,
        model_version=section.version or (audited.model_version if itself else None),
        chat=asks_routers_by_chat(suite),
    )


def asks_routers_by_chat(suite: Suite) -> bool:
    """Whether routers are asked by chat; by default as the audited model is."""
    return (suite.protocol.router.chat_template or suite.prompt.chat_template) == "user"


def router_model(suite: Suite) -> str | None:
    """The routers' model by name; None where the suite asks no routers."""
    return (suite.protocol.router.model or suite.model.model_id) if suite.protocol.asks_routers else None


def paraphrase_model(suite: Suite) -> str | None:
    """The model that rewords; None where no strategy of the suite asks one.

    Raises:
        BadInputError: when a strategy asks one and the suite names none.
    """
    section = suite.perturbation
    if not section.asks_a_model:
        return None
    if section.paraphrase_model is None:
        raise BadInputError(
            f"perturbation_strategy {section.perturbation_strategy!r} needs paraphrase_model, the model that rewords: "
            "name it in perturbation_config.paraphrase_model, e.g. org/paraphrase-model"
        )
    return section.paraphrase_model


def named_endpoints(suite: Suite) -> tuple[str, ...]:
    """The URLs and operator's ids under which a suite looks for its models."""
    section = suite.perturbation
    reworder = section.paraphraser.endpoint or section.paraphrase_model if section.asks_a_model else None
    router = suite.protocol.router.endpoint or suite.protocol.router.model if suite.protocol.asks_routers else None
    return (suite.model.endpoint, *(name for name in (reworder, router) if name is not None))


def _url(field: str, endpoint: str, settings: Settings) -> str:
    if "://" in endpoint:
        return endpoint
    if endpoint not in settings.endpoints:
        known = ", ".join(sorted(settings.endpoints)) or "none"
        raise BadInputError(
            f"{field} is {endpoint!r}, which is not the id of an endpoint here (known: {known}); write a URL, or name "
            "it in PROCTOR_ENDPOINTS"
        )
    return settings.endpoints[endpoint]
