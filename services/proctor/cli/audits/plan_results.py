"""Printing what an audit will cost and could find."""

from __future__ import annotations

from typing import Any, Final

from proctor.cli.terminal import say, table
from proctor.domain.risk_register import published
from proctor.domain.scope import Scope
from proctor.evidence.planning.approval import CLUSTERED_MAX_ITEMS
from proctor.studies.plan import AuditPlan
from proctor.studies.sequential_plan import LEAKS

#: A lower chance that a clean model is approved is warned of: the audit would likely end in a review whatever it finds.
LOW_CHANCE: Final = 0.80

_HEADINGS: Final = (
    "variants",
    "trials",
    "prompt tokens (est.)",
    "answer tokens at most",
    "cost at most",
    "leaked share found",
    "clean model approved",
)

#: What the word means, where it first stands.
_FAMILY: Final = (
    "(A family is a kind of simulated model: how its right answers vary with the wording. The chances rest on it.)"
)


def document(plan: AuditPlan) -> dict[str, Any]:
    """The JSON form."""
    return {
        "suite": plan.suite,
        "items": plan.items,
        "items_available": plan.available,
        **({} if plan.clusters is None else {"clusters": plan.clusters.plain()}),
        "family": plan.family.name,
        "family_title": plan.family.title,
        "family_reason": plan.why_family,
        "rows": [row._asdict() for row in plan.rows],
        "families": [one._asdict() for one in plan.families],
        "approval_chance": plan.own.approval_chance,
        "items_for_90": plan.items_for_90,
        "sequential": _sequential_document(plan),
        "budget": {**plan.budget.plain(), "over": over_budget(plan)},
        "warning": warning(plan),
        "channels_warning": plan.blind,
        "conclusion": conclusion(plan),
        "notes": list(plan.notes),
        "scope": plan.scope.value,
        "scope_hint": plan.reach.hint,
        "known_exposure": [one._asdict() for one in plan.exposure],
        "benchmark_kind": None if plan.reach.kind is None else plan.reach.kind.value,
        "item_kinds": None if plan.reach.kinds is None else {kind.value: n for kind, n in plan.reach.kinds.items()},
    }


def _sequential_document(plan: AuditPlan) -> dict[str, Any] | None:
    """Both designs by family and leak: expected and greatest trials, tokens and cost."""
    if (found := plan.sequential) is None:
        return None
    own = plan.own
    return {
        "own": found.own,
        "design": found.design.plain(),
        "looks": [look._asdict() for look in found.looks],
        "trials_at_most": own.trials,
        "rows": [
            {
                **row._asdict(),
                "sequential": row.sequential._asdict(),
                "fixed": row.fixed._asdict(),
                "expected_trials": round(row.share_asked * own.trials),
                "expected_prompt_tokens": _part(own.prompt_tokens, row.share_asked),
                "expected_output_tokens_at_most": _part(own.output_tokens_at_most, row.share_asked),
                "expected_cost_at_most": None if own.cost is None else own.cost * row.share_asked,
            }
            for row in found.rows
        ],
    }


def _part(whole: int | None, share: float) -> int | None:
    return None if whole is None else round(whole * share)


def warning(plan: AuditPlan) -> str | None:
    """What to do where a clean model will likely not be approved, or cannot be; None where it will."""
    if plan.certain_review is not None:
        return plan.certain_review
    if plan.own.approval_chance >= LOW_CHANCE:
        return None
    return f"a clean model is approved with a chance of {_percent(plan.own.approval_chance)}; {_mend(plan)}"


def over_budget(plan: AuditPlan) -> str | None:
    """Which ceiling of the suite the plan passes, or could pass, and what to do; None where it passes none."""
    budget, own = plan.budget, plan.own
    tokens = None if own.prompt_tokens is None else own.prompt_tokens + own.output_tokens_at_most
    over = []
    if budget.max_trials is not None and plan.all_trials > budget.max_trials:
        over.append(f"the audit comes to {plan.all_trials:,} trials, above max_trials {budget.max_trials:,}")
    if budget.max_tokens is not None and tokens is not None and tokens > budget.max_tokens:
        over.append(f"it may use {tokens:,} tokens, above max_tokens {budget.max_tokens:,}")
    if budget.max_cost is not None and own.cost is not None and own.cost > budget.max_cost:
        over.append(f"it may cost {_cost(own.cost)}, above max_cost {_cost(budget.max_cost)}")
    if not over:
        return None
    return f"{'; '.join(over)}: it would stop there and say so; raise budget_config, or ask fewer items"


def _ceilings(plan: AuditPlan) -> str:
    budget = plan.budget
    said = [
        None if budget.max_trials is None else f"{budget.max_trials:,} trials",
        None if budget.max_tokens is None else f"{budget.max_tokens:,} tokens",
        None if budget.max_cost is None else f"a cost of {_cost(budget.max_cost)}",
    ]
    return ", ".join(one for one in said if one is not None)


def _mend(plan: AuditPlan) -> str:
    """What would make approval likely."""
    start = f"below {_percent(LOW_CHANCE)} expect a review: "
    if plan.items_for_90 is None and plan.clusters is not None:
        return f"{start}no number of items up to {CLUSTERED_MAX_ITEMS:,}, in clusters of these sizes, gives 90 %"
    if plan.items_for_90 is None:
        return start + "the suite's limits leave no room for 90 %, however many items are asked"
    needed = f"about {_rounded(plan.items_for_90)} items{_with_control(plan)} give 90 %"
    if plan.clusters is not None:
        return f"{start}about {_rounded(plan.items_for_90)} items, in further clusters of these sizes, give 90 %"
    if plan.available is None or plan.items_for_90 <= plan.available:
        both = " and control_config.sample_size" if plan.control else ""
        return f"{start}{needed}, so raise dataset_config.sample_size{both}"
    more = max(plan.rows, key=lambda row: row.approval_chance)
    elsewhere = "" if more.own else f", and {more.variants} variants an item give {_percent(more.approval_chance)}"
    return f"{start}{needed}, of which the benchmark has {plan.available:,}{elsewhere}"


def _with_control(plan: AuditPlan) -> str:
    if not plan.control or plan.items_for_90 is None:
        return ""
    return f" with {_rounded(max(1, round(plan.items_for_90 * plan.control / plan.items)))} control items"


def conclusion(plan: AuditPlan) -> str:
    """What the suite's own number of variants costs and finds, in a sentence."""
    own = plan.own
    cost = "" if own.cost is None else f", at a cost of {_cost(own.cost)} at most,"
    found = (
        "no share of leaked items that it finds with 80 % power"
        if own.detectable_share is None
        else f"80 % power to find leaks in {_percent(own.detectable_share)} of the items or more"
    )
    items = f"{plan.items:,} items"
    if plan.clusters is not None:
        items += f" in {plan.clusters.n_clusters:,} clusters"
    if plan.control:
        items += f" and {plan.control:,} control items"
    asked = f"{items}, {own.variants} variants each"
    audit = f"With {own.trials:,} trials ({asked}){cost} the audit has {found}"
    if plan.certain_review is not None:
        return f"{audit}, and approves no model: {plan.certain_review}."
    mend = f"; {_mend(plan)}" if own.approval_chance < LOW_CHANCE else ""
    return (
        f"{audit}, and approves a clean model with a chance of {_percent(own.approval_chance)}, if the model is as the "
        f"family {plan.family.name} supposes{mend}."
    )


def print_plan(plan: AuditPlan) -> None:
    """Print the plan as tables, with the warning on standard error."""
    available = "" if plan.available is None else f" of {plan.available:,}"
    clusters = "" if plan.clusters is None else f" in {plan.clusters.n_clusters:,} clusters"
    say(f"Suite {plan.suite}: {plan.items:,}{available} items{clusters}")
    say(f"Family assumed: {plan.family.name}, because {plan.why_family}")
    say(f"{_FAMILY}\n")
    rows = [
        (
            f"{row.variants} *" if row.own else row.variants,
            f"{row.trials:,}",
            "–" if row.prompt_tokens is None else f"{row.prompt_tokens:,}",
            f"{row.output_tokens_at_most:,}",
            "–" if row.cost is None else _cost(row.cost),
            "none" if row.detectable_share is None else _percent(row.detectable_share),
            _percent(row.approval_chance),
        )
        for row in plan.rows
    ]
    say(table(_HEADINGS, rows))
    say(
        "(*: the suite's own; leaked share found: the smallest, of all items, that p < "
        f"{plan.alpha:g} finds with 80 % power)"
    )
    say(f"\nWith {plan.own.variants} variants, by how a clean model's answers come about:")
    families = [(one.name, _percent(one.approval_chance), one.title) for one in plan.families]
    say(table(("family", "approved", "meaning"), families))
    _print_sequential(plan)
    say("")
    if plan.budget.is_set:
        say(f"Budget: at most {_ceilings(plan)}; the audit comes to {plan.all_trials:,} trials of all models.")
    for note in plan.notes:
        say(f"note: {note}")
    for one in plan.exposure:
        say(f"note: {published(one)}")
    rests = "wordings alone" if plan.scope is Scope.WORDING else plan.scope.value
    say(f"scope: an approval would rest on {rests}; {plan.reach.hint}.")
    say(f"\n{conclusion(plan)}")


def _print_sequential(plan: AuditPlan) -> None:
    found, own = plan.sequential, plan.own
    if found is None:
        return
    asked = "The suite stops" if found.own else 'With "design": {"kind": "sequential"} in scoring_config it would stop'
    say(
        f"\n{asked} where the evidence decides: expected trials, of {own.trials:,} at most, by how much leaked (in "
        "brackets: decided, of so many the fixed design decides):"
    )
    families = list(dict.fromkeys(row.family for row in found.rows))
    rows = [(name, *(_of_design(plan, name, leak) for leak in LEAKS)) for name in families]
    say(table(("family", *("clean" if leak == 0 else f"{leak:.0%} leaked" for leak in LEAKS)), rows))
    clean = found.row(plan.family.name, 0.0)
    if clean is not None:
        saved = f"{clean.share_asked:.0%} of the trials"
        cost = "" if own.cost is None else f", at a cost of {_cost(own.cost * clean.share_asked)} at most"
        say(f"(a clean model of the family {plan.family.name} takes {saved}{cost}; docs/sequential.md)")


def _of_design(plan: AuditPlan, family: str, leak: float) -> str:
    assert plan.sequential is not None
    row = plan.sequential.row(family, leak)
    if row is None:
        return "–"
    decided, fixed = sum(row.sequential), sum(row.fixed)
    return f"{row.share_asked * plan.own.trials:,.0f} ({decided:.0%} of {fixed:.0%})"


def _percent(share: float) -> str:
    """Two digits where a share is small; no rounding to certainty."""
    if 0 < share < 0.1:
        return f"{100 * share:.2g} %"
    return "over 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _cost(cost: float) -> str:
    return f"{cost:,.2f}"


def _rounded(items: int) -> str:
    """Two digits, which is what the Monte Carlo error leaves."""
    step = 10 ** max(0, len(str(items)) - 2)
    return f"{-(-items // step) * step:,}"
