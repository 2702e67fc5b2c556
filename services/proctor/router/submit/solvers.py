"""Where the solvers of the answering check are asked, and that none of them is the model under audit."""

from __future__ import annotations

from typing import Final

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.suite import Suite
from proctor.router.submit.allowed import Allowed, allowed_endpoint
from proctor.router.submit.specs import endpoint_spec, held_endpoint
from proctor.runtime.settings import Settings

_FIELD: Final = "perturbation_config.answering_check.solvers[{}].endpoint"


def solver_endpoints(suite: Suite, settings: Settings) -> dict[str, Allowed]:
    """Where each solver of a suite is asked, by the field under which a person finds it; none without the check.

    Raises:
        BadInputError: for an id that the operator has not named, or an endpoint that may not see the suite's private
            dataset.
    """
    check, found = suite.perturbation.answering_check, dict[str, Allowed]()
    for number, solver in enumerate(() if check is None else check.solvers):
        field = _FIELD.format(number)
        if solver.endpoint not in settings.endpoints:
            raise BadInputError(
                f"{field} is {solver.endpoint!r}, which is not the id of an endpoint here (known: "
                f"{', '.join(sorted(settings.endpoints)) or 'none'}); have the operator name it in PROCTOR_ENDPOINTS"
            )
        found[field] = held_endpoint(suite, allowed_endpoint(field, solver.endpoint, settings), field, settings)
    return found


def resolve_solvers(
    suite: Suite, audited: EndpointSpec, settings: Settings, *, at_terminal: bool = False
) -> tuple[EndpointSpec, ...]:
    """Find the endpoints of a suite's solvers, in their order; none without the check.

    Args:
        suite: names them.
        audited: the endpoint of the model under audit.
        settings: the operator's endpoints.
        at_terminal: whether a person at this machine's terminal started the audit.

    Raises:
        BadInputError: as `solver_endpoints` does, and for a solver that is the model under audit.
    """
    check = suite.perturbation.answering_check
    if check is None:
        return ()
    specs = []
    for solver, (field, found) in zip(check.solvers, solver_endpoints(suite, settings).items(), strict=True):
        spec = endpoint_spec(
            found,
            solver.backend,
            served_name=solver.name_on_endpoint,
            model_version=solver.version,
            chat=(solver.chat_template or suite.prompt.chat_template) == "user",
            chat_field=field.removesuffix("endpoint") + "chat_template",
            own=True,
            at_terminal=at_terminal,
        )
        if _is_audited(spec, audited):
            raise BadInputError(
                f"{field} is {solver.endpoint!r}, where {spec.served_name!r} is the model under audit: what it "
                "remembers would judge its own test; name another model"
            )
        specs.append(spec)
    return tuple(specs)


def _is_audited(solver: EndpointSpec, audited: EndpointSpec) -> bool:
    """Whether the same model is asked on a server of both; the contract `infer` names none."""
    same_name = solver.served_name == audited.served_name or "infer" in (solver.backend, audited.backend)
    return same_name and not _urls(solver).isdisjoint(_urls(audited))


def _urls(spec: EndpointSpec) -> set[str]:
    return {spec.url, *(replica.url for replica in spec.replicas)}
