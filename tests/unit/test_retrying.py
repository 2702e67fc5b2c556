"""Trying again what failed in passing: how often, after which waits, and what is raised in the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proctor.runtime.retrying import retrying


class _Passing(Exception):
    pass


class _Tried:
    """A function that fails so many times before it returns, tried with waits that are noted and not waited."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.notes = list[tuple[str, float]]()
        self.slept = list[float]()
        self.calls = 0

    def again(self, waits_s: Sequence[float]) -> str:
        return retrying(
            waits_s,
            on=lambda error: isinstance(error, _Passing),
            note=lambda error, wait_s: self.notes.append((str(error), wait_s)),
            sleep=self.slept.append,
        )(self._function, "done")

    def _function(self, said: str) -> str:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return said


def test_what_goes_well_is_called_once() -> None:
    tried = _Tried()
    assert tried.again((0.5, 2.0)) == "done"
    assert (tried.calls, tried.slept, tried.notes) == (1, [], [])


def test_what_fails_in_passing_is_called_again_after_each_wait_with_a_note_before_it() -> None:
    tried = _Tried(_Passing("one"), _Passing("two"))
    assert tried.again((0.1, 0.5, 2.0)) == "done"
    assert tried.slept == [0.1, 0.5]
    assert tried.notes == [("one", 0.1), ("two", 0.5)]


@pytest.mark.parametrize("waits_s", [(), (1.0,), (0.5, 2.0, 8.0)])
def test_the_last_error_is_raised_as_it_is(waits_s: tuple[float, ...]) -> None:
    last = _Passing("last")
    tried = _Tried(*(_Passing("before") for _ in waits_s), last)
    with pytest.raises(_Passing) as error:
        tried.again(waits_s)
    assert error.value is last
    assert (tuple(tried.slept), tried.calls) == (waits_s, len(waits_s) + 1)


@pytest.mark.parametrize("other", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_another_error_is_raised_at_once(other: BaseException) -> None:
    tried = _Tried(_Passing("one"), other)
    with pytest.raises(type(other)) as error:
        tried.again((0.5, 2.0, 8.0))
    assert error.value is other
    assert tried.calls == 2
