"""Whether two runs were made under one protocol, as far as their logs say so."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Any, Final

from proctor.domain.canonical import bytes_digest
from proctor.domain.problems import visible
from proctor.domain.recorded_card import FieldDifference, ProtocolComparison, compare_cards
from proctor.domain.run_log import RunLog
from proctor.evidence.paired.pairing import Pairs
from proctor.evidence.written_numbers import counted

_TEMPLATE: Final = "prompt_template.template"
_PROMPTS: Final = "prompt_template.prompts"
_CHAT: Final = "prompt_template.chat"
_CHAT_TEMPLATE: Final = "prompt_template.chat_template"
_PUT_INTO_PROMPTS: Final = ("prompt_template.n_shot", "prompt_template.fewshot_seed", "prompt_template.system_message")
_OF_GRADING: Final = frozenset({"metric.name", "metric.extractor"})
_SHOWN_CHARACTERS: Final = 80
_DIGEST_CHARACTERS: Final = len("sha256:") + 12


def compare_protocols(a: RunLog, b: RunLog, pairs: Pairs) -> ProtocolComparison:
    """The cards of two runs beside each other.

    Where no log's template is known, e.g. because options stand between question and answer, the prompts of the pairs
    themselves are compared; where those are recorded and equal, so is all that was put into them. Texts that Proctor
    graded again were graded in one way, whatever the logs' own filters do.
    """
    found = compare_cards(a.card, b.card)
    if a.regraded and b.regraded:
        found = _without(found, _OF_GRADING)
    prompts = [(a.prompt, b.prompt) for a, b in pairs.answers if a.prompt is not None and b.prompt is not None]
    if all(a == b for a, b in prompts):
        whole = len(prompts) == len(pairs.answers)
        return _without_unknown(found, _in_prompts(found)) if whole else found
    if any(one.field == _TEMPLATE for one in found.unknown):
        first, second = (
            f"{_digest(texts)}… of {counted(len(texts), 'prompt')}" for texts in zip(*prompts, strict=True)
        )
        difference = FieldDifference(field=_PROMPTS, a=first, b=second)
        found = found.model_copy(update={"differs": (*found.differs, difference)})
    return _without_unknown(found, {_TEMPLATE})


def _in_prompts(found: ProtocolComparison) -> set[str]:
    """Fields of whatever a prompt that is one whole text already holds."""
    as_text = all(card.protocol.get(_CHAT) is False for card in (found.a, found.b))
    return {_TEMPLATE, *_PUT_INTO_PROMPTS, *((_CHAT_TEMPLATE,) if as_text else ())}


def _digest(texts: tuple[str, ...]) -> str:
    return bytes_digest("\0".join(texts).encode("utf-8", "backslashreplace"))[:_DIGEST_CHARACTERS]


def _without(found: ProtocolComparison, fields: Set[str]) -> ProtocolComparison:
    kept = tuple(one for one in found.differs if one.field not in fields)
    return _without_unknown(found.model_copy(update={"differs": kept}), fields)


def _without_unknown(found: ProtocolComparison, fields: Set[str]) -> ProtocolComparison:
    kept = tuple(one for one in found.unknown if one.field not in fields)
    return found.model_copy(update={"unknown": kept})


def difference(one: FieldDifference) -> str:
    """A field that differs, with both values."""
    return f"{visible(one.field)} is {_said(one.a)} in A and {_said(one.b)} in B"


def differences(found: ProtocolComparison) -> str:
    """Each field that differs, with both values."""
    return "; ".join(map(difference, found.differs))


def refusal(a: RunLog, b: RunLog, found: ProtocolComparison) -> str:
    """Why two runs are not compared, and how to go on."""
    return (
        f"{a.source} and {b.source} were made under different protocols, so a difference between their scores need not "
        f"be one between the runs: {differences(found)}. Make them again under one protocol, or compare them all the "
        "same with --across-protocols (across_protocols=True)"
    )


def caveat(found: ProtocolComparison) -> str:
    """What a conclusion has to add of the protocols; empty where both are wholly known, and equal."""
    said = ""
    if found.differs:
        said = f" The protocols differ ({differences(found)}), so what is found may be theirs and not the runs'."
    if found.unknown:
        settings = counted(len(found.unknown), "setting")
        said += f" Of the protocols {settings} may differ, because a log does not record {_pronoun(found)}."
    return said


def _pronoun(found: ProtocolComparison) -> str:
    return "it" if len(found.unknown) == 1 else "them"


def _said(value: Any) -> str:
    text = "none" if value is None else visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
