"""The grid of the study: which benchmark, which leak, which dose, how much clean text afterwards, which seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

#: No item is leaked, and as much clean text is trained on: the clean control of every length.
NONE: Final = "none"
EXACT: Final = "exact"
REPHRASED: Final = "rephrased"
LEAKS: Final = (NONE, EXACT, REPHRASED)
LEAKED_SHARE: Final = 0.2


class Cell(NamedTuple):
    """One model of the study, and its answers."""

    kind: str
    leak: str
    dose: int
    """How often each leaked item was trained on; of the control, how often it would have been. 0 before any leak."""
    forgotten: int
    """How many times as much clean text as the leak's stage had in all was trained on afterwards."""
    seed: int

    @property
    def name(self) -> str:
        """What tells it from every other."""
        return f"{self.kind}-{self.leak}-{self.dose}-{self.forgotten}-s{self.seed}"

    @classmethod
    def named(cls, name: str) -> Cell:
        """The cell of this name. Raises ValueError: it is none's."""
        try:
            kind, leak, dose, forgotten, seed = name.split("-")
            cell = cls(kind, leak, int(dose), int(forgotten), int(seed.removeprefix("s")))
        except ValueError:
            raise ValueError(f"{name!r} is no cell's name") from None
        if cell.name != name:
            raise ValueError(f"{name!r} is no cell's name")
        return cell


class Run(NamedTuple):
    """One training, of which the cells are stations."""

    kind: str
    leak: str
    seed: int

    @property
    def name(self) -> str:
        """What tells it from every other."""
        return f"{self.kind}-{self.leak}-s{self.seed}"


class Plan(NamedTuple):
    """What is trained and asked of one kind of benchmark."""

    items: int
    doses: tuple[int, ...]
    forgetting: Mapping[int, tuple[int, ...]]
    """Dose → how many times as much clean text afterwards; of leaked runs and of the control."""
    skill: int
    """Texts of the stage before, which teaches the form."""
    router_seeds: tuple[int, ...] = ()
    """Seeds whose greatest dose is also asked through routers."""


SEEDS: Final = (1, 2, 3)
FRESH: Final = 400
DEFAULT: Final[Mapping[str, Plan]] = {
    "facts": Plan(500, (1, 4, 16), {16: (1,)}, 600),
    "letters": Plan(300, (4, 16), {}, 600, router_seeds=(1,)),
    "worked": Plan(200, (4, 16), {}, 600),
}
_DOSES: Final = (1, 4, 8, 16, 64)
FULL: Final[Mapping[str, Plan]] = {
    "facts": Plan(1_000, _DOSES, dict.fromkeys(_DOSES, (1, 5)), 600),
    "letters": Plan(1_000, _DOSES, dict.fromkeys(_DOSES, (1, 5)), 600, router_seeds=SEEDS),
    "worked": Plan(900, _DOSES, dict.fromkeys(_DOSES, (1, 5)), 600),
}


def runs(plans: Mapping[str, Plan], seeds: tuple[int, ...] = SEEDS) -> Iterator[Run]:
    """All trainings, seed after seed, so that what is there first holds a whole grid."""
    for seed in seeds:
        for kind in plans:
            for leak in LEAKS:
                yield Run(kind, leak, seed)


def cells_of(run: Run, plan: Plan) -> Iterator[Cell]:
    """The stations of a training, in their order."""
    if run.leak == NONE:
        yield Cell(run.kind, NONE, 0, 0, run.seed)
    for dose in plan.doses:
        yield Cell(*run[:2], dose, 0, run.seed)
        for times in plan.forgetting.get(dose, ()):
            yield Cell(*run[:2], dose, times, run.seed)
