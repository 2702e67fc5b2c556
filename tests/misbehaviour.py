"""What a prompt tells a server to do, so that the same prompts steer every kind of server: HTTP, and a model in Triton.

A prompt is a JSON object, its state a folder of files: a Triton model runs in processes of its own, and may die. Copied
beside that model, so this module imports the standard library alone.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

#: How often a server looks whether it may go on.
_POLL_S = 0.01
#: A server that nobody releases goes on by itself, long after its test has failed.
_LONGEST_WAIT_S = 30.0

BUSY, BROKEN, HALF, DEAD = "busy", "broken", "half", "dead"
#: What vLLM says to every request once its engine has died, while the server around it stays ready.
ENGINE_DIED = "EngineCore encountered an issue. See stack trace (above) for the root cause."
#: While this flag is raised a model's engine is dead to every prompt that tells nothing.
OUT_OF_ORDER = "out-of-order"


def tell(
    name: str,
    *,
    say: str = "",
    times: int = 1,
    finish: str = "stop",
    faults: tuple[str, ...] = (),
    always: str = "",
    until: str = "",
    wait_for: str = "",
) -> str:
    """The prompt that asks for something.

    Args:
        name: the prompt's own; its flags are `<name>.asked-<n>`, `.halved`, `.abandoned` and `.answered`.
        say: the answer, `times` over.
        finish: its finish reason.
        faults: what to do instead on the first, second, … time of asking.
        always: what to do instead every time.
        until: the flag from which on that is over.
        wait_for: the flag before which nothing is answered.
    """
    deed = {"name": name, "say": say, "times": times, "finish": finish, "faults": faults}
    return json.dumps(deed | {"always": always, "until": until, "wait_for": wait_for}, ensure_ascii=False)


class Deed(NamedTuple):
    """What a server is to do now. `fault` is empty where it is to answer."""

    name: str
    text: str
    finish: str
    fault: str
    wait_for: str


class Stage:
    """The folder through which tests and servers see each other: a flag is a file in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def next_deed(self, prompt: str) -> Deed:
        """Read a prompt, and note that it was asked. One that tells nothing is answered 1, where the engine lives."""
        try:
            told = json.loads(prompt)
        except ValueError:
            return Deed("", "1", "stop", DEAD if self.is_raised(OUT_OF_ORDER) else "", "")
        for number in itertools.count(1):
            try:
                (self.folder / f"{told['name']}.asked-{number}").touch(exist_ok=False)
                break
            except FileExistsError:
                continue
        is_over = told["until"] and self.is_raised(told["until"])
        fault = ("" if is_over else told["always"]) or dict(enumerate(told["faults"], 1)).get(number, "")
        return Deed(told["name"], told["say"] * told["times"], told["finish"], fault, told["wait_for"])

    def raise_flag(self, flag: str) -> None:
        """Let whoever waits for it go on."""
        (self.folder / flag).touch()

    def is_raised(self, flag: str) -> bool:
        """Whether somebody raised it."""
        return (self.folder / flag).exists()

    def lower_flag(self, flag: str) -> None:
        """Take it down."""
        (self.folder / flag).unlink()

    def times_asked(self, name: str) -> int:
        """How often a prompt was asked."""
        return sum(1 for _ in self.folder.glob(f"{name}.asked-*"))

    def wait(self, deed: Deed, flag: str, abandoned: Callable[[], bool]) -> bool:
        """Wait for a flag; False, and the flag `<name>.abandoned`, when the client gave up before."""
        until = time.monotonic() + _LONGEST_WAIT_S
        while flag and not self.is_raised(flag) and time.monotonic() < until:
            if abandoned():
                self.raise_flag(f"{deed.name}.abandoned")
                return False
            time.sleep(_POLL_S)
        return True
