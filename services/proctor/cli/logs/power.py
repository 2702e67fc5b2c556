"""`proctor power`: what a paired comparison can find, or how many items it takes; and how precise one accuracy is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from proctor.cli.options import format_option
from proctor.domain.levels import SIGNIFICANCE_ALPHA

if TYPE_CHECKING:
    from proctor.evidence.paired.power import PairedPlan

_LOG = click.Path(path_type=Path, dir_okay=False)
_HEADINGS: Final = ("discordance", "items", "difference", "power", "exact test", "smallest difference", "items needed")
#: Discordances that are tabulated where none is given; the first of them that leave room for the difference.
_LADDER: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
_ROWS: Final = 5


@click.command()
@click.option("--items", "n", metavar="N", type=click.IntRange(1, 10_000_000), help="Items that both runs answer.")
@click.option("--difference", "points", metavar="POINTS", type=float, help="Difference to find, in percentage points.")
@click.option(
    "--discordance",
    metavar="D",
    type=float,
    help="Share of items that just one run answers right, as a fraction. [default: a table over several]",
)
@click.option("--from", "logs", metavar="A B", nargs=2, type=_LOG, help="Take the discordance, and N, from two logs.")
@click.option("--across-protocols", is_flag=True, help="Take it from logs of different protocols as well.")
@click.option("--alpha", type=float, default=SIGNIFICANCE_ALPHA, show_default=True, help="Level of the two-sided test.")
@click.option("--precision", metavar="POINTS", type=float, help="Half-width of one accuracy's interval, in points.")
@click.option("--accuracy", type=float, help="The accuracy that is measured, as a fraction. [default: 0.5, the worst]")
@click.option("--power", type=float, default=0.8, show_default=True, help="Chance of finding it, as a fraction.")
@format_option
def power(
    n: int | None,
    points: float | None,
    discordance: float | None,
    logs: tuple[Path, Path] | None,
    across_protocols: bool,
    alpha: float,
    precision: float | None,
    accuracy: float | None,
    power: float,
    output: str,
) -> None:
    """Say what comparing two runs on the same items can find, or how many items it takes.

    With --items: the smallest difference in accuracy that is found. With --difference: the items that it takes. With
    both: the power. All of it hangs on the discordance, the share of items that one run alone answers right, so an
    earlier pair of logs is the best guide (--from); without one, several discordances are tabulated.

    Figures are by Connor's formula, n = ((z_α √π + z_β √(π − δ²)) / δ)². "exact test" is the power that McNemar's
    exact test, which `proctor compare` uses, has for the planned comparison: a little less, the more so with few
    discordant items.

    With --precision or --accuracy it is about one model's accuracy instead: by how many points it may be off with
    --items, and how many items it takes for ± so many points, by the normal interval z √(p(1 − p) / n) at 1 − alpha.
    At 50 %, where it is widest, 500 items give ± 4.4 points, and ± 3 take 1,068. The same items asked of two models
    compare these more precisely than either is known.

    \b
    Examples:
      proctor power --items 200 --discordance 0.28
      proctor power --difference 5 --discordance 0.2
      proctor power --items 500 --difference 5
      proctor power --from new.jsonl old.jsonl --difference 2
      proctor power --items 500 --accuracy 0.5
      proctor power --precision 3

    JSON keys, shares as fractions: n, discordance, difference, power, exact_power, mde, items_needed (null where they
    do not apply, or where the table has several values), target_power, alpha, from, table[] (a row for each
    discordance), conclusion. Of one accuracy: n, accuracy, half_width, precision, items_needed, alpha, conclusion.
    """
    from proctor.cli.terminal import print_json
    from proctor.domain.errors import BadInputError
    from proctor.evidence.paired.power import plan_comparison

    if precision is not None or accuracy is not None:
        others = {"--difference": points, "--discordance": discordance, "--from": logs}
        _one_accuracy(
            n, precision, accuracy, alpha, [name for name, value in others.items() if value is not None], output
        )
        return
    difference = None if points is None else points / 100
    _check(difference=difference, discordance=discordance, alpha=alpha, power=power)
    if logs is not None:
        if discordance is not None:
            raise BadInputError("--discordance and --from both say how often the runs disagree; give one of them")
        seen, discordance = _seen_in(*logs, across_protocols=across_protocols)
        n = seen if n is None and difference is None else n
    if n is None and difference is None:
        raise BadInputError(
            "nothing to plan: give --items for the smallest difference that they find, --difference (in points) for "
            "the items that it takes, or both for the power; e.g. proctor power --items 500"
        )
    if discordance is not None and difference is not None and difference > discordance:
        raise BadInputError(
            f"a difference of {points:g} points is more than a discordance of {discordance:g} leaves room for, for it "
            f"takes {points:g} % of the items to be answered right by one run alone; give a larger --discordance"
        )
    shares = [discordance] if discordance is not None else [d for d in _LADDER if d >= (difference or 0.0)][:_ROWS]
    plans = [plan_comparison(share, n=n, difference=difference, alpha=alpha, power=power) for share in shares]
    document = _document(plans, alpha=alpha, target=power, logs=logs)
    if output == "json":
        print_json(document)
    else:
        _print(plans, document["conclusion"])


def _check(
    *, difference: float | None, discordance: float | None, alpha: float, power: float, name: str = "--discordance"
) -> None:
    """Refuse what is no share, and say so where a percentage was meant as a fraction.

    Raises:
        BadInputError: with the option, its value and the mend.
    """
    from proctor.domain.errors import BadInputError

    if difference is not None and not (math.isfinite(difference) and 0 < difference <= 1):
        raise BadInputError(f"--difference is {100 * difference:g}, which is not above 0 and at most 100 points")
    for option, value, most in (
        (name, discordance, True),
        ("--alpha", alpha, False),
        ("--power", power, False),
    ):
        if value is None or (math.isfinite(value) and value > 0 and (value < 1 or (most and value == 1))):
            continue
        percentage = math.isfinite(value) and 1 < value < 100
        hint = f"; for {value:g} % write {value / 100:g}" if percentage else ""
        raise BadInputError(f"{option} is {value:g}, which is not a fraction between 0 and 1{hint}")
    if alpha >= power:
        raise BadInputError(f"--power {power:g} is not above --alpha {alpha:g}, so no item is needed; raise --power")


def _one_accuracy(
    n: int | None, precision: float | None, accuracy: float | None, alpha: float, others: list[str], output: str
) -> None:
    """Print how precise one accuracy is.

    Raises:
        BadInputError: with the option, its value and the mend.
    """
    from proctor.cli.terminal import print_json, say
    from proctor.domain.errors import BadInputError
    from proctor.evidence.planning.accuracy import half_width, items_for

    _check(difference=None, discordance=accuracy, alpha=alpha, power=1 - alpha / 2, name="--accuracy")
    if others:
        raise BadInputError(
            f"{others[0]} is of a comparison of two runs, --precision and --accuracy of one; give either"
        )
    if n is None and precision is None:
        raise BadInputError(
            "--accuracy alone plans nothing: give --items for its interval, or --precision for the items"
        )
    if precision is not None and not (math.isfinite(precision) and 0 < precision <= 50):
        raise BadInputError(f"--precision is {precision:g}, which is not above 0 and at most 50 points")
    share, level = 0.5 if accuracy is None else accuracy, 1 - alpha
    width = None if n is None else half_width(n, share, level=level)
    try:
        needed = None if precision is None else items_for(precision / 100, share, level=level)
    except ValueError as error:
        raise BadInputError(f"--precision {precision:g} takes {error}; give a larger one") from None
    sentences = []
    if n is not None and width is not None:
        sentences.append(f"With {_items(n)}, an accuracy of {100 * share:g} % is known to ± {100 * width:.1f} points.")
    if precision is not None and needed is not None:
        sentences.append(
            f"It takes {_items(needed)} to know an accuracy of {100 * share:g} % to ± {precision:g} points."
        )
    conclusion = " ".join(sentences)
    if output == "json":
        print_json(
            {
                "n": n,
                "accuracy": share,
                "half_width": width,
                "precision": None if precision is None else precision / 100,
                "items_needed": needed,
                "alpha": alpha,
                "conclusion": conclusion,
            }
        )
        return
    say(conclusion)
    say(f"({100 * level:g} % intervals, of independent items: those that share a passage count for less)")


def _seen_in(a: Path, b: Path, *, across_protocols: bool) -> tuple[int, float]:
    """Items that two logs share, and how often the runs disagree on them.

    Raises:
        BadInputError: where the logs cannot be compared, or were made under different protocols.
    """
    from proctor.evidence.paired.discordance import PairCounts, discordance_of
    from proctor.studies.comparison import compare_logs

    one = compare_logs(a, b, across_protocols=across_protocols).primary
    discordance = discordance_of(PairCounts(one.both, one.only_a, one.only_b, one.neither))
    # Logs without a common item are refused by the comparison.
    assert discordance is not None
    return one.n, discordance


def _document(
    plans: list[PairedPlan], *, alpha: float, target: float, logs: tuple[Path, Path] | None
) -> dict[str, Any]:
    """The JSON form: the plan where there is one, and the table in any case."""
    table = [plan._asdict() for plan in plans]
    first = table[0]
    shared = {key: value if all(row[key] == value for row in table) else None for key, value in first.items()}
    return {
        **shared,
        "target_power": target,
        "alpha": alpha,
        "from": None if logs is None else [str(log) for log in logs],
        "table": table,
        "conclusion": conclusion(plans, alpha=alpha, target=target),
    }


def conclusion(plans: list[PairedPlan], *, alpha: float, target: float) -> str:
    """What the plans come to, in one sentence."""
    first, last = plans[0], plans[-1]
    test = f"a two-sided test at {alpha:g}"
    if first.n is not None and first.difference is not None:
        start = f"With {_items(first.n)}, {test} finds a difference of {_points(first.difference)} with"
        if len(plans) == 1:
            return f"{start} {_percent(first.power)} power where the runs disagree on {_share(first)}{_exact(first)}."
        return (
            f"{start} {_percent(first.power)} power where the runs disagree on {_share(first)}, and with "
            f"{_percent(last.power)} where they disagree on {_share(last)}."
        )
    if first.n is not None:
        if first.mde is None or last.mde is None:
            return f"With {_items(first.n)}, {test} finds no difference at all with {_percent(target)} power."
        start = f"With {_items(first.n)}, the smallest difference that {test} finds with {_percent(target)} power is"
        if len(plans) == 1 or first.mde == last.mde:
            return f"{start} {_smallest(first)}{_exact(first)}."
        return f"{start} {_smallest(first)}, and {_smallest(last)}."
    assert first.difference is not None
    assert first.items_needed is not None
    assert last.items_needed is not None
    purpose = f"for {test} to find a difference of {_points(first.difference)} with {_percent(target)} power"
    if len(plans) == 1:
        return (
            f"It takes {_items(first.items_needed)} {purpose} where the runs disagree on {_share(first)}"
            f"{_exact(first)}."
        )
    return (
        f"It takes {_items(first.items_needed)} {purpose} where the runs disagree on {_share(first)}, and "
        f"{_items(last.items_needed)} where they disagree on {_share(last)}."
    )


def _print(plans: list[PairedPlan], sentence: str) -> None:
    from proctor.cli.terminal import say, table

    def cell(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f}"

    rows = [
        (
            f"{100 * plan.discordance:.1f} %",
            "–" if plan.n is None else f"{plan.n:,}",
            cell(plan.difference),
            _percent(plan.power),
            "–" if plan.exact_power is None else _percent(plan.exact_power),
            cell(plan.mde),
            "–" if plan.items_needed is None else f"{plan.items_needed:,}",
        )
        for plan in plans
    ]
    say(table(_HEADINGS, rows))
    say("(differences in points; exact test: the power of McNemar's exact test for this plan)")
    say(f"\n{sentence}")


def _exact(plan: PairedPlan) -> str:
    """The exact test's power, where it differs in what is printed."""
    if plan.exact_power is None or _percent(plan.exact_power) == _percent(plan.power):
        return ""
    return f"; McNemar's exact test, which is conservative, has {_percent(plan.exact_power)}"


def _smallest(plan: PairedPlan) -> str:
    """The smallest difference and where; a discordance that leaves no room for it grows with it."""
    assert plan.mde is not None
    if plan.mde > plan.discordance:
        return f"{_points(plan.mde)}, and only where the runs disagree on as many of them"
    return f"{_points(plan.mde)} where the runs disagree on {_share(plan)}"


def _items(n: int) -> str:
    return f"{n:,} item{'' if n == 1 else 's'}"


def _points(difference: float) -> str:
    return f"{100 * difference:.2g} points" if difference < 0.01 else f"{100 * difference:.1f} points"


def _percent(share: float) -> str:
    return "over 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _share(plan: PairedPlan) -> str:
    return f"{100 * plan.discordance:.3g} % of them"
