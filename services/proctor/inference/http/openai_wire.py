"""The JSON that passes between the OpenAI-compatible client and its endpoint. Pure."""

from __future__ import annotations

import json
from typing import Any

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Decoding, FinishReason
from proctor.inference.http.reply_bounds import load_json
from proctor.inference.worker.backend import Answer, TrialFailure, printable
from proctor.inference.worker.server_faults import engine_died

_FINISH_REASONS: dict[object, FinishReason] = {"stop": "stop", "length": "length"}


def request_body(spec: EndpointSpec, prompt: str, decoding: Decoding) -> tuple[str, bytes]:
    """Path below the base URL, and the JSON body, of the request for one prompt."""
    body: dict[str, Any] = {
        "model": spec.served_name,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens,
        "stream": False,
    }
    if decoding.seed is not None:
        body["seed"] = decoding.seed
    if decoding.stop:
        body["stop"] = list(decoding.stop)
    if spec.chat:
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    path = "/chat/completions" if spec.chat else "/completions"
    return path, json.dumps(body, ensure_ascii=True).encode("ascii")


def read_answer(payload: bytes, *, chat: bool) -> Answer:
    """The answer in a response.

    Raises:
        TrialFailure: it is not JSON of the expected form, or holds no text. Asking again may help: a proxy in
            trouble answers so as well.
    """
    try:
        data = load_json(payload)
    except (ValueError, RecursionError):
        shown = printable(payload[:120].decode("utf-8", "replace"))
        raise TrialFailure(f"the response is not JSON: {shown!r}", retryable=True) from None
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        said = _said(data.get("error")) if isinstance(data, dict) else ""
        raise TrialFailure(
            "the response has no choices" + (f": {said}" if said else ""), retryable=True, unavailable=engine_died(said)
        )
    choice = choices[0]
    if chat:
        message = choice.get("message")
        text = message.get("content") if isinstance(message, dict) else None
    else:
        text = choice.get("text")
    if not isinstance(text, str):
        given = choice.get("finish_reason")
        # Only a text is shown: a list can be too deep to be written again.
        reason = printable(given)[:40] if isinstance(given, str) else type(given).__name__
        raise TrialFailure(f"the response holds no text (finish_reason {reason})", retryable=False)
    reason_given = choice.get("finish_reason")
    finish: FinishReason = _FINISH_REASONS.get(reason_given, "unknown") if isinstance(reason_given, str) else "unknown"
    usage = data.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Answer(_valid(text), finish, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _said(error: object) -> str:
    """An endpoint's error object in one line; the message in it is its usual place."""
    if isinstance(error, dict):
        error = error.get("message")
    return printable(error)[:300] if isinstance(error, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _valid(text: str) -> str:
    """The text with lone surrogates, which JSON escapes can smuggle in, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
