"""A chat template that Proctor applies itself, because the server that it asks takes text and no messages."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest

#: Characters of a template; the longest that are published have some twenty thousand.
MAX_TEMPLATE: Final = 65_536
MAX_TOKEN: Final = 200


class ChatTemplate(Frozen):
    """A template in Jinja, as `chat_template` of a tokenizer_config.json, with the tokens that it may write."""

    text: str = Field(min_length=1, max_length=MAX_TEMPLATE)
    bos_token: str = Field(default="", max_length=MAX_TOKEN)
    """Empty where the server's tokenizer puts the token before every text itself."""
    eos_token: str = Field(default="", max_length=MAX_TOKEN)

    @property
    def digest(self) -> str:
        """SHA-256 of the template's text in UTF-8."""
        return bytes_digest(self.text.encode("utf-8"))

    def on_card(self) -> dict[str, Any]:
        """What a protocol card holds of it: everything that decides what is sent."""
        return {"digest": self.digest, "bos_token": self.bos_token, "eos_token": self.eos_token}


class OperatorTemplate(Frozen):
    """Where an operator has the chat template of an endpoint: in a file, or in the endpoint's own words."""

    path: str | None = Field(default=None, min_length=1, max_length=4096)
    """A tokenizer_config.json, or a file that holds the template alone; from the root."""
    text: str | None = Field(default=None, min_length=1, max_length=MAX_TEMPLATE)
    bos_token: str | None = Field(default=None, max_length=MAX_TOKEN)
    eos_token: str | None = Field(default=None, max_length=MAX_TOKEN)
    """By default the one of the tokenizer_config.json."""
