"""How a message becomes what a server takes: as the server does it, or by the template that the operator has for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from proctor.domain.asked import in_force
from proctor.domain.backends import BACKENDS, TEMPLATED
from proctor.domain.chat_template import ChatTemplate, OperatorTemplate
from proctor.domain.errors import BadInputError
from proctor.domain.log_origin import CHAT
from proctor.domain.url import shown
from proctor.formats.chat_templates import MAX_FILE_BYTES, parse_chat_template
from proctor.formats.named_file import read_named_file
from proctor.router.submit.allowed import Allowed
from proctor.text.chat_template import hold_usable

#: The contract whose server is sent a prompt, and does with it what it was set up to.
_SILENT: Final = "infer"


def applied_template(found: Allowed, backend: str, *, field: str, own: bool) -> ChatTemplate | None:
    """The template by which a message is made a text before it is sent; None where the server is sent the message.

    Args:
        found: the endpoint.
        backend: how it is spoken to.
        field: where the suite asks by chat, for messages.
        own: whether the endpoint was named for the model that is asked, and does not only stand in.

    Raises:
        BadInputError: when the server takes text alone and there is no template for the model, or one that cannot be
            used.
    """
    if CHAT in in_force(backend) and backend not in (TEMPLATED, "in_process"):
        return None
    if backend == _SILENT:
        return None
    where = f"{field} is 'user', and {shown(found.name)} is asked as {backend}"
    if backend != TEMPLATED:
        why = "has no chat template" if backend in BACKENDS.built_in else "does not say that it asks by chat"
        raise BadInputError(f"{where}, which {why}; set {field} to 'none', or ask an OpenAI-compatible endpoint")
    template = found.listed.chat_template if found.listed is not None and found.whole and own else None
    if template is None:
        raise BadInputError(
            f"{where}, where a prompt is sent as it is and no chat template is applied; set {field} to 'none', ask the "
            "server's OpenAI-compatible endpoint, or have the operator give the model an id of its own in "
            'PROCTOR_ENDPOINTS with its "chat_template" (the path of its tokenizer_config.json), and name that id'
        )
    source = f"chat_template of endpoint {shown(found.name)}"
    usable = _read(template, source)
    try:
        hold_usable(usable)
    except BadInputError as error:
        raise BadInputError(f"{source}: {error}; give the template that the model was published with") from None
    return usable


def _read(template: OperatorTemplate, source: str) -> ChatTemplate:
    if template.text is not None:
        tokens = template.bos_token or "", template.eos_token or ""
        return ChatTemplate(text=template.text, bos_token=tokens[0], eos_token=tokens[1])
    path = Path(str(template.path))
    data = read_named_file(path, source, most=MAX_FILE_BYTES, mend="name a tokenizer_config.json or a template")
    tokens_given = {"bos_token": template.bos_token, "eos_token": template.eos_token}
    return parse_chat_template(data, f"{source}: {path}", **tokens_given)
