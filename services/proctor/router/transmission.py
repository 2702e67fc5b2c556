"""The stage in which routers pass items on, and the answers that are asked from what they wrote. Planning is pure.

A router's trial is of the arm that needs it first (`Condition.routes`), and stands in the stage `transmit`; a worker's
is of the arm of its condition, and stands in the stage `answer` beside the canonical and reworded trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from sys import getsizeof
from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.manifest import RewriteSet
from proctor.domain.routing import ProtocolSection, Route, RouterKind
from proctor.domain.trial import TRANSMIT_STAGE, Trial
from proctor.router import rewrites
from proctor.router.submit.prompt_sizes import check_written
from proctor.runtime.artifacts.calls import MessageKey, messages_in
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.text.router_prompts import router_prompt, worker_prompt


def check_options(items: Sequence[Item]) -> None:
    """Refuse items that no worker could answer with an option letter.

    Raises:
        BadInputError: for an item without options.
    """
    without = [item.item_id for item in items if not item.choices]
    if without:
        raise BadInputError(
            f"protocol_config.protocol 'router_worker': item {without[0]!r} has no options, and the worker answers "
            "with an option letter; name the column of the options in dataset_config.choices_field, or use protocol "
            "'direct'"
        )


def router_places(protocol: ProtocolSection) -> list[tuple[RouterKind, Route]]:
    """What is asked of the routers for each item: every place of every condition once."""
    wanted = (
        (condition.kind, route) for condition in protocol.conditions for route in condition.routes(protocol.sampling)
    )
    return list(dict.fromkeys(wanted))


def plan_routers(items: Sequence[Item], protocol: ProtocolSection, *, chat: bool) -> Iterator[Trial]:
    """One trial for each item and router. All items are asked, whether they have a rewording or not."""
    wanted = router_places(protocol)
    for item in items:
        for kind, route in wanted:
            yield Trial(
                stage=TRANSMIT_STAGE,
                arm=route.arm,
                item_id=item.item_id,
                router_index=route.place,
                prompt=router_prompt(protocol.templates, kind, route.number, item.question, item.choices, chat=chat),
                choices=item.choices,
            )


#: Of a chunk of items, what all its routers wrote, in memory. 90 routers (nine conditions with routers of their own, of
#: either kind) whose messages are as long as their items come to less (`proctor.runtime.artifacts.chunks.CHUNK_BYTES`).
MAX_MESSAGES_BYTES: Final = 3 << 27
Messages = Mapping[MessageKey, str]
"""What each router wrote; one that gave no answer is missing."""


def plan_workers(items: Sequence[Item], protocol: ProtocolSection, messages: Messages) -> Iterator[Trial]:
    """One trial for each item and condition whose routers have all written.

    A condition of which a message is missing is another condition, so it is not asked; the item is then left out of
    the comparison and counted.

    Raises:
        BadInputError: when the messages make a prompt too large.
    """
    for item in items:
        for condition in protocol.conditions:
            keys = [(route.arm, item.item_id, route.place) for route in condition.routes(protocol.sampling)]
            if all(key in messages for key in keys):
                said = [messages[key] for key in keys]
                prompt = worker_prompt(protocol.templates, said, len(item.choices))
                check_written(item.item_id, prompt, f"{len(said)} routers")
                yield Trial(arm=condition.arm, item_id=item.item_id, prompt=prompt, choices=item.choices)


def messages_of(store: ArtifactStore, transmitted: RewriteSet, part: int) -> dict[MessageKey, str]:
    """What the routers of one part of the stage wrote; an empty message is one, an error row is none.

    A part is a chunk of items, of this stage and of the answers alike.

    Raises:
        BadInputError: when it is more than MAX_MESSAGES_BYTES.
    """
    messages: dict[MessageKey, str] = {}
    total = 0
    for key, text in messages_in(store, rewrites.of_part(transmitted, part).answered):
        if (total := total + getsizeof(text)) > MAX_MESSAGES_BYTES:
            raise BadInputError(
                f"what the routers wrote about {len({key[1] for key in messages}):,} items takes more than "
                f"{MAX_MESSAGES_BYTES:,} bytes; lower protocol_config.router.decoding.max_tokens or "
                "protocol_config.max_routers"
            )
        messages[key] = text
    return messages
