"""A reference model behind OpenAI's HTTP API, which keeps the digest of every prompt that reaches it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.inference.reference.model import Generation, ReferenceModel
from proctor.inference.reference.sampling import Sampling, generate
from proctor.inference.reference.triton_repository import VERSION
from tests.answering_http import Asked, Reply, serving


@dataclass
class ServedModel:
    url: str
    """With /v1."""
    prompts: Counter[str] = field(default_factory=Counter)
    """SHA-256 of a prompt → how often it was asked."""
    settings: Counter[str] = field(default_factory=Counter)
    """What beside the prompt was sent, as JSON → how often."""


#: Prompts in one forward pass of those that are known beforehand.
_BATCH = 64


@contextmanager
def serving_reference(
    bundle: Path, name: str, *, known: Iterable[str] = (), max_tokens: int = 8
) -> Iterator[ServedModel]:
    """`name` at an address of its own, for completions and for chat.

    Args:
        known: prompts whose answers are worked out beforehand, since a prompt a pass takes twenty times as long.
        max_tokens: with which they will be asked.
    """
    model, one_at_a_time = ReferenceModel.load(bundle / "models" / name / VERSION), threading.Lock()
    served, said_before = ServedModel(""), dict[tuple[str, Sampling], Generation]()
    first = list(known)
    for start in range(0, len(first), _BATCH):
        asked = [(prompt, Sampling(max_tokens)) for prompt in first[start : start + _BATCH]]
        said_before.update(zip(asked, generate(model, asked), strict=True))

    def answer(number: int, asked: Asked) -> Reply:
        del number
        if asked.body is None:
            return _reply({"object": "list", "data": [{"id": name, "object": "model"}]})
        chat, body = asked.path.endswith("/chat/completions"), dict(asked.body)
        prompts = _prompts(body.pop("messages" if chat else "prompt"), chat=chat)
        sampling = Sampling(body.get("max_tokens", 16), tuple(body.get("stop") or ()))
        with one_at_a_time:
            served.prompts.update(hashlib.sha256(prompt.encode()).hexdigest() for prompt in prompts)
            served.settings[json.dumps(body, sort_keys=True)] += len(prompts)
            new = [key for prompt in prompts if (key := (prompt, sampling)) not in said_before]
            said_before.update(zip(new, generate(model, new), strict=True))
            said = [said_before[prompt, sampling] for prompt in prompts]
        choices: list[dict[str, Any]] = []
        for place, one in enumerate(said):
            text = {"message": {"role": "assistant", "content": one.text}} if chat else {"text": one.text}
            choices.append({"index": place, **text, "finish_reason": one.finish_reason, "logprobs": None})
        read, written = sum(one.input_tokens for one in said), sum(one.output_tokens for one in said)
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        kind = "chat.completion" if chat else "text_completion"
        return _reply({"id": "1", "object": kind, "created": 0, "model": name, "choices": choices, "usage": usage})

    with serving(answer) as server:
        served.url = f"{server.url}/v1"
        yield served


def _prompts(asked: Any, *, chat: bool) -> list[str]:
    if chat:
        (message,) = asked
        assert message["role"] == "user"
        content = message["content"]
        return [content if isinstance(content, str) else "".join(part["text"] for part in content)]
    return [asked] if isinstance(asked, str) else list(asked)


def _reply(document: Any) -> Reply:
    return Reply(body=json.dumps(document).encode(), headers={"content-type": "application/json"})
