"""The router–worker protocol of arXiv 2603.21636 as a suite asks for it, and the arms that it adds to an audit.

A router sees a question and passes it on; a worker sees nothing but the messages of the routers and answers. Clean
routers transmit as fully as they can, noisy ones delete, rewrite and add noise.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from proctor.domain.backends import Backend
from proctor.domain.base import Section
from proctor.domain.field_words import Words
from proctor.domain.plugins import declared, handed_in
from proctor.domain.suite_types import ContentHash, Endpoint, ServedName
from proctor.domain.trial import Arm, Decoding

#: The paper's largest router count.
MAX_ROUTERS: Final = 9
#: Instructions for routers and worker come in versions; another text is another version.
TemplateVersion = Literal["1"]


#: The entry points of stages that plug-ins bring.
STAGES_GROUP: Final = "proctor.stages"


def _installed(kind: str, info: ValidationInfo) -> str:
    if handed_in(info.context) and kind not in declared(STAGES_GROUP):
        known = ", ".join(declared(STAGES_GROUP)) or "there is none"
        raise PydanticCustomError(
            "unknown_stage",
            "names a stage '{kind}' that no installed plug-in brings",
            {"kind": kind, "mend": f"install its plug-in where suites are read and where the router runs ({known})"},
        )
    return kind


class RouterKind(StrEnum):
    """What routers are told to do."""

    CLEAN = "clean"
    NOISY = "noisy"


Sampling = Literal["nested", "independent"]


class Route(NamedTuple):
    """One router of a condition."""

    arm: Arm
    """Of its trial: the arm that needs it first."""
    place: int
    """1 to r: where its message stands when they are put together."""
    number: int
    """What it is called in its prompt: another one for each router of a kind."""


class Condition(NamedTuple):
    """One arm of the protocol: this many parallel routers of one kind, and a worker behind them."""

    kind: RouterKind
    routers: int

    @property
    def arm(self) -> Arm:
        """Its arm."""
        return Arm(f"{self.kind}_router_{self.routers}")

    def routes(self, sampling: Sampling) -> tuple[Route, ...]:
        """Its routers, in the order in which their messages are put together.

        Nested, the r routers are the first r of one set, so that a larger r only adds messages; independent, every
        condition has routers of its own, so that conditions err separately.
        """
        places = range(1, self.routers + 1)
        if sampling == "nested":
            return tuple(Route(Condition(self.kind, place).arm, place, place) for place in places)
        before = self.routers * (self.routers - 1) // 2
        return tuple(Route(self.arm, place, before + place) for place in places)


class RouterSection(Section):
    """Which model passes the questions on, and how it is asked; by default the model under audit."""

    model: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$")
    """The routers' model, by name; by default the model under audit, as in the paper."""
    endpoint: Endpoint | None = None
    """A URL or an operator's endpoint id; by default the id that equals model, else the audited model's."""
    backend: Backend | None = None
    """How the endpoint is spoken to; by default told from its URL."""
    served_name: ServedName = None
    """The name under which the endpoint serves it; by default the last part of model, else the audited model's."""
    version: ContentHash | None = None
    """Content hash of its weights, checked where the endpoint reports it; by default the audited model's."""
    chat_template: Literal["none", "user"] | None = None
    """`user` sends the instruction as one user message, `none` as a completion; by default as prompt_config does."""
    decoding: Annotated[Decoding, Words(inside=(("stop", "Texts at which a message ends."),))] = Decoding(
        temperature=0.7, max_tokens=1024
    )
    """How its messages are drawn."""


class ProtocolSection(Section):
    """Whether the model is also asked through routers, which feeds the noise channel."""

    protocol: Literal["direct", "router_worker"] = "direct"
    """`router_worker` adds the arms of arXiv 2603.21636: clean and noisy routers, and a worker that sees no more than
    their messages. It needs multiple-choice items."""
    max_routers: int = Field(default=MAX_ROUTERS, ge=1, le=MAX_ROUTERS)
    """Noisy routers are asked in numbers of 1 to this."""
    sampling: Sampling = "nested"
    """`nested`: r routers are the first r of one set; `independent`: each r has routers of its own."""
    matched_clean: bool = True
    """Whether r clean routers are asked beside each r noisy ones, so that more calls alone explain no gain."""
    templates: TemplateVersion = "1"
    """Version of the instructions that routers and worker are given."""
    router: RouterSection = Field(default_factory=RouterSection)
    stages: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,63}$"), AfterValidator(_installed)], ...] = Field(
        default=(), max_length=16, exclude_if=lambda stages: not stages
    )
    """Stages of plug-ins, in the order in which they ask, all before the answers; not written where there are none."""

    @property
    def asks_routers(self) -> bool:
        """Whether there are routers to ask."""
        return self.protocol == "router_worker"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the protocol, clean before noisy, by rising router count; none where it is `direct`.

        The paper's own baseline, one clean router, is always the first.
        """
        if not self.asks_routers:
            return ()
        clean = self.max_routers if self.matched_clean else 1
        return (
            *(Condition(RouterKind.CLEAN, count) for count in range(1, clean + 1)),
            *(Condition(RouterKind.NOISY, count) for count in range(1, self.max_routers + 1)),
        )
