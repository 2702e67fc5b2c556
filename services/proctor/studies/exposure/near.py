"""Searches for near duplicates: by MinHash as the corpus' files come, by the encoder of the perturbation engine."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from proctor.domain.errors import BadInputError
from proctor.exposure.items import Part
from proctor.exposure.near.matches import NearMethod
from proctor.formats.faults import shown

if TYPE_CHECKING:
    from proctor.exposure.corpus import CorpusFile
    from proctor.exposure.items import ScannedItem
    from proctor.exposure.near.report import NearReport
    from proctor.exposure.near.scanning import NearScan

Progress = Callable[[int, int], None]
#: Passages that are embedded of a corpus, unless another number is asked for.
SAMPLE: Final = 20_000


def near_methods(names: Sequence[str]) -> tuple[NearMethod, ...]:
    """The methods of these names, each once.

    Raises:
        BadInputError: when there is none of a name, or what it needs is not installed.
    """
    for name in names:
        if name not in list(NearMethod):
            raise BadInputError(
                f"there is no search for near duplicates {shown(name)}; there are {', '.join(NearMethod)}"
            )
    methods = tuple(dict.fromkeys(map(NearMethod, names)))
    if NearMethod.MINHASH in methods and importlib.util.find_spec("rensa") is None:
        raise BadInputError("--near minhash needs rensa: pip install 'proctor[exposure]'")
    return methods


def near_report(
    method: NearMethod,
    items: Sequence[ScannedItem],
    stages: Mapping[str, Sequence[CorpusFile]],
    *,
    columns: Sequence[str],
    workers: int,
    sample: int | None,
    seed: int,
    prepare: Callable[[str], str],
    progress: Progress,
) -> NearReport:
    """Search each stage's corpus for near duplicates of the items' questions.

    Args:
        method: how.
        items: of which the questions are looked for.
        stages: the corpora.
        columns: which columns of rows hold text; nothing for the usual ones.
        workers: processes, of which an encoder takes one.
        sample: passages of a stage's corpus that are embedded, drawn from all of them; None for all.
        seed: of the draw.
        prepare: what is done to the items' texts.
        progress: told of how many bytes of how many the stage's corpus has been read.

    Raises:
        EncoderError: when there is no encoder here.
    """
    questions = [prepare(item.parts[Part.QUESTION]) for item in items]
    if method is NearMethod.MINHASH:
        return _by_minhash(questions, stages, columns, workers, progress)
    return _by_embedding(questions, stages, columns, sample, seed, progress)


def _by_minhash(
    questions: Sequence[str],
    stages: Mapping[str, Sequence[CorpusFile]],
    columns: Sequence[str],
    workers: int,
    progress: Progress,
) -> NearReport:
    from proctor.exposure.near.minhash import BANDS, PERMUTATIONS, SEED, THRESHOLD, MinhashSearch
    from proctor.exposure.near.report import NearReport
    from proctor.exposure.near.scanning import scan_minhash

    found: dict[str, NearScan] = {
        stage: scan_minhash(questions, THRESHOLD, files, columns, workers, progress) for stage, files in stages.items()
    }
    settings = {
        "library": f"rensa {importlib.metadata.version('rensa')}",
        "permutations": PERMUTATIONS,
        "bands": BANDS,
        "seed": SEED,
    }
    return NearReport(NearMethod.MINHASH, THRESHOLD, settings, len(MinhashSearch(questions).too_short), found)


def _by_embedding(
    questions: Sequence[str],
    stages: Mapping[str, Sequence[CorpusFile]],
    columns: Sequence[str],
    sample: int | None,
    seed: int,
    progress: Progress,
) -> NearReport:
    from proctor.exposure.near.embedding import THRESHOLD, TOP, EmbeddingSearch
    from proctor.exposure.near.report import NearReport
    from proctor.exposure.near.scanning import scan_near
    from proctor.perturbation.encoder import resolve_encoder
    from proctor.runtime.settings import Settings

    settings = Settings.from_environment()
    encoder = resolve_encoder(settings.encoder, settings.encoder_precision)
    found: dict[str, NearScan] = {}
    passages = embedded = too_short = 0
    for stage, files in stages.items():
        search = EmbeddingSearch(questions, encoder.encode, sample=sample, rng=Random(seed))  # noqa: S311, no secret
        found[stage] = scan_near(search, files, columns, progress)
        passages += search.passages
        embedded += search.embedded
        too_short = len(search.too_short)
    said = {
        "encoder": encoder.name,
        "encoder_digest": encoder.digest,
        "top": TOP,
        "seed": seed,
        "passages": passages,
        "passages_embedded": embedded,
    }
    return NearReport(NearMethod.EMBEDDING, THRESHOLD, said, too_short, found)
