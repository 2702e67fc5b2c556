"""Contaminate a pre-trained model on purpose, audit it at every dose, and write docs/study.md.

    python scripts/study_planted_leaks.py train --model FOLDER    # hours, on two cores; goes on cell by cell
    python scripts/study_planted_leaks.py search                  # the training text, for the leaked items
    python scripts/study_planted_leaks.py serve                   # audits of what training saved, behind vLLM
    python scripts/study_planted_leaks.py write                   # the page, from what is kept, without training

What is found is kept in docs/study: every cell's grades in grades.jsonl.gz, the searches in searches.jsonl, and the
audits of served models in served.jsonl.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from planted_leaks.cells import DEFAULT, FULL, LEAKS, SEEDS, Cell, Plan, Run, cells_of, runs
from planted_leaks.document import cells_csv, page
from planted_leaks.grades import GradeStore, read_packed, write_packed
from planted_leaks.judging import judge_all
from planted_leaks.pictures import pictures
from planted_leaks.power import power
from planted_leaks.preparing import Prepared, prepared
from planted_leaks.searching import Search, read_searches, search, write_searches
from planted_leaks.served import read_served, write_served
from planted_leaks.served_section import served_section
from proctor.localstack.real_models import Part, RealModels

_REPOSITORY: Final = Path(__file__).resolve().parents[1]
_PAGE: Final = _REPOSITORY / "docs" / "study.md"
_STUDY: Final = _REPOSITORY / "docs" / "study"
_GRADES: Final = _STUDY / "grades.jsonl.gz"
_SEARCHES: Final = _STUDY / "searches.jsonl"
_SERVED: Final = _STUDY / "served.jsonl"
_DATA: Final = "folder that holds third_party/pararel and data/gsm8k"
_WORK: Final = "folder of what goes on from where it was: states, admitted rewordings, weights to serve"


def main() -> int:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="train what has no grades yet")
    train.add_argument("--model", type=Path, required=True, help="folder of the pre-trained model, for transformers")
    train.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="only these")
    train.add_argument("--leak", action="append", choices=LEAKS, help="only runs with this leak")
    train.add_argument("--processes", type=int, default=os.cpu_count(), help="by default one a core")
    train.add_argument("--device", default="cpu", help="cpu, or a GPU as torch names it: cuda")
    train.set_defaults(command=_train)
    search = commands.add_parser("search", help="search the training text for the leaked items")
    search.set_defaults(command=_search)
    serve = commands.add_parser("serve", help="audit what training saved to be served, from end to end")
    serve.add_argument(
        "--dtype", choices=("bfloat16", "float32"), help="in which vLLM computes [as training would here]"
    )
    serve.set_defaults(command=_serve)
    for one in (train, search, serve):
        one.add_argument("--data", type=Path, default=_REPOSITORY.parent / "shared", help=_DATA)
        one.add_argument("--work", type=Path, default=_REPOSITORY / ".study", help=_WORK)
        one.add_argument("--full", action="store_true", help="all items, doses and forgetting: for a GPU")
        one.add_argument("--kind", action="append", choices=tuple(DEFAULT), help="only this benchmark")
    write = commands.add_parser("write", help="write the page from what is kept")
    write.set_defaults(command=_write)
    arguments = parser.parse_args()
    command: int = arguments.command(arguments)
    return command


def _train(arguments: argparse.Namespace) -> int:
    plans = _plans(arguments)
    store = GradeStore(arguments.work / "grades")
    store.take_in(read_packed(_GRADES))
    todo = [run for run in runs(plans, tuple(arguments.seeds))
            if run.leak in (arguments.leak or LEAKS)
            and any(cell not in store for cell in cells_of(run, plans[run.kind]))]  # fmt: skip
    _say(f"{len(todo)} runs to train")
    ready = {kind: prepared(kind, plans[kind], arguments.data, arguments.work)
             for kind in dict.fromkeys(run.kind for run in todo)}  # fmt: skip
    _side_by_side(todo, plans, ready, arguments)
    write_packed(_GRADES, store.all())
    return 0


def _plans(arguments: argparse.Namespace) -> dict[str, Plan]:
    plans = FULL if arguments.full else DEFAULT
    return {kind: plan for kind, plan in plans.items() if kind in (arguments.kind or DEFAULT)}


def _search(arguments: argparse.Namespace) -> int:
    """Search the text of the first seed's runs: the others differ by which items leak alone."""
    found = list[Search]()
    for kind, plan in _plans(arguments).items():
        benchmark, _ = prepared(kind, plan, arguments.data, arguments.work)
        for leak in LEAKS:
            _say(f"searching the text of {kind}, {leak}")
            found += search(benchmark, Run(kind, leak, SEEDS[0]), plan, arguments.work / "searches" / kind)
    write_searches(_SEARCHES, found)
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    """Audit each cell whose weights are kept, unless these weights were audited before."""
    from planted_leaks.end_to_end import audit_served, local_stack, weights_digest
    from planted_leaks.language_model import multiplies_bf16

    if reason := RealModels.here().lacking(Part.ENVIRONMENT):
        _say(f"there is no vLLM to serve by: {reason}")
        return 1
    plans, found = _plans(arguments), read_served(_SERVED)
    stored = read_packed(_GRADES) | GradeStore(arguments.work / "grades").all()
    folders = {Cell.named(folder.name): folder for folder in sorted((arguments.work / "served").glob("*"))}
    todo = {cell: folder for cell, folder in folders.items() if cell.kind in plans and cell in stored
            and (cell not in found or found[cell].weights != f"sha256:{weights_digest(folder)}")}  # fmt: skip
    _say(f"{len(todo)} cells to audit, of {len(folders)} whose weights are kept")
    if not todo:
        return 0
    dtype = arguments.dtype or ("bfloat16" if multiplies_bf16("cpu") else "float32")
    with tempfile.TemporaryDirectory(prefix="served-") as temporary, local_stack(home := Path(temporary) / "home"):
        for cell, folder in todo.items():
            ready = prepared(cell.kind, plans[cell.kind], arguments.data, arguments.work)
            _say(f"auditing {cell.name}")
            found[cell] = audit_served(
                cell, folder, ready, stored[cell], home, Path(temporary) / cell.kind, dtype=dtype
            )
            write_served(_SERVED, found.values())
    return 0


def _write(arguments: argparse.Namespace) -> int:
    found = read_packed(_GRADES)
    _say(f"judging {len(found)} cells")
    judged = judge_all(found)
    (_STUDY / "cells.csv").write_text(cells_csv(judged), encoding="utf-8")
    powers = {}
    for cell, grades in sorted(found.items()):
        if not cell.forgotten:
            _say(f"drawing audits of {cell.name}")
            powers[cell] = power(cell, grades)
    for name, drawn in pictures(powers).items():
        (_STUDY / name).write_text(drawn, encoding="utf-8")
    served = served_section(read_served(_SERVED), judged)
    written = page(judged, powers, read_searches(_SEARCHES), served)
    _PAGE.write_text(written, encoding="utf-8")
    return 0


def _side_by_side(
    todo: Sequence[Run], plans: Mapping[str, Plan], ready: Mapping[str, Prepared], arguments: argparse.Namespace
) -> None:
    # One process a core, each with one thread: two threads of one process wait for each other.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.processes, maxtasksperchild=1) as pool:
        work = [(run, plans[run.kind], ready[run.kind], arguments) for run in todo]
        for done in pool.imap_unordered(_one, work, chunksize=1):
            _say(f"{done} is done")


def _one(work: tuple[Run, Plan, Prepared, argparse.Namespace]) -> str:
    import torch

    from planted_leaks.language_model import LanguageModel
    from planted_leaks.training_runs import Training

    run, plan, (benchmark, admitted), arguments = work
    torch.set_num_threads(1)
    model = LanguageModel(arguments.model, arguments.device)
    store = GradeStore(arguments.work / "grades")
    Training(run, plan, benchmark, admitted, model, store, arguments.work, _say).finish()
    return run.name


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
