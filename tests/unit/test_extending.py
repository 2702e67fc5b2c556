"""The recipes for strategies, backends, log formats and registries: each is read out of its document and used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.suite import PerturbationSection
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.worker.shards import Backends
from proctor.perturbation.engine import build
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.recipe import Recipe
from proctor.runtime.settings import Settings
from proctor.studies.comparison import compare_logs
from tests.installed_plugins import Plugins
from tests.recipes import recipes
from tests.standing_audits import decided_audits
from tests.unit.variant_samples import ITEMS, HashedEncoder, MemoryRows


def follow(heading: str, plugins: Plugins) -> None:
    """Install what a recipe says, as it stands there."""
    said = recipes(heading)
    plugins.install(said.modules, said.entry_points)


def test_the_strategy_rewords_items_through_the_engine(plugins: Plugins) -> None:
    follow("A strategy", plugins)
    section = PerturbationSection(
        perturbation_strategy="number_words+polite",
        num_variants_per_item=2,
        min_semantic_distance=0.0,
        max_semantic_distance=1.9,
        max_token_overlap=1.0,
        min_yield=0.0,
    )
    chain = Recipe(section, benchmark="b", bundle=Path("none")).chain({})
    made = build(ITEMS, section, chain=chain, encoder=HashedEncoder(), library=VariantLibrary(MemoryRows()))
    assert {variant.item_id for variant in made.variants} == {item.item_id for item in ITEMS}
    assert all(variant.question.startswith(variant.provenance["polite"]["opening"]) for variant in made.variants)


def test_the_backend_answers_a_shard_in_the_worker(plugins: Plugins) -> None:
    follow("A backend", plugins)
    spec = EndpointSpec(backend="backwards", url="http://127.0.0.1:9/v1", served_name="m", model_version=None)
    trials = [Trial(stage="answer", arm=Arm.CANONICAL, item_id=text, prompt=text) for text in ("abc", "def", " ")]

    async def ask() -> list[Completion]:
        backends = Backends(Settings(home=Path("home")))
        assert (await backends.probe(spec)).detail == "m at http://127.0.0.1:9/v1 says everything backwards"
        completions = await backends.answer(spec, trials, Decoding(), deadline_s=5.0)
        await backends.close()
        return completions

    first, second, failed = asyncio.run(ask())
    assert (first.text, second.text) == ("cba", "fed")
    assert failed.error == "there is nothing to say backwards"


def test_the_log_format_is_compared_with_another(plugins: Plugins, tmp_path: Path) -> None:
    follow("A log format", plugins)
    tally, table = tmp_path / "a.log", tmp_path / "b.csv"
    tally.write_text("tally 1\n" + "".join(f"q{n}: {n % 2}\n" for n in range(20)))
    table.write_text("id,correct\n" + "".join(f"q{n},{n % 4 == 1:d}\n" for n in range(20)))
    found = compare_logs(tally, table)
    assert (found.format_a, found.format_b) == ("tally of toy 1.2", "csv")
    assert (found.primary.n, found.primary.only_a, found.primary.only_b) == (20, 5, 0)
    tally.write_text("tally 1\nq1\n")
    with pytest.raises(BadInputError, match=r"a\.log:2: write an item, a colon and its grade"):
        compare_logs(tally, table)


def test_the_registry_is_written_to_by_the_worker(plugins: Plugins, tmp_path: Path) -> None:
    follow("A registry", plugins)
    with decided_audits(tmp_path / "home") as audits:
        event = audits.decide("m", DecisionOutcome.BLOCK, weights="b")
        assert audits.write(f"share://{tmp_path}", event) == "bbbbbbbbbbbb"
    assert json.loads((tmp_path / "bbbbbbbbbbbb.json").read_text()) == event.plain()
