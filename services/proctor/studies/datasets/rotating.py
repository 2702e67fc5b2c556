"""What a rotation does to the state of a dataset. Pure: items come and go by the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date
from typing import NamedTuple

from proctor.domain.canonical import short_id
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.rotation import Every, Held, Retired, Rotation
from proctor.formats.faults import shown
from proctor.text.sameness import question_digest

MAX_MODELS = 1_000


class Rotated(NamedTuple):
    """What a rotation did."""

    state: Rotation
    retired: tuple[str, ...]
    promoted: tuple[str, ...]


def held(item: Item) -> Held:
    """An item as the state names it."""
    return Held(item_id=item.item_id, digest=question_digest(item.question, item.choices))


def begun(active: Iterable[Item], pool: Iterable[Item], *, every: Every, seed: int, today: date) -> Rotation:
    """The state of a new dataset."""
    waiting = sorted((held(item) for item in pool), key=lambda one: short_id(["pool", seed, one.item_id]))
    return Rotation(
        every=every,
        seed=seed,
        begun=today,
        rotated=today,
        due=every.after(today),
        active=tuple(held(item) for item in active),
        pool=tuple(waiting),
    )


def added(state: Rotation, items: Sequence[Item]) -> Rotation:
    """The state with further items in its pool, behind those that wait.

    Raises:
        BadInputError: for an item that is asked, waits or was retired already, by its name or by what it asks.
    """
    known = [*state.active, *state.pool, *state.retired]
    ids, digests = {one.item_id for one in known}, {one.digest for one in known}
    for item in items:
        one = held(item)
        if one.item_id in ids or one.digest in digests:
            raise BadInputError(
                f"the item {shown(item.item_id)} is one of this dataset's already, or asks what one of them asks; "
                f"what was "
                "shown once is not fresh again, so leave it out"
            )
        ids.add(one.item_id)
        digests.add(one.digest)
    return state.model_copy(update={"pool": (*state.pool, *map(held, items))})


def shown_to(state: Rotation, model: str, count: int | None) -> tuple[tuple[str, ...], Rotation]:
    """Active items that a model was not shown, and the state in which it was.

    Args:
        state: the state.
        model: what is shown them: a name with its version.
        count: how many; None for all of them.

    Raises:
        BadInputError: where there are fewer.
    """
    before = set(state.shown.get(model, ()))
    unseen = [one.item_id for one in state.active if one.item_id not in before]
    wanted = len(unseen) if count is None else count
    if not unseen or wanted > len(unseen):
        raise BadInputError(
            f"{shown(model)} was shown {len(before):,} items of this dataset, and {len(unseen):,} of those that are "
            f"asked "
            f"now are left, not {'any' if count is None else format(wanted, ',')}; nothing is shown twice to the same "
            "model: rotate the dataset, or wait until it is due"
        )
    if model not in state.shown and len(state.shown) >= MAX_MODELS:
        raise BadInputError(f"this dataset was shown to {MAX_MODELS:,} models, which is all that its state records")
    drawn = tuple(sorted(unseen, key=lambda one: short_id(["draw", state.seed, one]))[:wanted])
    shown_now = {**state.shown, model: (*state.shown.get(model, ()), *drawn)}
    return drawn, state.model_copy(update={"shown": shown_now})


def rotated(state: Rotation, *, reason: str, today: date, only_shown: bool = False, partly: bool = False) -> Rotated:
    """The scheduled rotation: active items are retired, and as many of the pool take their place.

    Args:
        state: the state.
        reason: why, which is kept with each of them.
        today: the day; the next one is due a period after it.
        only_shown: leave items that no model was shown.
        partly: where the pool is short, replace as many as there are, the ones that most models were shown first.

    Raises:
        BadInputError: where the pool is short, or there is nothing to replace.
    """
    times = _times_shown(state)
    going = [one.item_id for one in state.active if not only_shown or times.get(one.item_id)]
    if not going:
        raise BadInputError("no model was shown an item since the last rotation, so there is nothing to replace")
    if len(state.pool) < len(going):
        if not partly or not state.pool:
            raise BadInputError(
                f"{len(going):,} items are to be replaced, and {len(state.pool):,} are held out; add some with --add "
                f"FILE "
                "(`proctor dataset new` makes them from another seed)"
                + ("" if not state.pool else ", or replace as many as there are with --partly")
            )
        going = sorted(going, key=lambda one: -times.get(one, 0))[: len(state.pool)]
    return _replaced(state, set(going), reason, today, {"rotated": today, "due": state.every.after(today)})


def retired(state: Rotation, item_ids: Collection[str], *, reason: str, today: date) -> Rotated:
    """Single items retired at once, replaced from the pool as far as it goes. The schedule stays.

    Raises:
        BadInputError: for an item that is not asked.
    """
    active = {one.item_id for one in state.active}
    if strange := sorted(set(item_ids) - active):
        raise BadInputError(f"--item {shown(strange[0])} is none of the items that are asked now")
    if len(item_ids) >= len(active) + len(state.pool):
        raise BadInputError("no item would be left; add some with --add FILE first")
    return _replaced(state, set(item_ids), reason, today, {})


def _replaced(state: Rotation, going: set[str], reason: str, today: date, update: dict[str, date]) -> Rotated:
    promoted, waiting = state.pool[: len(going)], state.pool[len(going) :]
    gone = tuple(
        Retired(item_id=one.item_id, digest=one.digest, reason=reason, on=today)
        for one in state.active
        if one.item_id in going
    )
    staying = tuple(one for one in state.active if one.item_id not in going)
    changed = state.model_copy(
        update={**update, "active": (*staying, *promoted), "pool": waiting, "retired": (*state.retired, *gone)}
    )
    return Rotated(changed, tuple(one.item_id for one in gone), tuple(one.item_id for one in promoted))


def _times_shown(state: Rotation) -> dict[str, int]:
    times: dict[str, int] = {}
    for ids in state.shown.values():
        for one in ids:
            times[one] = times.get(one, 0) + 1
    return times
