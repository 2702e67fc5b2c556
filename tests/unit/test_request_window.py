"""What is in flight to an endpoint: never more than the window allows, and nobody is left standing in line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.inference.worker.window import Window, map_bounded

MOST = 3
MOST_BYTES = 100


class Endpoint:
    """Answers when it is told to, and notes what is in flight."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.answers: dict[int, asyncio.Future[int]] = {}
        self.in_flight: dict[int, int] = {}
        self.most = 0
        self.most_bytes = 0

    async def ask(self, item: tuple[int, int]) -> int:
        number, size = item
        self.begun.append(number)
        self.in_flight[number] = size
        if len(self.in_flight) > 1:
            self.most_bytes = max(self.most_bytes, sum(self.in_flight.values()))
        self.most = max(self.most, len(self.in_flight))
        self.answers[number] = asyncio.get_running_loop().create_future()
        try:
            return await self.answers[number]
        finally:
            del self.in_flight[number], self.answers[number]

    def is_done_with(self, number: int) -> bool:
        return number not in self.in_flight


def size_of(item: tuple[int, int]) -> int:
    return item[1]


async def settle(condition: Callable[[], bool]) -> None:
    """Let the loop run until something holds."""
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came about")


def answer_all(calls: list[list[int]], choices: list[int]) -> tuple[list[list[int]], Endpoint, Window]:
    """Several calls at once over one window, answered in an order that the choices give."""

    async def run() -> tuple[list[list[int]], Endpoint, Window]:
        endpoint, window = Endpoint(), Window(MOST, MOST_BYTES)
        numbered = iter(range(1_000))
        items = [[(next(numbered), size) for size in call] for call in calls]
        gathered = asyncio.gather(*(map_bounded(window, call, size_of, endpoint.ask) for call in items))
        turns = iter(choices)
        while not gathered.done():
            if endpoint.answers:
                open_ones = list(endpoint.answers)
                number = open_ones[next(turns, 0) % len(open_ones)]
                endpoint.answers[number].set_result(number)
                await settle(partial(endpoint.is_done_with, number))
            await asyncio.sleep(0)
        return await gathered, endpoint, window

    return asyncio.run(run())


sizes = st.lists(st.integers(0, 150), max_size=12)


@given(st.lists(sizes, min_size=1, max_size=4), st.lists(st.integers(0, 10)))
def test_every_item_is_asked_once_within_the_window_and_results_keep_their_order(
    calls: list[list[int]], choices: list[int]
) -> None:
    got, endpoint, window = answer_all(calls, choices)
    numbers = iter(range(1_000))
    assert got == [[next(numbers) for _ in call] for call in calls]
    assert sorted(endpoint.begun) == list(range(sum(map(len, calls))))
    assert endpoint.most <= MOST
    assert endpoint.most_bytes <= MOST_BYTES
    assert window.held == 0
    assert window.fits(MOST_BYTES)


def test_what_one_call_asks_is_begun_before_what_the_next_asks() -> None:
    _, endpoint, _ = answer_all([[1] * 8, [1] * 8], [])
    assert sorted(endpoint.begun[:8]) == list(range(8))


async def raising(item: tuple[int, int]) -> int:
    if item[0] == 4:
        raise RuntimeError("a defect")
    await asyncio.sleep(3_600)
    return item[0]


async def stopping(item: tuple[int, int]) -> int:
    if item[0] == 4:
        raise asyncio.CancelledError
    await asyncio.sleep(3_600)
    return item[0]


@pytest.mark.parametrize(
    ("function", "error"), [(raising, RuntimeError), (stopping, asyncio.CancelledError)], ids=["raises", "is-cancelled"]
)
def test_when_one_item_fails_the_others_are_let_go(
    function: Callable[[tuple[int, int]], Awaitable[int]], error: type[BaseException]
) -> None:
    async def run() -> None:
        window = Window(MOST + 2, MOST_BYTES)
        items = [(number, 1) for number in range(20)]
        with pytest.raises(error):
            await map_bounded(window, items, size_of, function)
        await settle(lambda: window.held == 0)

    asyncio.run(run())


def test_a_call_that_is_cancelled_gives_all_its_places_back_and_leaves_the_line() -> None:
    async def run() -> None:
        endpoint, window = Endpoint(), Window(MOST, MOST_BYTES)
        first, second = (
            asyncio.ensure_future(map_bounded(window, [(number, 1) for number in call], size_of, endpoint.ask))
            for call in (range(10), range(10, 20))
        )
        await settle(lambda: len(endpoint.in_flight) == MOST)
        first.cancel()
        await settle(lambda: first.done() and len(endpoint.in_flight) == MOST)
        assert endpoint.begun == [0, 1, 2, 10, 11, 12]
        second.cancel()
        await settle(lambda: second.done() and window.held == 0)

    asyncio.run(run())


def test_a_call_ends_with_its_last_answer_although_another_holds_the_window() -> None:
    async def run() -> None:
        endpoint, window = Endpoint(), Window(MOST, MOST_BYTES)
        long = asyncio.ensure_future(map_bounded(window, [(0, 1), (1, 1)], size_of, endpoint.ask))
        short = asyncio.ensure_future(map_bounded(window, [(2, 1), (3, 1)], size_of, endpoint.ask))
        await settle(lambda: set(endpoint.answers) == {0, 1, 2})
        # The lane of the short call does both of its items; nothing is left for which it would need another place.
        for number in (2, 3):
            await settle(partial(endpoint.answers.__contains__, number))
            endpoint.answers[number].set_result(number)
        assert await asyncio.wait_for(short, 10) == [2, 3]
        long.cancel()

    asyncio.run(run())
