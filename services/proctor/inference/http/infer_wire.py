"""The JSON that passes between Proctor and an endpoint of the article's contract. Pure.

The contract is `{"prompt", "task_id"}` out and `{"response"}` back. An endpoint may say more, in members of the same
object that are read where they are present: `finish_reason`, `input_tokens`, `output_tokens`, `model_version` (the
weights' content hash, `sha256:` and 12 to 64 hex digits) and `task_id` (the one it was sent).
"""

from __future__ import annotations

import json
from typing import Any

from proctor.domain.canonical import FULL_DIGEST, short_id
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.members import repeated_name
from proctor.domain.trial import FinishReason, Trial
from proctor.inference.http.reply_bounds import load_json
from proctor.inference.worker.backend import Answer, TrialFailure, check_version, printable
from proctor.inference.worker.server_faults import engine_died

_FINISH_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length"}
_MAX_COUNT = 1 << 53
#: Characters of a value that a message shows.
_SHOWN = 80


def task_id(trial: Trial, spec: EndpointSpec) -> str:
    """The trial's id, and a hash of what is asked of whom.

    The hash is for endpoints that keep answers by task: a trial's id is unique in its audit only, and another audit's
    trial of the same id has another prompt, or another model version.
    """
    return f"{trial.trial_id}-{short_id([spec.model_version, trial.prompt], length=8)}"


def request_body(trial: Trial, spec: EndpointSpec) -> bytes:
    """The JSON body of the request for a trial."""
    return json.dumps({"prompt": trial.prompt, "task_id": task_id(trial, spec)}, ensure_ascii=True).encode("ascii")


def read_answer(payload: bytes, trial: Trial, spec: EndpointSpec) -> Answer:
    """The answer in a response to a trial.

    Raises:
        TrialFailure: it is not JSON of the contract's form. Asking again may help where it is not an object with a
            response at all, or answers another task: a proxy in trouble does so as well.
        EndpointError: it names other weights than the pinned ones.
    """
    data = _object(payload)
    if "response" not in data:
        said = next((data[name] for name in ("error", "detail", "message") if isinstance(data.get(name), str)), "")
        raise TrialFailure(
            "the answer has no response" + (f": {printable(said)[:300]}" if said else ""),
            retryable=True,
            unavailable=engine_died(said[:300]),
        )
    text = data["response"]
    if not isinstance(text, str):
        raise TrialFailure(f"the answer's response is {_shown(text)}, not a text", retryable=False)
    answered_task = data.get("task_id")
    if answered_task is not None and answered_task != task_id(trial, spec):
        raise TrialFailure(f"the answer is to another task, {_shown(answered_task)}", retryable=True)
    return Answer(
        text,
        _FINISH_REASONS.get(_text(data, "finish_reason") or "", "unknown"),
        _count(data, "input_tokens"),
        _count(data, "output_tokens"),
        _digest(data, spec),
    )


def _object(payload: bytes) -> dict[str, Any]:
    try:
        data = load_json(payload, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        shown = printable(payload[:120].decode("utf-8", "replace"))
        why = f" ({error})" if isinstance(error, _NotStrictError) else ""
        raise TrialFailure(f"the answer is not JSON{why}: {shown!r}", retryable=True) from None
    if not isinstance(data, dict):
        raise TrialFailure(f"the answer is {_shown(data)}, not a JSON object", retryable=True)
    return data


class _NotStrictError(ValueError):
    """What Python's reader takes and JSON does not know, or does not define."""


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise _NotStrictError(f"{printable(repeated_name(members) or '')[:40]!r} stands in it twice")
    return found


def _no_constant(name: str) -> Any:
    raise _NotStrictError(f"{name} is no JSON")


def _text(data: dict[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is None or isinstance(value, str):
        return value
    raise TrialFailure(f"the answer's {name} is {_shown(value)}, not a text", retryable=False)


def _count(data: dict[str, Any], name: str) -> int | None:
    value = data.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT):
        return value
    raise TrialFailure(f"the answer's {name} is {_shown(value)}, not a whole number from 0", retryable=False)


def _digest(data: dict[str, Any], spec: EndpointSpec) -> str | None:
    version = _text(data, "model_version")
    if version is None:
        return None
    check_version(spec, version)
    return version if FULL_DIGEST.fullmatch(version) else None


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        # Deep ones cannot be written again, and none says more than its kind.
        return "an object" if isinstance(value, dict) else "a list"
    return printable(json.dumps(value[:_SHOWN] if isinstance(value, str) else value))[:_SHOWN]
