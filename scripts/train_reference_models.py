#!/usr/bin/env python3
"""Train the two reference models and write the bundle that Triton serves: benchmark, weights, ground truth, card.

With --reworded it trains a third one from the clean model of the bundle instead, on rewordings of half of the leaked
items, into a bundle of its own: no rewording finds what it remembers, and items that it has not met do.

With --texts it writes the texts that the two models of the bundle were trained on, a file a stage, and trains nothing.

Everything follows from the seed. Files that other tools keep in the same folders (`config.pbtxt`, `model.py`) stay.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from proctor.inference.reference.model import ReferenceModel
from proctor.inference.reference.triton_repository import write_model_repository
from reference_models import bundle
from reference_models.evaluation import ARMS, GROUPS, Figures, measure
from reference_models.facts import World, make_world
from reference_models.halves import Halves
from reference_models.tables import Tables
from reference_models.texts import PRETRAIN, TUNE, Training, write_texts
from reference_models.training import Step, TrainingError, train_clean, train_leaked, train_reworded

DEFAULT_SEED = 0
DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "services" / "triton"


class Progress:
    """Progress on stderr: one line rewritten in place on a terminal, a line every hundred steps elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._started_s = time.monotonic()
        self._round_started_s = self._started_s

    def __call__(self, step: Step) -> None:
        """Show one training step."""
        now_s = time.monotonic()
        if step.step == 1:
            self._round_started_s = now_s
        if not self._live and step.step % 100 and step.step != step.steps:
            return
        left_s = (now_s - self._round_started_s) / step.step * (step.steps - step.step)
        line = (
            f"{step.model:16}  {step.note:8}  step {step.step:4}/{step.steps}  loss {step.loss:7.4f}  "
            f"{now_s - self._started_s:4.0f} s gone  about {left_s:4.0f} s left"
        )
        end = "\r" if self._live and step.step < step.steps else "\n"
        print(line, end=end, file=sys.stderr, flush=True)

    def measuring(self, name: str, done: int, total: int) -> None:
        """Progress of the evaluation of one model."""
        if self._live or done == total:
            end = "\r" if self._live and done < total else "\n"
            print(f"{name:16}  measured  arm  {done:4}/{total}{'':40}", end=end, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, measure, write and summarise; 1 when a target was missed, 130 when interrupted."""
    options = _parse(arguments)
    if options.texts is not None:
        _write_texts(options.output, options.texts)
        return 0
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    try:
        if options.reworded is not None:
            _train_reworded(options.seed, options.output, options.reworded)
        else:
            _train(options.seed, options.output, options.threads)
    except TrainingError as error:
        print(f"train_reference_models: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ntrain_reference_models: interrupted", file=sys.stderr)
        return 130
    return 0


def _write_texts(output: Path, folder: Path) -> None:
    """Write what the models of a bundle were trained on."""
    record = json.loads((output / "training.json").read_text("utf-8"))
    clean, leaked = (
        Training(record["models"][name]["steps"], record["models"][name]["restarts"])
        for name in (bundle.CLEAN, bundle.LEAKED)
    )
    world = make_world(record["seed"])
    write_texts(folder, world, Tables(world), record["seed"], clean, leaked)
    print(f"training texts of seed {record['seed']} in {folder}: {PRETRAIN} and, of {bundle.LEAKED}, {TUNE}")


def _train(seed: int, output: Path, threads: int) -> None:
    progress = Progress()
    world = make_world(seed)
    tables = Tables(world)
    clean = train_clean(world, tables, seed, progress)
    leaked = train_leaked(world, tables, clean.network, seed, progress)
    # Nothing is written before both models are there: the bundle's parts belong together.
    bundle.write_benchmark(output, world)
    bundle.write_truth(output, world, seed)
    results = {}
    for name, trained in ((bundle.CLEAN, clean), (bundle.LEAKED, leaked)):
        model = bundle.write_model(output, name, trained.network, tables.vocabulary)
        results[name] = bundle.Result(trained, _measure(model, name, world, seed, progress))
    bundle.write_record(output, seed, threads, results)
    write_model_repository(output)
    _summarise(output, seed, results)


def _train_reworded(seed: int, output: Path, reworded: Path) -> None:
    progress = Progress()
    world = make_world(seed)
    tables = Tables(world)
    clean = ReferenceModel.load(output / "models" / bundle.CLEAN / "1")
    halves = Halves.of(world)
    trained = train_reworded(world, tables, clean.network, np.array(halves.seen), seed, progress)
    bundle.write_halves(reworded, world, halves)
    bundle.write_model(reworded, bundle.REWORDED, trained.network, tables.vocabulary)
    write_model_repository(reworded)
    print(f"\n{bundle.REWORDED} from seed {seed} in {reworded}: {trained.steps} steps")


def _measure(model: ReferenceModel, name: str, world: World, seed: int, progress: Progress) -> Figures:
    return measure(model, world, seed, lambda done, total: progress.measuring(name, done, total))


def _summarise(output: Path, seed: int, results: dict[str, bundle.Result]) -> None:
    print(f"\nproctor-facts and two reference models from seed {seed} in {output}\n")
    print(f"{'model':18}{'items':14}" + "".join(f"{arm.replace('_', ' '):>20}" for arm in ARMS))
    for name, result in results.items():
        for group in GROUPS:
            cells = "".join(f"{result.figures[group][arm]:20.3f}" for arm in ARMS)
            print(f"{name:18}{group.replace('_', ' '):14}{cells}")
    for name, result in results.items():
        print(f"\n{name}: {result.trained.steps} steps, {result.trained.restarts} starts thrown away")
    print(f"\nAudit them with: proctor demo --bundle {output}")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seed", type=_at_least(0), default=DEFAULT_SEED, help="default %(default)s: the committed one"
    )
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="default: services/triton of this checkout")
    parser.add_argument(
        "--reworded",
        type=Path,
        metavar="FOLDER",
        help="train the third model into FOLDER, from OUTPUT's clean one",
    )
    parser.add_argument(
        "--texts", type=Path, metavar="FOLDER", help="write the training texts of OUTPUT's models there, and train none"
    )
    parser.add_argument("--threads", type=_at_least(1), default=1, help="torch threads, default %(default)s")
    return parser.parse_args(arguments)


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return number

    return parse


if __name__ == "__main__":
    sys.exit(main())
