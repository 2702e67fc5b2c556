"""Trying again, after waits that are set, what failed in passing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenacity import RetryCallState, Retrying, nap, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

#: Told of an error that is passing, and of the seconds until the next try.
Note = Callable[[BaseException, float], None]


def retrying(
    waits_s: Sequence[float],
    *,
    on: Callable[[BaseException], bool],
    note: Note | None = None,
    sleep: Callable[[float], None] = nap.sleep,
) -> Retrying:
    """What calls a function, and calls it again while it fails in passing: `retrying(…)(function, *arguments)`.

    The last error is raised as it is, and so is any other at once.

    Args:
        waits_s: seconds before each further try.
        on: whether an error may pass.
        note: for a line in the log, before each wait.
        sleep: waits so many seconds.
    """

    def noted(state: RetryCallState) -> None:
        if note is not None and state.outcome is not None and (error := state.outcome.exception()) is not None:
            note(error, state.upcoming_sleep)

    return Retrying(
        stop=stop_after_attempt(len(waits_s) + 1),
        # tenacity asks for a wait after the last try too.
        wait=wait_chain(*map(wait_fixed, (*waits_s, 0.0))),
        retry=retry_if_exception(on),
        before_sleep=noted,
        sleep=sleep,
        reraise=True,
    )
