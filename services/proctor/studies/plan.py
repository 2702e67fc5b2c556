"""What an audit will cost and could find, before anything runs: what `proctor audit plan` computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from proctor.domain.benchmark_kind import blind_to_memory
from proctor.domain.certain_review import certain_review
from proctor.domain.channels import ALWAYS_REQUIRED, BEYOND_WORDING
from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.evidence import ClusterCount
from proctor.domain.hub import NO_HUB, HubAccess
from proctor.domain.prices import Prices
from proctor.domain.risk_register import KnownExposure, exposure_of_dataset
from proctor.domain.scope import Scope
from proctor.domain.suite import Suite
from proctor.domain.suite_budget import BudgetSection
from proctor.evidence.answers import cluster_labels, guess_chance, labels_of
from proctor.evidence.clusters import MIN_CLUSTERS
from proctor.evidence.planning.approval import AUDITS, approval_chance, detectable_share, items_for_approval
from proctor.evidence.planning.clustered_audits import SHARED, ClusterSizes
from proctor.evidence.planning.families import FAMILIES, Family
from proctor.evidence.planning.simulated_audits import Limits
from proctor.formats.benchmark_files import benchmark_file
from proctor.formats.clusters import related_notes
from proctor.formats.control import load_control
from proctor.formats.corpora import find_files
from proctor.formats.fresh import load_fresh
from proctor.formats.items import load_items, select_items
from proctor.scorer.channels.channel import ChannelPlan
from proctor.scorer.channels.plugin_calls import plan_of_plugin
from proctor.scorer.channels.registry import CHANNELS, plugins_of
from proctor.studies.answering_calls import answering_calls, answering_notes
from proctor.studies.control_plan import ControlPlan, notes_of_control
from proctor.studies.rewording_calls import rewording_calls, rewording_note
from proctor.studies.sequential_plan import AUDITS as SEQUENTIAL_AUDITS
from proctor.studies.sequential_plan import SequentialPlan, plan_sequential
from proctor.studies.stage_calls import stage_calls, stage_notes
from proctor.studies.wording_reach import WordingReach, wording_reach
from proctor.text.prompt import prompt_bytes

if TYPE_CHECKING:
    from proctor.domain.item import Item

#: The article's volumes, and the three that it recommends.
VARIANTS: Final = (2, 3, 4, 9)
#: Bytes of UTF-8 a token: common byte-pair vocabularies come to about four in English and fewer in other scripts,
#: whose characters take more bytes.
BYTES_PER_TOKEN: Final = 4
#: Text that one process searches, at least as was seen (docs/speed.md).
SEARCHED_MB_PER_S: Final = 60
#: Seed of the simulations. The plan of a suite is the same whenever it is asked for.
_SEED: Final = 0


class Benchmark(NamedTuple):
    """What is known of a suite's items without asking anyone."""

    items: tuple[Item, ...] | None
    """The items that would be asked; None where they cannot be read here."""
    n: int
    """How many are asked: those, or the sample size."""
    available: int | None
    """Items of the whole benchmark."""
    notes: tuple[str, ...]
    fresh: tuple[Item, ...] | int = ()
    """The fresh items that would be asked; their number alone where the benchmark cannot be read here."""
    control: ControlPlan = ControlPlan()

    @property
    def n_fresh(self) -> int:
        """How many fresh items are asked."""
        return self.fresh if isinstance(self.fresh, int) else len(self.fresh)

    @property
    def clusters(self) -> ClusterSizes | None:
        """Of the items; None where each is one of its own, as far as is known."""
        items = self.items or ()
        return ClusterSizes.of(labels_of((item.item_id for item in items), cluster_labels(items)))


class PlanRow(NamedTuple):
    """An audit with this many variants an item. Shares and chances are fractions."""

    variants: int
    own: bool
    """Whether it is the suite's own number."""
    trials: int
    """Those of the fresh items and of the control items among them."""
    prompt_tokens: int | None
    output_tokens_at_most: int
    cost: float | None
    """At most, for it counts every answer at its ceiling of tokens."""
    detectable_share: float | None
    approval_chance: float


class FamilyChance(NamedTuple):
    """A family of models, and the chance that a clean one is approved with the suite's own variants."""

    name: str
    title: str
    approval_chance: float


class AuditPlan(NamedTuple):
    """What a suite's audit will cost and could find."""

    suite: str
    items: int
    available: int | None
    family: Family
    why_family: str
    rows: tuple[PlanRow, ...]
    families: tuple[FamilyChance, ...]
    items_for_90: int | None
    alpha: float
    budget: BudgetSection
    all_trials: int
    """Trials of the suite's own number of variants, with the first calls of the rewording model, the solvers', the
    routers' and those of plug-ins' stages."""
    notes: tuple[str, ...]
    reach: WordingReach
    """What wording alone can say of these items."""
    blind: str | None
    """That the suite relies on wordings where these are blind; None where it does not, or the items are not read."""
    scope: Scope
    """What an approval would rest on: other wordings, and the channels past these that the suite requires."""
    certain_review: str | None
    """Why the audit ends in a review whatever it finds; None where it can approve."""
    exposure: tuple[KnownExposure, ...] = ()
    """What is published of the benchmark's exposure. Nothing above rests on it."""
    clusters: ClusterCount | None = None
    """What the chances are over; None where every item is a cluster of its own."""
    control: int = 0
    """Control items, which are asked in as many wordings."""
    sequential: SequentialPlan | None = None
    """What stopping where the evidence decides would save; None where the suite cannot."""

    @property
    def own(self) -> PlanRow:
        """The row of the suite's own number of variants."""
        return next(row for row in self.rows if row.own)


def plan_audit(
    suite: Suite,
    base: Path,
    bundle: Path,
    benchmarks: Path | None = None,
    *,
    hub: HubAccess = NO_HUB,
    family: str | None = None,
    prices: Prices | None = None,
    progress: Callable[[str], None] = lambda text: None,
    audits: int = AUDITS,
) -> AuditPlan:
    """Plan the audit of a suite.

    Args:
        suite: the suite.
        base: the folder that its relative paths start from.
        bundle: the reference bundle, for the benchmark that Proctor ships.
        benchmarks: the operator's folder of benchmarks, for suites that name no file.
        hub: what may be read of the hub; by default nothing.
        family: name of the family of models to assume; by default one that fits the items.
        prices: for the cost; there is none without.
        progress: told what is being computed.
        audits: simulated ones for each figure.

    Raises:
        BadInputError: when the suite's files cannot be read or used, or there is no such family.
    """
    benchmark, searched = read_benchmark(suite, base, bundle, benchmarks, hub), _of_exposure(suite, base)
    assumed, why = assume(suite, benchmark.items, family)
    limits = Limits.of(suite, guess_chance(suite.scoring, benchmark.items or ()))
    own, n = suite.perturbation.num_variants_per_item, benchmark.n
    clusters = benchmark.clusters
    prompt_bytes = None if benchmark.items is None else _prompt_bytes(suite, benchmark.items)
    n_fresh, fresh_bytes = benchmark.n_fresh, 0
    if not isinstance(benchmark.fresh, int):
        fresh_bytes = _prompt_bytes(suite, benchmark.fresh)
    n_control, control_bytes = benchmark.control.n, _prompt_bytes(suite, benchmark.control.items)
    control = benchmark.control.beside(n, clustered=clusters is not None)
    times = suite.decoding.replicates
    rows = []
    for variants in sorted({*VARIANTS, own}):
        progress(f"simulating audits with {variants} variants an item")
        trials = times * (n + n_control) * (1 + variants) + n_fresh
        prompt = None
        if prompt_bytes is not None:
            worded = times * (prompt_bytes + control_bytes) * (1 + variants)
            prompt = math.ceil((worded + fresh_bytes) / BYTES_PER_TOKEN)
        output = trials * suite.decoding.max_tokens
        rows.append(
            PlanRow(
                variants=variants,
                own=variants == own,
                trials=trials,
                prompt_tokens=prompt,
                output_tokens_at_most=output,
                cost=None if prices is None or prompt is None else prices.of(prompt, output),
                detectable_share=detectable_share(
                    assumed,
                    n,
                    variants,
                    _rng(variants),
                    alpha=suite.scoring.significance_alpha,
                    audits=audits,
                    clusters=clusters,
                    control=control,
                ),
                approval_chance=approval_chance(
                    assumed, n, variants, limits, _rng(variants), audits=audits, clusters=clusters, control=control
                ),
            )
        )
    progress("simulating audits with more items")
    beyond = [name for name in BEYOND_WORDING if name in suite.required_channels]
    reach = wording_reach(benchmark.items, beyond)
    of_channels = _channel_plans(suite, n)
    progress("simulating audits that stop where the evidence decides")
    others = {**FAMILIES, assumed.name: assumed}
    return AuditPlan(
        suite=suite.audit_suite_id,
        items=n,
        available=benchmark.available,
        family=assumed,
        why_family=why,
        rows=tuple(rows),
        families=tuple(
            FamilyChance(
                one.name,
                one.title,
                approval_chance(one, n, own, limits, _rng(own), audits=audits, clusters=clusters, control=control),
            )
            for one in others.values()
        ),
        items_for_90=items_for_approval(
            assumed, own, limits, _rng(own), audits=audits, clusters=clusters, control=control
        ),
        alpha=suite.scoring.significance_alpha,
        budget=suite.budget,
        all_trials=times * (n + n_control) * (1 + own)
        + n_fresh
        + rewording_calls(suite, n + n_control)
        + answering_calls(suite, n + n_control)
        + stage_calls(suite, n)
        + sum(one.calls for one in of_channels),
        notes=(
            *benchmark.notes,
            *_of_clusters(clusters),
            *_of_fresh(suite, n_fresh),
            *searched,
            *notes_of_control(suite, benchmark.control, clustered=clusters is not None),
            *_of_replicates(suite),
            *_reservations(suite, n, n_control),
            *(line for one in of_channels for line in one.lines),
        ),
        reach=reach,
        blind=None if reach.kind is None else blind_to_memory(reach.kind, suite.required_channels),
        scope=Scope.of(beyond),
        certain_review=certain_review(suite),
        exposure=exposure_of_dataset(suite.dataset.benchmark_name, suite.dataset.hub_id),
        clusters=None if clusters is None else clusters.counted,
        control=n_control,
        sequential=plan_sequential(
            suite,
            others.values(),
            n,
            own,
            limits,
            audits=min(audits, SEQUENTIAL_AUDITS),
            clusters=clusters,
            control_items=0 if control is None else n_control,
        ),
    )


def read_benchmark(
    suite: Suite, base: Path, bundle: Path, benchmarks: Path | None, hub: HubAccess = NO_HUB
) -> Benchmark:
    """The items that an audit would ask, or their number alone where they are not at hand.

    A suite may name its benchmark without saying where it is, and a dataset of the hub may be out of reach: what can
    be said is then said of the sample size. A file that is named and cannot be read is a mistake.

    Raises:
        BadInputError: for such a file, or one that holds what is no item, no fresh item or no rewording.
    """
    dataset = suite.dataset
    if dataset.hub_id is None and benchmark_file(dataset, base, bundle, benchmarks) is None:
        reason = (
            f"the suite says not where the items of {dataset.benchmark_name} are (dataset_config.path, or hub_id and "
            "hub_revision), which the audit itself will need"
        )
        return _unread(suite, reason)
    try:
        loaded = load_items(dataset, base, bundle, benchmarks, hub=hub)
    except BadInputError:
        raise
    except ProctorError as error:
        return _unread(suite, str(error))
    items = select_items(loaded.items, dataset)
    fresh = load_fresh(suite, base, loaded.items)
    notes = (*loaded.notes(dataset), *related_notes(items, dataset), *_imported(suite, base, items))
    if fresh is not None:
        notes += fresh.notes
    asked = () if fresh is None else fresh.items
    control = load_control(suite, base, loaded.items, asked)
    planned = ControlPlan() if control is None else ControlPlan(len(control.items), control.items, control.notes)
    return Benchmark(items, len(items), len(loaded.items), notes, asked, planned)


def _unread(suite: Suite, reason: str) -> Benchmark:
    size = suite.dataset.sample_size
    note = f"planned for sample_size, {size:,} items, and without prompt tokens, because the items are not read: "
    n_fresh = 0 if suite.fresh is None else suite.fresh.sample_size
    control = ControlPlan(0 if suite.control is None else suite.control.sample_size)
    return Benchmark(None, size, None, (note + reason,), n_fresh, control)


def _of_fresh(suite: Suite, n_fresh: int) -> tuple[str, ...]:
    """What the trials and the chances have of the fresh items."""
    if suite.fresh is None:
        return ()
    panel = (
        ""
        if suite.fresh.panel_path is not None
        else ("; without a panel of reference models, fresh items that are simply harder look like memory")
    )
    return (
        f"{n_fresh:,} fresh items are asked beside the benchmark, once each, and counted among the trials; chances of "
        f"approval and shares found are those of the rewordings alone{panel}",
    )


def _of_exposure(suite: Suite, base: Path) -> tuple[str, ...]:
    """What is searched, and about how long that takes.

    Raises:
        BadInputError: a pattern matches no file.
    """
    if suite.exposure is None:
        return ()
    found = find_files(suite.exposure, base)
    stages = ", ".join(
        f"{stage} {sum(file.size_bytes for file in files) / 1e6:,.1f} MB in {len(files):,} "
        f"file{'s' if len(files) > 1 else ''}"
        for stage, files in found.items()
    )
    megabytes = sum(file.size_bytes for files in found.values() for file in files) / 1e6
    minutes = math.ceil(megabytes / SEARCHED_MB_PER_S / 60)
    return (
        f"training data are searched by {suite.exposure.policy} while the model answers: {stages}; at "
        f"{SEARCHED_MB_PER_S} MB/s of text that takes about {minutes:,} min, longer where files are packed, and "
        "the audit decides once both are there",
    )


def _of_replicates(suite: Suite) -> tuple[str, ...]:
    """What the trials and the chances have of several answers to each prompt."""
    if (times := suite.decoding.replicates) == 1:
        return ()
    return (
        f"each prompt but those of fresh items is asked {times:,} times, which trials, tokens and cost count; chances "
        "of approval and shares found are those of one answer each, and no worse with more: items count, and not "
        "answers",
    )


def _of_clusters(clusters: ClusterSizes | None) -> tuple[str, ...]:
    """What the chances take for granted where items come in clusters."""
    if clusters is None:
        return ()
    counts = clusters.counted
    alike = f", as {counts.effective:.1f} of equal size" if counts.effective < counts.n_clusters else ""
    said = (
        f"the items come in {counts.n_clusters:,} clusters of up to {counts.largest:,}{alike}; chances are over these, "
        f"and suppose that {100 * SHARED:.0f} % of an item's answers are its cluster's own",
    )
    if counts.enough:
        return said
    few = f"with fewer than {MIN_CLUSTERS} clusters the gate can only review: ask items of further ones"
    return (*said, few)


def _imported(suite: Suite, base: Path, items: tuple[Item, ...]) -> tuple[str, ...]:
    """A note where a file of rewordings has too few of them for the suite."""
    from proctor.formats.named_file import read_named_file
    from proctor.formats.rewordings import match_rewordings, parse_rewordings

    if suite.perturbation.rewordings_path is None:
        return ()
    path, wanted = base / suite.perturbation.rewordings_path, suite.perturbation.num_variants_per_item
    data = read_named_file(path, "perturbation_config.rewordings_path")
    matched = match_rewordings(parse_rewordings(data, str(path)), items, suite.dataset.benchmark_name).by_item
    short = sum(len(matched.get(item.item_id, ())) < wanted for item in items)
    # A strategy beside it multiplies the rewordings.
    if suite.perturbation.perturbation_strategy != "imported" or not short:
        return ()
    return (f"{path} has fewer than {wanted} rewordings for {short:,} of the {len(items):,} items",)


def assume(suite: Suite, items: tuple[Item, ...] | None, name: str | None) -> tuple[Family, str]:
    """The family that a plan assumes, and why.

    By default guessers where every item has options: a model then knows an item or picks an option, with the chance
    that the suite or the number of options gives. Otherwise `beta_1_1`, where every answer is a coin of its own:
    nothing is known of how answers to open questions vary with the wording, and of the families whose rewordings are
    independent none needs more items, so a plan that suffices for it suffices for what is more consistent.

    Raises:
        BadInputError: where there is no family of this name.
    """
    chance = guess_chance(suite.scoring, items or ())
    has_options = bool(items) and all(item.choices for item in items or ())
    why = "it was asked for"
    if name is None and has_options:
        name, why = "guessers", "every item has options, so that an item is known or guessed"
    elif name is None:
        name = "beta_1_1"
        why = "how answers vary with the wording is not known yet, and this calls for many items"
    if name not in FAMILIES:
        raise BadInputError(f"--family {name!r} is not a family of models; there are: {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    if name == "guessers" and chance is not None:
        family = family._replace(
            title=f"guessers (75 % known, the rest guessed with chance {chance:.2g})", unknown_chance=chance
        )
    return family, why


def _prompt_bytes(suite: Suite, items: tuple[Item, ...]) -> int:
    """Bytes of the canonical prompts, with template and solved examples. A variant counts like its item."""
    return sum(prompt_bytes(suite.prompt, item.question, item.choices) for item in items)


def _reservations(suite: Suite, items: int, control: int) -> tuple[str, ...]:
    """What the plan takes for granted."""
    notes = [
        "counts stand before admission: an item without an admitted rewording is not asked, and one may get fewer "
        "than it should",
        f"tokens of prompts are estimated ({BYTES_PER_TOKEN} bytes of UTF-8 each, a rewording as long as its item); "
        f"answers are counted at their ceiling, max_tokens {suite.decoding.max_tokens:,}",
    ]
    # What is simulated is the gate's table, with the channels that it is made of.
    if others := sorted(set(suite.required_channels) - set(ALWAYS_REQUIRED)):
        notes.append(f"chances of approval suppose that the other required channels are clean: {', '.join(others)}")
    if suite.scoring.method == "per_item_t_test":
        notes.append("the suite blocks by the article's rule; the leaked share is what the default p-value finds")
    if note := rewording_note(suite, items + control):
        notes.append(note)
    return (*notes, *answering_notes(suite, items + control), *stage_notes(suite, items))


def _channel_plans(suite: Suite, items: int) -> list[ChannelPlan]:
    """What the channels say of the audit, each in its turn."""
    built_in = [CHANNELS.get(name).plan(suite, items) for name in CHANNELS.built_in]
    return [*built_in, *(plan_of_plugin(name, suite, items) for name in plugins_of(suite))]


def _rng(variants: int) -> np.random.Generator:
    """A row's own stream, so that its figures are the same beside any other rows."""
    return np.random.default_rng([_SEED, variants])
