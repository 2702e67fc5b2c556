"""A decision in a model card (README.md on the Hugging Face Hub): a line of metadata, and a section for people. Pure.

The metadata is one key, `proctor`, whose value is JSON on one line, which is YAML too: so the rest of the block stays
as somebody wrote it, in whatever style of YAML.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from proctor.registry.description import described
from proctor.registry.version_document import summary
from proctor.registry.version_record import VersionRecord

#: What the Hub takes of a card is far more; who reads it wants less.
MAX_CARD_CHARACTERS: Final = 1_000_000
_FRONT: Final = re.compile(r"\A---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_OWN_LINE: Final = re.compile(r"^proctor: (?P<said>\{.*\})[ \t]*\r?$", re.MULTILINE)
_OTHER_LINE: Final = re.compile(r"^[\"']?proctor[\"']?[ \t]*:", re.MULTILINE)


def with_decision(card: str, record: VersionRecord, revision: str) -> str:
    """A card with what stands in it; the same decision leaves the same card.

    Args:
        card: as it is.
        record: what stands.
        revision: the commit that was audited.
    """
    line = f"proctor: {_yaml(summary(record, revision))}"
    front = _FRONT.match(card)
    if front is None:
        head, body = f"---\n{line}\n---\n", f"\n{card}" if card else ""
    else:
        head, body = card[: front.end()], card[front.end() :]
        head = (
            head.replace(front["yaml"], _with_line(front["yaml"], line), 1) if front["yaml"] else f"---\n{line}\n---\n"
        )
    audited = f"Audited revision: {revision}"
    return head + described(body, record, most=MAX_CARD_CHARACTERS - len(head), also=audited).rstrip() + "\n"


def decision_in(card: str) -> dict[str, Any]:
    """What a card's metadata says; nothing where it says nothing of ours. It may say anything."""
    front = _FRONT.match(card[:MAX_CARD_CHARACTERS])
    found = None if front is None else _OWN_LINE.search(front["yaml"])
    try:
        said = json.loads(found["said"]) if found is not None else None
    except (ValueError, RecursionError):
        said = None
    return said if isinstance(said, dict) else {}


def _yaml(value: dict[str, Any]) -> str:
    """JSON that is YAML as well, on one line."""
    # Escaped in JSON's way, what is beyond 16 bits would be two halves to a reader of YAML; raw, it takes what prints.
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))


def _with_line(yaml: str, line: str) -> str:
    if _OWN_LINE.search(yaml):
        return _OWN_LINE.sub(lambda _: line, yaml, count=1)
    # Somebody else's key of this name: two would be no YAML, and it is not ours to take away.
    return yaml if _OTHER_LINE.search(yaml) else f"{yaml}{line}\n"
