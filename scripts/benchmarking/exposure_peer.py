"""Another tool's scan, timed in its own environment: needs nothing of Proctor's.

    PYTHON exposure_peer.py janitor|datatrove|assay ITEMS WORKERS CORPUS...

Prints the seconds that the scan took, without start and index, and how many documents it flagged.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

N = 13


def main() -> None:
    """Run one peer."""
    tool, items, workers, *corpus = sys.argv[1:]
    questions = [json.loads(line)["question"] for line in Path(items).read_text("utf-8").splitlines()]
    run = {"janitor": janitor, "datatrove": datatrove, "assay": assay}[tool]
    seconds, flagged = run(questions, corpus, int(workers))
    print(json.dumps({"seconds": seconds, "flagged": flagged}))


def texts(corpus: Iterable[str]) -> Iterator[str]:
    """The documents of JSONL files."""
    for path in corpus:
        with Path(path).open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]


def janitor(questions: list[str], corpus: list[str], workers: int) -> tuple[float, int]:
    """lm-evaluation-harness' janitor, in Python as it is installed."""
    from lm_eval.decontamination.janitor import Janitor

    tool = Janitor(ngram_n=N)
    for question in questions:
        tool.register_contaminant_python(question)
    begun_s = time.perf_counter()
    flagged = sum(tool.clean_python(text) != [text] for text in texts(corpus))
    return time.perf_counter() - begun_s, flagged


def datatrove(questions: list[str], corpus: list[str], workers: int) -> tuple[float, int]:
    """datatrove's n-gram filter; its indexer needs lighteval, so its own functions fill the index."""
    from datatrove.data import Document
    from datatrove.pipeline.decont.n_grams import NGramsDecontConfig, NGramsDecontFilter
    from datatrove.utils.text import ngrams, simplify_text

    with tempfile.TemporaryDirectory() as folder:
        tool = NGramsDecontFilter(folder, NGramsDecontConfig(n_grams=N, find_query_ngrams=True))
        tool._index_hashes = {
            tool.hash_func(" ".join(gram)): "items"
            for question in questions
            for gram in ngrams(tool.tokenizer.word_tokenize(simplify_text(question, tool.config.norm_config)), N)
        }
        begun_s = time.perf_counter()
        flagged = sum(tool.filter(Document(text=text, id="")) is not True for text in texts(corpus))
        return time.perf_counter() - begun_s, flagged


def assay(questions: list[str], corpus: list[str], workers: int) -> tuple[float, int]:
    """corpus-assay, whose core is Rust."""
    from corpus_assay.benchmark_spec import BenchmarkSpec
    from corpus_assay.config import ScanConfig
    from corpus_assay.indexing import build_index, write_native_index_artifacts
    from corpus_assay.scanner.runner import do_scan

    class Loader:
        def __init__(self, spec: BenchmarkSpec) -> None:
            self.dataset_fingerprints: list[dict[str, object]] = []

        def load_positive(self) -> Iterator[str]:
            return iter(questions)

    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder) / "items.native")
        spec = BenchmarkSpec(name="items", dataset="items", splits=["test"])
        write_native_index_artifacts(build_index(benchmarks=[spec], ngram=N, loader_factory=Loader), index)
        config = ScanConfig(
            inputs=list(corpus),
            text_key="text",
            id_key=None,
            index_path=index,
            out_dir=folder + "/out",
            workers=workers,
        )
        begun_s = time.perf_counter()
        summary = do_scan(config, print_progress=False)
        return time.perf_counter() - begun_s, summary.total_contaminated


if __name__ == "__main__":
    main()
