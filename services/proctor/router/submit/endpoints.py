"""Which endpoints a suite asks: those of the model under audit, of the model that rewords, of the routers, and of the
solvers of the answering check (`proctor.router.submit.solvers`)."""

from __future__ import annotations

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.suite import Suite
from proctor.router.submit.allowed import Allowed, allowed_endpoint
from proctor.router.submit.solvers import solver_endpoints
from proctor.router.submit.specs import endpoint_spec, held_endpoint
from proctor.runtime.settings import Settings

_AUDITED = "model_config.endpoint"
_PARAPHRASER = "perturbation_config.paraphraser.endpoint"
_ROUTER = "protocol_config.router.endpoint"


def resolve_endpoint(suite: Suite, settings: Settings, *, at_terminal: bool = False) -> EndpointSpec:
    """Find the endpoint of the model under audit.

    Args:
        suite: names it.
        settings: the operator's endpoints.
        at_terminal: whether a person at this machine's terminal started the audit, so that a URL which no operator
            named gets the keys all the same. Never for a suite that came from elsewhere.

    Raises:
        BadInputError: for an id that the operator has not named, a URL that may not be asked, or an endpoint that may
            not see the suite's private dataset.
    """
    found = audited_endpoint(suite, settings)
    return endpoint_spec(
        found,
        found.backend,
        served_name=suite.model.name_on_endpoint,
        model_version=suite.model.model_version,
        chat=suite.prompt.chat_template == "user",
        chat_field="prompt_config.chat_template",
        own=True,
        at_terminal=at_terminal,
    )


def resolve_paraphraser(suite: Suite, settings: Settings, *, at_terminal: bool = False) -> EndpointSpec | None:
    """Find the endpoint of the model that rewords; None where no strategy of the suite asks one.

    It is `paraphraser.endpoint`, else the endpoint that the operator named like `paraphrase_model`, else the one of
    the model under audit, which then serves both.

    Raises:
        BadInputError: when a strategy asks a model and the suite names none; and as `resolve_endpoint` does.
    """
    name, section = paraphrase_model(suite), suite.perturbation.paraphraser
    found = paraphraser_endpoint(suite, settings)
    if name is None or found is None:
        return None
    served = section.served_name or name.rsplit("/", 1)[-1]
    return endpoint_spec(
        found,
        section.backend,
        served_name=served,
        model_version=section.version,
        chat=section.chat_template == "user",
        chat_field="perturbation_config.paraphraser.chat_template",
        own=_has_own(section.endpoint, name, settings) or served == suite.model.name_on_endpoint,
        at_terminal=at_terminal,
    )


def resolve_router(suite: Suite, settings: Settings, *, at_terminal: bool = False) -> EndpointSpec | None:
    """Find the endpoint of the routers' model; None where the suite asks no routers.

    It is `router.endpoint`, else the endpoint that the operator named like `router.model`, else the one of the model
    under audit, which then serves both. Without a name of its own the router is the model under audit.

    Raises:
        BadInputError: as `resolve_endpoint` does.
    """
    section, found = suite.protocol.router, router_endpoint(suite, settings)
    if found is None:
        return None
    itself = section.model is None
    name = suite.model.name_on_endpoint if section.model is None else section.model.rsplit("/", 1)[-1]
    served = section.served_name or name
    return endpoint_spec(
        found,
        section.backend,
        served_name=served,
        model_version=section.version or (suite.model.model_version if itself else None),
        chat=asks_routers_by_chat(suite),
        chat_field="protocol_config.router.chat_template",
        own=_has_own(section.endpoint, section.model, settings) or served == suite.model.name_on_endpoint,
        at_terminal=at_terminal,
    )


def audited_endpoint(suite: Suite, settings: Settings) -> Allowed:
    """Where the model under audit is asked, and what the operator says of it.

    Raises:
        BadInputError: as `resolve_endpoint` does.
    """
    found = held_endpoint(suite, allowed_endpoint(_AUDITED, suite.model.endpoint, settings), _AUDITED, settings)
    # A model that is asked at the same place is spoken to in the same way.
    return found._replace(backend=suite.model.backend or found.backend)


def paraphraser_endpoint(suite: Suite, settings: Settings) -> Allowed | None:
    """Where the model that rewords is asked; None where no strategy asks one.

    Raises:
        BadInputError: as `resolve_paraphraser` does.
    """
    name, section = paraphrase_model(suite), suite.perturbation.paraphraser
    if name is None:
        return None
    return _beside(_PARAPHRASER, section.endpoint, name, suite, settings)


def router_endpoint(suite: Suite, settings: Settings) -> Allowed | None:
    """Where the routers are asked; None where the suite has none.

    Raises:
        BadInputError: as `resolve_router` does.
    """
    section = suite.protocol.router
    if not suite.protocol.asks_routers:
        return None
    return _beside(_ROUTER, section.endpoint, section.model, suite, settings)


def asked_endpoints(suite: Suite, settings: Settings) -> dict[str, Allowed]:
    """Every endpoint that an audit by a suite asks, by the field under which a person finds it.

    Raises:
        BadInputError: as `resolve_endpoint`, `resolve_paraphraser` and `resolve_router` do.
    """
    found = {
        _AUDITED: audited_endpoint(suite, settings),
        _PARAPHRASER: paraphraser_endpoint(suite, settings),
        _ROUTER: router_endpoint(suite, settings),
    }
    return {field: one for field, one in found.items() if one is not None} | solver_endpoints(suite, settings)


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
    solvers = () if section.answering_check is None else section.answering_check.solvers
    beside = (reworder, router, *(solver.endpoint for solver in solvers))
    return (suite.model.endpoint, *(name for name in beside if name is not None))


def _has_own(endpoint: str | None, model: str | None, settings: Settings) -> bool:
    """Whether a model beside the audited one has an endpoint of its own, and is not asked at the audited one's."""
    return endpoint is not None or model in settings.endpoints


def _beside(field: str, endpoint: str | None, model: str | None, suite: Suite, settings: Settings) -> Allowed:
    """The endpoint of a model beside the audited one: its own, the one that is named like it, or the audited's."""
    if endpoint is not None:
        return held_endpoint(suite, allowed_endpoint(field, endpoint, settings), field, settings)
    if model is not None and model in settings.endpoints:
        return held_endpoint(suite, allowed_endpoint(field, model, settings), field, settings)
    return audited_endpoint(suite, settings)
