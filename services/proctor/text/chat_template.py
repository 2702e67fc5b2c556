"""One user message, rendered by a chat template as the transformers library renders it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from proctor.domain.chat_template import ChatTemplate
from proctor.domain.errors import BadInputError

#: What a template is tried with: a message that stands in what it makes, or the template loses messages.
_TRIED: Final = "What is 17 + 4?\nAnswer with a number."
_SHOWN: Final = 200


class ChatTemplateError(BadInputError):
    """A template that cannot be rendered."""


def rendered(template: ChatTemplate, message: str) -> str:
    """The text that stands for a chat of one user message, up to where the answer begins.

    No tools, no documents and no date are given: a template that would write today's date writes what it does without.

    Raises:
        ChatTemplateError: the template is none, or refuses.
    """
    try:
        text: str = _compiled(template.text).render(
            messages=[{"role": "user", "content": message}],
            tools=None,
            documents=None,
            add_generation_prompt=True,
            bos_token=template.bos_token,
            eos_token=template.eos_token,
        )
        return text
    except Exception as error:
        # A template is a program of somebody else's, and raises what it likes.
        said = " ".join(str(error).split())[:_SHOWN]
        raise ChatTemplateError(f"the chat template cannot be rendered: {type(error).__name__}: {said}") from error


def hold_usable(template: ChatTemplate) -> None:
    """Raises ChatTemplateError: a template that cannot be rendered, or does not write the user's message."""
    if _TRIED not in rendered(template, _TRIED):
        raise ChatTemplateError("the chat template leaves the user's message out, or changes it")


class _Generation(Extension):
    """`{% generation %}` marks what an assistant said, for training; what stands in it is written as it is."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@lru_cache(maxsize=16)
def _compiled(text: str) -> Any:
    extensions = [loopcontrols, _Generation]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    return environment.from_string(text)


def _refuse(message: object) -> NoReturn:
    raise TemplateError(str(message))


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
    # Not Jinja's own, which escapes for HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)
