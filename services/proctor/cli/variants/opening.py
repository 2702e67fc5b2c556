"""A suite beside the variant library of a home: its items, its recipe, and what the library knows of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from proctor import __version__
from proctor.cli.suite_answer import asked_or_why
from proctor.domain.canonical import bytes_digest
from proctor.domain.card import evaluator_version, protocol_card
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection, Suite
from proctor.formats.gate_calibration import parse_gate_calibration
from proctor.formats.named_file import read_named_file
from proctor.formats.suites import load_suite
from proctor.formats.variant_lines import Entry, Header, VariantsFile
from proctor.formats.variants_file import is_variants_file, parse_variants
from proctor.perturbation.admission.gate import GATE_VERSION
from proctor.perturbation.admission.learned import other_items, with_window
from proctor.perturbation.encoder import ResolvedEncoder, resolve_encoder
from proctor.perturbation.kept_vectors import KeptVectors
from proctor.perturbation.library.exchange import entries_of
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.recipe import Recipe
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.suite_rewordings import matched_rewordings
from proctor.router.submit.gathering import gather
from proctor.runtime.private import tighten_stores
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings


@dataclass(frozen=True)
class SuiteVariants:
    """A suite with all that decides the keys of its items. The encoder is known and not loaded."""

    suite: Suite
    items: tuple[Item, ...]
    section: PerturbationSection
    """With the window that a calibrated gate has learned."""
    chain: Chain
    encoder: ResolvedEncoder
    fingerprint: str
    """Of the suite's protocol card."""
    notes: tuple[str, ...]
    others: OtherItems | None = None
    """The benchmark's questions to which the gate keeps a margin; None where it keeps none."""

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return self.suite.dataset.benchmark_name

    @property
    def encoder_name(self) -> str:
        """Name and weights' digest, as a VariantSet has them."""
        return f"{self.encoder.name}@{self.encoder.digest}"

    def header(self) -> Header:
        """What stands at the head of an export, before its lines are counted."""
        return Header(
            proctor=__version__,
            suite=self.suite.audit_suite_id,
            suite_fingerprint=self.fingerprint,
            benchmark=self.benchmark,
            encoder=self.encoder_name,
            encoder_fingerprint=self.encoder.fingerprint,
            gate=GATE_VERSION,
            settings=self.section,
            others=None if self.others is None else self.others.digest,
            items=0,
            variants=0,
            rejections=None,
            lines_digest=bytes_digest(b""),
        )

    def entries(self, library: VariantLibrary) -> list[Entry]:
        """The items that the library knows."""
        return entries_of(self.items, self.header(), self.chain, self.encoder.fingerprint, library)


def settings_of(home: Path) -> Settings:
    """The settings of a home folder and the environment."""
    return Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)})


@contextmanager
def records_of(settings: Settings) -> Iterator[Records]:
    """The record store, closed with the block."""
    tighten_stores(settings.home, settings.artifacts)
    migrate = settings.records_migrate.commands(settings.records_url)
    with closing(Records(settings.records_url, migrate=migrate)) as records:
        yield records


def open_suite(path: Path, settings: Settings) -> SuiteVariants:
    """Read a suite and the files that it names.

    Raises:
        SuiteProblems: with every problem of the suite.
        BadInputError: when one of its files cannot be used.
        EncoderError: when there is no such encoder here.
    """
    suite = load_suite(path)
    data = gather(suite, path.parent, settings.bundle, settings.benchmarks, hub=settings.hub)
    section, benchmark = suite.perturbation, suite.dataset.benchmark_name
    encoder = resolve_encoder(settings.encoder, settings.encoder_precision)
    calibration = None
    if data.calibration is not None:
        calibration = parse_gate_calibration(data.calibration, str(section.calibration_path))
    section = with_window(section, calibration, benchmark=benchmark, encoder=encoder)
    questions = None if data.questions is None else data.questions.questions
    others = other_items(section, calibration, questions, KeptVectors(settings.vectors, encoder).encode)
    items = data.items.items
    matched = matched_rewordings(section, items, benchmark, data.rewordings)
    chain = Recipe(section, benchmark=benchmark, bundle=settings.bundle).chain(matched.by_item)
    asked, _ = asked_or_why(suite, settings)
    card = protocol_card(suite, data.contents, evaluator_version=evaluator_version(), asked=asked)
    notes = list(data.notes)
    if matched.unmatched:
        first = matched.unmatched[0]
        notes.append(
            f"{len(matched.unmatched):,} rewordings belong to no item that is asked, the first in line {first.line} "
            f"({first.reason})"
        )
    return SuiteVariants(suite, items, section, chain, encoder, card.fingerprint, tuple(notes), others)


def read_export(path: Path) -> VariantsFile:
    """Read an export of variants.

    Raises:
        BadInputError: when it cannot be read, or with its faults.
    """
    return parse_variants(read_named_file(path), str(path))


def open_side(path: Path, settings: Settings) -> VariantsFile:
    """An export, or a suite with what the library has of it; told apart by the first line.

    Raises:
        BadInputError: when it is neither, or the library has nothing of the suite.
    """
    data = read_named_file(path)
    if is_variants_file(data):
        return parse_variants(data, str(path))
    opened = open_suite(path, settings)
    with records_of(settings) as records:
        entries = opened.entries(VariantLibrary(records))
    check_any(entries, path, settings)
    ordered = sorted(entries, key=lambda entry: entry.item.item_id)
    return VariantsFile(str(path), opened.header(), tuple(ordered), "")


def check_any(entries: list[Entry], path: Path, settings: Settings) -> None:
    """Refuse to go on with nothing.

    Raises:
        BadInputError: naming the command that makes variants.
    """
    if not entries:
        raise BadInputError(
            f"the library of {settings.home} has nothing of {path} as it stands now (items, strategy, seed, gate and "
            f"encoder make the key): run `proctor variants build {path}` first"
        )
