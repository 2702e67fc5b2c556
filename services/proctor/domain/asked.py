"""What of a suite's settings was in force when a model was asked. What was not does not stand on a card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from proctor.domain.backends import BACKENDS
from proctor.domain.base import Frozen
from proctor.domain.chat_template import ChatTemplate
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import PluginError
from proctor.domain.log_origin import CHAT, DECODING_SETTINGS, UNKNOWN

#: The name by which an endpoint is asked for the model.
SERVED_NAME: Final = "served_name"
#: Settings that a backend may put in force or not. What a plug-in's backend says of itself are names of these.
SETTINGS: Final = (*DECODING_SETTINGS, CHAT, SERVED_NAME)
#: Attribute of a plug-in's backend: the settings that it puts in force.
IN_FORCE: Final = "in_force"
#: Built-in backend → settings that it does not send. The article's contract holds a prompt, and nothing else.
_NOT_SENT: Final[Mapping[str, tuple[str, ...]]] = {"infer": SETTINGS}


class Asked(Frozen):
    """Of one model: what its endpoint was not sent, and what Proctor made of a message before it sent it."""

    not_sent: tuple[str, ...] = ()
    chat_template: ChatTemplate | None = None

    def said(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings by their names in `SETTINGS`, those that were not in force as `unknown`."""
        return {name: UNKNOWN if name in self.not_sent else value for name, value in settings.items()}

    def chat(self, said: Any) -> dict[str, Any]:
        """`chat_template` as it stands on a card, with the template that was applied."""
        held = {"chat_template": UNKNOWN if CHAT in self.not_sent else said}
        return held if self.chat_template is None else {**held, "applied_template": self.chat_template.on_card()}


class AskedModels(Frozen):
    """Of every model of an audit."""

    audited: Asked = Asked()
    paraphraser: Asked = Asked()
    router: Asked = Asked()
    solvers: tuple[Asked, ...] = ()


def in_force(backend: str) -> frozenset[str]:
    """The settings that a backend puts in force. A plug-in's says it of itself; what it does not say is not known."""
    if backend in BACKENDS.built_in:
        return frozenset(SETTINGS) - frozenset(_NOT_SENT.get(backend, ()))
    try:
        said = getattr(BACKENDS.get(backend), IN_FORCE, ())
    except PluginError:
        # Whoever asks by it will say what is wrong with it.
        return frozenset()
    return frozenset(said) & frozenset(SETTINGS) if isinstance(said, (set, frozenset, tuple, list)) else frozenset()


def asked_of(spec: EndpointSpec | None) -> Asked:
    """What is in force where an endpoint is asked; of no endpoint everything."""
    if spec is None:
        return Asked()
    sent = in_force(spec.backend)
    return Asked(
        not_sent=tuple(name for name in SETTINGS if name not in sent),
        chat_template=spec.chat_template if spec.chat else None,
    )
