"""The answering check as a suite asks for it: models that answer an item's wordings before the audited one does."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from proctor.domain.backends import Backend
from proctor.domain.base import Section
from proctor.domain.canonical import json_digest
from proctor.domain.field_words import Words
from proctor.domain.suite_types import ContentHash, Endpoint, ServedName
from proctor.domain.trial import Decoding

#: Solvers of a check, and their samples of a wording.
MAX_SOLVERS: Final = 5
MAX_SAMPLES: Final = 32


def _named(endpoint: str) -> str:
    if "://" in endpoint:
        raise PydanticCustomError(
            "solver_url",
            "is a URL, and solvers are asked only at endpoints that the operator has named",
            {"mend": "have the operator name it in PROCTOR_ENDPOINTS, and write its id"},
        )
    return endpoint


def _drawn(decoding: Decoding) -> Decoding:
    if decoding.temperature == 0.0 or decoding.seed is not None:
        raise PydanticCustomError(
            "samples_alike",
            "has {cause}, with which a solver gives the same answer again and again",
            {
                "cause": "temperature 0" if decoding.temperature == 0.0 else "a seed",
                "mend": "samples have to differ by chance: give a temperature above 0, and no seed",
            },
        )
    return decoding


class SolverSection(Section):
    """A model that answers both wordings of an item; never the audited one."""

    model: Annotated[str, Words(example='the model\'s name, e.g. "org/solver"')] = Field(
        min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$"
    )
    """The solver, by name, e.g. org/solver."""
    endpoint: Annotated[Endpoint, AfterValidator(_named), Words(example='an endpoint\'s id, e.g. "solver"')]
    """The id of an endpoint that the operator has named."""
    backend: Backend | None = None
    """How the endpoint is spoken to; by default as the operator says, or told from its URL."""
    served_name: ServedName = None
    """The name under which the endpoint serves it; by default the last part of model."""
    version: ContentHash | None = None
    """Content hash of its weights, checked where the endpoint reports it."""
    chat_template: Literal["none", "user"] | None = None
    """`user` asks it as one user message, `none` by a completion; by default as prompt_config does."""

    @property
    def name_on_endpoint(self) -> str:
        """The name to ask the endpoint for."""
        return self.served_name or self.model.rsplit("/", 1)[-1]


class AnsweringCheckSection(Section):
    """Whether other models answer a rewording as they answer its item; absent, nobody is asked."""

    solvers: tuple[SolverSection, ...] = Field(min_length=1, max_length=MAX_SOLVERS)
    """The models that answer."""
    samples: int = Field(default=5, ge=2, le=MAX_SAMPLES)
    """Answers of each solver to each wording."""
    alpha: float = Field(default=0.05, gt=0.0, le=0.5)
    """The share of the rewordings found to disagree, as a fraction, that may be found so by chance."""
    min_skill: float = Field(default=0.5, ge=0.0, le=1.0)
    """The share of the items, beyond what guessing gives, that a solver must know to be heard."""
    disagreeing: Literal["held", "listed"] = "held"
    """`held` leaves rewordings that disagree out of the audit, until a person has read them; `listed` asks them all the
    same."""
    allowed: tuple[str, ...] = Field(default=(), max_length=10_000)
    """Identifiers of rewordings that a person has read and found right, which are asked whatever solvers say."""
    decoding: Annotated[
        Decoding, AfterValidator(_drawn), Words(inside=(("stop", "Texts at which an answer of a solver ends."),))
    ] = Decoding(temperature=0.7)
    """How the solvers' answers are drawn."""

    @model_validator(mode="after")
    def _solvers_differ(self) -> Self:
        models = [(one.model, one.version, one.endpoint) for one in self.solvers]
        if len(set(models)) != len(models):
            raise PydanticCustomError(
                "solver_twice", "names a solver twice", {"mend": "name each once, and raise samples instead"}
            )
        return self

    @model_validator(mode="after")
    def _samples_can_tell(self) -> Self:
        if smallest_p(self.samples, len(self.solvers)) > self.alpha:
            raise PydanticCustomError(
                "too_few_samples",
                "has samples {samples}, by which nothing could be held: no p is below {least}, and alpha is {alpha}",
                {
                    "samples": self.samples,
                    "least": f"{smallest_p(self.samples, len(self.solvers)):.2g}",
                    "alpha": self.alpha,
                    "mend": f"raise samples to {fewest_samples(self.alpha, len(self.solvers))} or more"
                    if fewest_samples(self.alpha, len(self.solvers)) is not None
                    else "raise alpha",
                },
            )
        return self

    @property
    def rule_digest(self) -> str:
        """Digest of what decides the check's word on a rewording: all but where solvers are, and what persons say."""
        plain = self.plain()
        solvers = [{key: one[key] for key in ("model", "version", "chat_template")} for one in plain["solvers"]]
        return json_digest({**plain, "solvers": solvers, "allowed": None, "disagreeing": None})


def smallest_p(samples: int, solvers: int) -> float:
    """The smallest p of the test that both wordings are answered alike: each solver gives one answer to the one wording
    and another to the other, samples of each.
    """
    return min(1.0, 2.0 / math.comb(2 * samples, samples)) ** solvers


def fewest_samples(alpha: float, solvers: int) -> int | None:
    """The fewest samples by which anything could be held at alpha; None where MAX_SAMPLES are too few."""
    return next((n for n in range(1, MAX_SAMPLES + 1) if smallest_p(n, solvers) <= alpha), None)


def is_audited(solver: SolverSection, model_id: str, version: str, endpoint: str, served_name: str) -> bool:
    """Whether a solver is the model under audit, as far as the suite tells.

    It is where it has the same weights, the same name without a version that says otherwise, or is asked for by the
    same name at the same endpoint.

    Args:
        solver: the solver.
        model_id: of the audited model, as are the others.
        version: a content hash, or a prefix of it.
        endpoint: as the suite names it.
        served_name: what the endpoint is asked for.
    """
    theirs = solver.version
    same_weights = theirs is not None and (theirs.startswith(version) or version.startswith(theirs))
    same_name = solver.model == model_id and theirs is None
    return same_weights or same_name or (solver.endpoint, solver.name_on_endpoint) == (endpoint, served_name)
