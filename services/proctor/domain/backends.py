"""The kinds of backend that an endpoint may need: how a model is spoken to, by name."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from proctor.domain.plugins import ExtensionPoint, handed_in

#: Classes of backends: `open_backend` of the inference worker says what they have to be.
BACKENDS: Final[ExtensionPoint[type]] = ExtensionPoint(
    "proctor.backends",
    "backend",
    type,
    {
        "triton": "proctor.inference.triton.backend:TritonBackend",
        "openai": "proctor.inference.http.openai:OpenAIBackend",
        "infer": "proctor.inference.http.infer:InferBackend",
        "in_process": "proctor.inference.reference.in_process:InProcessBackend",
    },
)
#: The one of them that takes text and no messages, so that Proctor applies the chat template.
TEMPLATED: Final = "triton"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class _BackendName:
    """Takes Proctor's own names, and others that could be a plug-in's.

    Of what somebody hands in (context `HANDED_IN`) the plug-in has to be here. What is on record or in a message is
    read anywhere, also by a service that has nothing to do with the plug-in.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(_known)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"enum": list(BACKENDS.names), "type": "string"}


def _known(value: Any, info: ValidationInfo) -> str:
    if isinstance(value, str):
        if value in BACKENDS.built_in:
            return value
        if _NAME.fullmatch(value) and (not handed_in(info.context) or value in BACKENDS):
            return value
    choices = BACKENDS.names
    shown = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
    raise PydanticCustomError("unknown_part", "Input should be {expected}", {"expected": shown, "choices": choices})


Backend = Annotated[str, _BackendName()]
"""A backend's name."""
