"""Chat templates as models are published with them: in a tokenizer_config.json, or alone in a file."""

from __future__ import annotations

import json
from typing import Any, Final

from proctor.domain.chat_template import MAX_TEMPLATE, MAX_TOKEN, ChatTemplate
from proctor.domain.errors import BadInputError

#: Of a tokenizer_config.json, which may list every added token.
MAX_FILE_BYTES: Final = 4 << 20
_DEFAULT: Final = "default"


def parse_chat_template(
    data: bytes, source: str, *, bos_token: str | None = None, eos_token: str | None = None
) -> ChatTemplate:
    """The chat template in a file.

    Args:
        data: the file's; a JSON object is taken for a tokenizer_config.json, all else for the template itself.
        source: its name, for messages.
        bos_token: what the template may write for it; by default nothing, because a server that takes text puts the
            token before it by itself, and would have it twice.
        eos_token: the same; by default the one of the tokenizer_config.json.

    Raises:
        BadInputError: when there is no template in it, none that is the default, or one that is too long.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInputError(f"{source} is not UTF-8 text; name a tokenizer_config.json or a chat template") from None
    config = _config(text, source) if text.lstrip().startswith('{"') or source.endswith(".json") else None
    if config is not None:
        text = _template_of(config, source)
        eos_token = _token(config.get("eos_token")) if eos_token is None else eos_token
    if not text.strip():
        raise BadInputError(f"{source} holds no chat template; name a tokenizer_config.json or a chat template")
    if len(text) > MAX_TEMPLATE:
        raise BadInputError(
            f"{source} holds a chat template of {len(text):,} characters; a template has at most {MAX_TEMPLATE:,}"
        )
    return ChatTemplate(text=text, bos_token=bos_token or "", eos_token=eos_token or "")


def _config(text: str, source: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInputError(f"{source} is no JSON object; name a tokenizer_config.json or a chat template")
    return found


def _template_of(config: dict[str, Any], source: str) -> str:
    found = config.get("chat_template")
    if isinstance(found, list):
        # Several, by name, as some models are published.
        named = {one["name"]: one.get("template") for one in found if isinstance(one, dict) and _is_name(one)}
        found = named.get(_DEFAULT)
    if not isinstance(found, str):
        raise BadInputError(
            f"{source} has no chat_template; the model may be published with it in a file of its own "
            "(chat_template.jinja): name that"
        )
    return found


def _is_name(one: dict[str, Any]) -> bool:
    return isinstance(one.get("name"), str)


def _token(value: Any) -> str:
    """A special token: a text, or an object that describes it."""
    said = value.get("content") if isinstance(value, dict) else value
    return said if isinstance(said, str) and len(said) <= MAX_TOKEN else ""
