"""docs/study.md from the judged cells: what it says against Proctor first."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

import numpy as np

from planted_leaks.benchmarks import KINDS
from planted_leaks.cells import EXACT, LEAKED_SHARE, NONE, REPHRASED, Cell
from planted_leaks.judging import Judged
from planted_leaks.power import Power
from planted_leaks.searching import NEAR, POLICIES, Search
from proctor.domain.decision import DecisionOutcome
from proctor.domain.estimate import Estimate
from proctor.domain.evidence import Verdict

_WORDS: Final = {NONE: "none", EXACT: "exact", REPHRASED: "rephrased"}


class Situation(NamedTuple):
    """The cells that differ by their seed alone."""

    kind: str
    leak: str
    dose: int
    forgotten: int

    @property
    def words(self) -> str:
        """The leak in words."""
        if self.leak == NONE:
            trained = f"none, as long as × {self.dose}" if self.dose else "none, before any"
        else:
            trained = f"{_WORDS[self.leak]} × {self.dose}"
        return f"{trained}, then {self.forgotten} × clean" if self.forgotten else trained


def situations(judged: Iterable[Judged]) -> dict[Situation, list[Judged]]:
    """The cells of each situation, clean ones first."""
    order = (NONE, EXACT, REPHRASED)

    def key(one: Judged) -> tuple[int, int, int, int]:
        return list(KINDS).index(one.cell.kind), order.index(one.cell.leak), one.cell.dose, one.cell.forgotten

    found = sorted(judged, key=lambda one: (key(one), one.cell.seed))
    return {Situation(*cells[0].cell[:4]): cells for cells in (list(group) for _, group in groupby(found, key))}


def page(judged: Sequence[Judged], powers: Mapping[Cell, Power], searches: Sequence[Search], served: str = "") -> str:
    """The whole page; `served` is the section on audits that ran end to end."""
    found = situations(judged)
    template = Template((Path(__file__).parent / "page.md").read_text(encoding="utf-8"))
    return template.substitute(
        extent=_extent(judged),
        against="\n".join(filter(None, (*_against(found), _missed(searches)))),
        channels=_channels(found, searches),
        benchmarks="\n\n".join(_benchmarks(found)),
        powers=_powers(found, powers),
        others=_others(found),
        searches=_searches(searches),
        served=served,
    )


def _extent(judged: Sequence[Judged]) -> str:
    """How much of the study there is, and how alike its two samples of items are to clean models."""
    seeds = sorted({one.cell.seed for one in judged})
    gaps = {
        kind: _mean(_value(one.fresh.excess) for one in judged if one.cell.kind == kind and one.cell.leak == NONE)
        for kind in KINDS
        if any(one.cell.kind == kind and one.cell.leak == NONE for one in judged)
    }
    words = "; ".join(f"{KINDS[kind].title}: {gap:.1f}" for kind, gap in gaps.items())
    by_seed = ", ".join(f"{sum(one.cell.seed == seed for one in judged)} of seed {seed}" for seed in seeds)
    return (
        f"{len(judged)} cells: {by_seed}. One seed a "
        "cell is one draw: read single rows with their intervals. The fresh items are another draw from the same "
        "source, and clean models answer the benchmark better than these by so many points on average, which counts "
        f"against every model where no panel of reference models takes it out: {words}. The panel here is the "
        "benchmark's other clean models."
    )


def _benchmarks(found: Mapping[Situation, Sequence[Judged]]) -> Iterator[str]:
    for kind in KINDS:
        mine = {situation: cells for situation, cells in found.items() if situation.kind == kind}
        if mine:
            yield f"## {KINDS[kind].title[0].upper()}{KINDS[kind].title[1:]}\n\n{_benchmark(mine)}"


def _against(found: Mapping[Situation, Sequence[Judged]]) -> Iterator[str]:
    """Its failures, counted."""
    for kind in KINDS:
        leaked = [one for situation, cells in found.items() if situation.kind == kind and situation.leak != NONE
                  for one in cells]  # fmt: skip
        clean = [one for situation, cells in found.items() if situation.kind == kind and situation.leak == NONE
                 for one in cells]  # fmt: skip
        if not leaked:
            continue
        baseline = {one.cell.seed: one for one in clean if one.cell.dose == 0}
        approved = [one for one in leaked if one.decision.outcome is DecisionOutcome.APPROVE]
        said = (
            f"- **{KINDS[kind].title}**: the wording comparison approves {len(approved)} of {len(leaked)} contaminated "
            f"models"
        )
        # Of a seed whose clean model was not trained nobody knows what it answered before.
        if told := [one for one in approved if one.cell.seed in baseline]:
            worst = max(told, key=lambda one: _gain(one, baseline))
            said += (
                f"; the worst of them answers {100 * _value(worst.canonical):.1f} % of the benchmark, "
                f"{100 * _gain(worst, baseline):.1f} points more than before the leak"
            )
        found_fresh = sum(one.fresh.verdict is Verdict.CONTAMINATED for one in approved)
        beside_panel = sum(one.beside_panel.verdict is Verdict.CONTAMINATED for one in approved)
        found_by_fresh = (
            f". Fresh items find {found_fresh} of these {len(approved)}; beside a panel of clean models, which takes "
            f"out how hard they are, {beside_panel}, because its interval is wider."
        )
        said += found_by_fresh if approved else "."
        wrong = sum(one.decision.outcome is DecisionOutcome.BLOCK for one in clean)
        wrong_fresh = sum(one.fresh.verdict is Verdict.CONTAMINATED for one in clean)
        wrong_panel = sum(one.beside_panel.verdict is Verdict.CONTAMINATED for one in clean)
        said += (
            f" Of {len(clean)} clean models the wording comparison blocks {wrong}, and fresh items call {wrong_fresh} "
            f"contaminated, beside the panel {wrong_panel}."
        )
        yield said


def _value(estimate: object) -> float:
    value = getattr(estimate, "value", None)
    return float(value) if value is not None else 0.0


def _gain(one: Judged, baseline: Mapping[int, Judged]) -> float:
    return _value(one.canonical) - _value(baseline[one.cell.seed].canonical)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _decisions(cells: Sequence[Judged]) -> str:
    counts = {outcome: sum(one.decision.outcome is outcome for one in cells) for outcome in DecisionOutcome}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)


def _of(cells: Sequence[Judged], says: Callable[[Judged], bool]) -> str:
    return f"{sum(map(says, cells))} of {len(cells)}"


def _channels(found: Mapping[Situation, Sequence[Judged]], searches: Sequence[Search]) -> str:
    by_search = {(one.run.kind, one.run.leak, one.rule): one for one in searches}

    def searched(situation: Situation) -> str:
        shares = [by_search.get((situation.kind, situation.leak, rule)) for rule in (POLICIES[0], _near_rule())]
        return " / ".join("—" if one is None else _share(one.found, one.leaked) for one in shares)

    rows = (
        (KINDS[situation.kind].title, situation.words, _decisions(cells),
         _of(cells, lambda one: one.perturbation.verdict is Verdict.CONTAMINATED),
         _of(cells, lambda one: one.fresh.verdict is Verdict.CONTAMINATED),
         _of(cells, lambda one: one.beside_panel.verdict is Verdict.CONTAMINATED), searched(situation),
         _noise(cells))
        for situation, cells in found.items()
    )  # fmt: skip
    head = ("benchmark", "leak", "gate, by wording", "wording", "400 fresh items", "these beside a panel",
            "search of the text: 8-grams / near duplicates", "routers")  # fmt: skip
    return _table(head, rows)


def _near_rule() -> str:
    return f"near duplicates ({NEAR})"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "—"


def _noise(cells: Sequence[Judged]) -> str:
    asked = [one.noise for one in cells if one.noise is not None]
    return ", ".join(str(one.verdict) for one in asked) or "—"


def _missed(searches: Sequence[Search]) -> str:
    """What the default rule of a search misses, and what near duplicates find of it; empty without any search."""
    leaked = [one for one in searches if one.leaked]
    if not leaked:
        return ""

    def found(leak: str, rule: str) -> str:
        mine = [one for one in leaked if one.run.leak == leak and one.rule == rule]
        return f"{sum(one.found for one in mine)} of {sum(one.leaked for one in mine)}"

    others = sum(one.others for one in leaked if one.rule == _near_rule() and one.run.leak == REPHRASED)
    return (
        f"- **A search by the default rule** (8-grams) finds {found(EXACT, POLICIES[0])} exact leaks, because many of "
        f"these questions are shorter, and {found(REPHRASED, POLICIES[0])} rephrased ones. Near duplicates by the "
        f"encoder are {found(REPHRASED, _near_rule())} of the rephrased, and {others} items that did not leak."
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _range(values: Sequence[float], digits: int = 1) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _benchmark(found: Mapping[Situation, Sequence[Judged]]) -> str:
    any_cell = next(iter(found.values()))[0]
    leaked = round(LEAKED_SHARE * any_cell.items)
    introduction = (
        f"{any_cell.items} items, of which {leaked} leak; {KINDS[any_cell.cell.kind].variants} rewordings an item. "
        "Accuracies in per cent, D in points: the mean over seeds, and in brackets the least and the greatest; of the "
        "first seed with its 95 % interval."
    )
    rows = []
    for situation, cells in found.items():
        first = cells[0].perturbation
        inflation, score = first.score_inflation, first.contamination_score
        ranked, hits = sum(one.ranked for one in cells), sum((one.precision or 0) * one.ranked for one in cells)
        rows.append((
            situation.words,
            _range([100 * _value(one.canonical) for one in cells]),
            _range([100 * _value(one.perturbation.accuracy_perturbed) for one in cells]),
            _range([_value(one.perturbation.score_inflation) for one in cells]),
            f"{_value(inflation):.1f} [{_bound(inflation.low)}, {_bound(inflation.high)}]",
            "—" if score.value is None else f"{score.value:.3f}",
            f"{first.p_value:.2g}",
            _range([_value(one.fresh.excess) for one in cells]),
            _range([_value(one.beside_panel.excess) for one in cells]),
            f"{100 * _mean(one.leaked[0] for one in cells):.0f} / {100 * _mean(one.leaked[1] for one in cells):.0f}",
            f"{100 * hits / ranked:.0f} % of {ranked}" if ranked and situation.leak != NONE else "—",
            _decisions(cells),
        ))  # fmt: skip
    head = ("leak", "canonical", "reworded", "D", "D of the first seed", "its score", "its p", "beyond fresh items",
            "beside a panel", "leaked items, canonical / reworded", "leaked among the ranked", "decisions")  # fmt: skip
    return f"{introduction}\n\n{_table(head, rows)}"


def _bound(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f}"


def _powers(found: Mapping[Situation, Sequence[Judged]], powers: Mapping[Cell, Power]) -> str:
    rows = []
    for situation, cells in found.items():
        mine = [powers[one.cell] for one in cells if one.cell in powers]
        if mine and not situation.forgotten:
            rows.append((
                KINDS[situation.kind].title,
                situation.words,
                *(_range([100 * one.contaminated[channel] for one in mine], 0) for channel in mine[0].contaminated),
                _range([100 * one.approved for one in mine], 0),
            ))  # fmt: skip
    return _table(("benchmark", "leak", "wording, %", "fresh items, %", "approved by wording, %"), rows)


def _others(found: Mapping[Situation, Sequence[Judged]]) -> str:
    rows = []
    for situation, cells in found.items():
        measured = [one.constat for one in cells if one.constat is not None]
        flagged = [one.perturbation.per_item_t_test.flagged_pct for one in cells]
        rows.append((
            KINDS[situation.kind].title,
            situation.words,
            _range(flagged),
            _of(cells, lambda one: one.perturbation.per_item_t_test.would_block),
            _range([one.points for one in measured]) if measured else "—",
            f"{sum(one.p_value < 0.05 for one in measured)} of {len(measured)}" if measured else "—",
            _noise(cells),
        ))  # fmt: skip
    head = (
        "benchmark",
        "leak",
        "t-test: items flagged, %",
        "it blocks",
        "ConStat: points",
        "its p below 0.05",
        "routers",
    )
    return _table(head, rows)


def _searches(searches: Sequence[Search]) -> str:
    rows = (
        (KINDS[one.run.kind].title, _WORDS[one.run.leak], one.rule, f"{one.found} of {one.leaked}", str(one.others))
        for one in searches
    )
    return _table(("benchmark", "leak", "rule", "leaked items found", "others found"), rows)


_COLUMNS: Final = (
    "benchmark", "leak", "dose", "forgotten", "seed", "items", "canonical_pct", "reworded_pct", "d_points", "d_low",
    "d_high", "contamination_score", "p", "decision", "reason", "fresh_verdict", "fresh_points", "fresh_low",
    "fresh_high", "fresh_p", "panel_verdict", "panel_points", "panel_low", "panel_high", "panel_p",
    "leaked_canonical_pct", "leaked_reworded_pct", "other_canonical_pct", "other_reworded_pct", "ranked",
    "ranked_leaked_pct", "t_test_flagged_pct", "constat_points", "constat_p", "noise_verdict",
)  # fmt: skip


def cells_csv(judged: Sequence[Judged]) -> str:
    """Every cell, a row each."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in judged:
        found, fresh, measured = one.perturbation, one.fresh, one.constat
        d, excess = found.score_inflation, fresh.excess
        writer.writerow((
            *one.cell, one.items,
            *_rounded(100 * _value(one.canonical), 100 * _value(found.accuracy_perturbed)),
            *_rounded(d.value, d.low, d.high, found.contamination_score.value, found.p_value),
            one.decision.outcome, one.decision.reasons[0].code,
            fresh.verdict, *_rounded(excess.value, excess.low, excess.high, fresh.p_value),
            one.beside_panel.verdict, *_rounded(*_triple(one.beside_panel.excess), one.beside_panel.p_value),
            *_rounded(*(100 * value for value in (*one.leaked, *one.others))),
            one.ranked, *_rounded(None if one.precision is None else 100 * one.precision),
            *_rounded(found.per_item_t_test.flagged_pct),
            *_rounded(*((None, None) if measured is None else measured)),
            "" if one.noise is None else one.noise.verdict,
        ))  # fmt: skip
    return sheet.getvalue()


def _triple(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high


def _rounded(*values: float | None) -> list[str]:
    return ["" if value is None else f"{value:.4g}" for value in values]
