"""The suite: one pinned audit configuration, in the article's JSON.

Sections and names are the article's; optional fields carry what a protocol needs beside them. Every default is
part of the suite once loaded, so it is printed and fingerprinted like a value that was written down.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from proctor.domain.answering import AnsweringCheckSection, is_audited
from proctor.domain.backends import Backend as Backend
from proctor.domain.base import Section
from proctor.domain.channels import ALWAYS_REQUIRED, REQUIRED_BY_PROFILE, SEARCHES, ChannelName
from proctor.domain.field_words import Words
from proctor.domain.hub import HUB_ID, HUB_REVISION
from proctor.domain.levels import SIGNIFICANCE_ALPHA
from proctor.domain.plugins import handed_in
from proctor.domain.profiles import STANDARD, ProfileName
from proctor.domain.record.sign_off import MAX_APPROVAL_DAYS
from proctor.domain.replicates import AnswerDecoding
from proctor.domain.routing import ProtocolSection
from proctor.domain.shared_context import SHARED_CONTEXT
from proctor.domain.strategies import NO_VARIANT, STRATEGIES, calls_for
from proctor.domain.suite_budget import BudgetSection
from proctor.domain.suite_control import ControlSection
from proctor.domain.suite_design import DesignSection
from proctor.domain.suite_exposure import ExposureSection
from proctor.domain.suite_fresh import FreshSection
from proctor.domain.suite_types import ContentHash, Endpoint, Fraction, Percent, Seed, ServedName
from proctor.domain.trial import Decoding

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_NAME_WORDS = Words(alphabet="letters, digits, '.', '_' and '-', after a letter or digit")


class ModelSection(Section):
    """The model version under audit."""

    model_id: Annotated[str, Words(alphabet="letters, digits, '.', '_', '/' and '-', after a letter or digit")] = Field(
        min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", examples=["org/model-name"]
    )
    """The model's name in the registry, e.g. org/model-name."""
    model_version: Annotated[ContentHash, Words(example='"sha256:" and the SHA-256 of the weights')] = Field(
        examples=["sha256:" + "0" * 64]
    )
    """Content hash of the weights; a prefix of 12 or more digits is resolved when the audit starts."""
    endpoint: Annotated[Endpoint, Words(example='"grpc://triton:8001", "https://host/v1" or an endpoint id')] = Field(
        examples=["http://127.0.0.1:8000/v1", "grpc://triton:8001", "https://host/v1", "local-triton"]
    )
    """A URL, or the id of an endpoint that the operator has named."""
    backend: Backend | None = None
    """How the endpoint is spoken to; by default told from its URL: grpc is Triton, http the article's `infer` where the
    path ends in /infer, else OpenAI-compatible."""
    served_name: ServedName = None
    """The name under which the endpoint serves the model, e.g. /models/x, as vLLM names what it is given by path; by
    default the last part of `model_id`."""

    @property
    def name_on_endpoint(self) -> str:
        """The name to ask the endpoint for."""
        return self.served_name or self.model_id.rsplit("/", 1)[-1]


class DatasetSection(Section):
    """The benchmark, and which of its items are asked."""

    benchmark_name: Annotated[str, _NAME_WORDS] = Field(
        min_length=1, max_length=128, pattern=_NAME, examples=["my-benchmark", "gsm8k"]
    )
    """The benchmark's name, e.g. gsm8k; proctor-facts is the one that Proctor ships."""
    dataset_variant: str = Field(default="main", max_length=128)
    """The benchmark's subset or configuration."""
    dataset_version: str = Field(default="1", max_length=64)
    """The version of the benchmark, as its authors number it."""
    sample_size: int = Field(default=500, ge=1, le=1_000_000)
    """How many items are asked; under 300 expect review."""
    sampling_seed: Seed = 42
    """The seed of the draw of the sample."""
    selection: Literal["seeded", "first"] = "seeded"
    """`seeded` draws the sample at random from the seed; `first` takes the first items in file order."""
    path: str | None = Field(default=None, min_length=1, max_length=4096)
    """A local JSONL, CSV or Parquet file, relative to the suite's file; absent for benchmarks that Proctor ships."""
    hub_id: Annotated[str | None, Words(alphabet="owner/name as on the hub, e.g. openai/gsm8k")] = Field(
        default=None, pattern=HUB_ID
    )
    """A dataset of the Hugging Face Hub as owner/name, instead of `path`; the operator says which may be read."""
    hub_revision: Annotated[str | None, Words(alphabet="a commit of 40 lower-case hex digits; a branch can move")] = (
        Field(default=None, pattern=HUB_REVISION)
    )
    """The commit of the dataset; required with `hub_id`, because a branch can move."""
    split: str = Field(default="test", max_length=64)
    """The split that the items come from."""
    id_field: str | None = None
    """The column of the id; by default item_id or id if there is one, else the position."""
    question_field: str = "question"
    """The column of the question."""
    choices_field: str = "choices"
    """The column of the options of a multiple-choice item."""
    target_field: str = "answer"
    """The column of the right answer."""
    cluster_field: Annotated[
        str | None, Words(alphabet=f"a column's name, or the reserved {SHARED_CONTEXT}", example=f'"{SHARED_CONTEXT}"')
    ] = Field(
        default=None,
        min_length=1,
        max_length=256,
        pattern=rf"^([^@]|{SHARED_CONTEXT}$)",
        examples=["passage_id", SHARED_CONTEXT],
        exclude_if=lambda field: field is None,
    )
    """The column of what items share, e.g. a passage or a template: with clusters all figures are over clusters, of
    which it takes 20. A row without a value is a cluster of its own. "@context" finds what items share by itself."""
    private: bool = False
    """Whether the items may be sent only to endpoints that the operator approved for private datasets, and to models on
    the workers' own machine."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.path is not None and self.hub_id is not None:
            raise PydanticCustomError(
                "two_sources", "has both path and hub_id", {"mend": "keep the one the items are to be read from"}
            )
        if self.hub_id is not None and self.hub_revision is None:
            raise PydanticCustomError(
                "unpinned_dataset",
                "has hub_id without hub_revision",
                {"mend": "add hub_revision, the dataset's 40-digit commit; a branch name can move"},
            )
        return self


class ParaphraserSection(Section):
    """How the model that rewords is asked, for the strategies that need one."""

    endpoint: Endpoint | None = None
    """A URL or an operator's endpoint id; by default the id that equals paraphrase_model, else the audited model's."""
    backend: Backend | None = None
    """How the endpoint is spoken to; by default told from its URL."""
    served_name: ServedName = None
    """The name under which the endpoint serves it; by default the last part of paraphrase_model."""
    version: ContentHash | None = None
    """Content hash of its weights, checked where the endpoint reports it."""
    chat_template: Literal["none", "user"] = "user"
    """`user` sends the instruction as one user message through the chat endpoint, `none` as a completion."""
    templates: str = Field(default="1", pattern=r"^[0-9]+$", max_length=8)
    """Version of the instructions that Proctor gives it."""
    decoding: Annotated[Decoding, Words(inside=(("stop", "Texts at which a rewording ends."),))] = Decoding(
        temperature=0.7, max_tokens=1024
    )
    """How its rewordings are drawn."""


class PerturbationSection(Section):
    """How items are reworded, and which rewordings are admitted."""

    num_variants_per_item: int = Field(default=3, ge=1, le=100)
    """Admitted rewordings of each item."""
    min_semantic_distance: float = Field(default=0.15, ge=0.0, le=2.0)
    """Smallest cosine distance of a rewording from its item, 0 to 2; the article advises 0.15, and 0.20 for
    reasoning."""
    max_semantic_distance: float = Field(default=0.45, ge=0.0, le=2.0)
    """Largest cosine distance of a rewording from its item, 0 to 2; the article advises 0.45, 0.30 for factual
    benchmarks, 0.50 for reasoning."""
    min_margin: float | None = Field(default=None, ge=0.0, le=2.0, exclude_if=lambda margin: margin is None)
    """By how much a rewording must be nearer to its own item than to any other item of the whole benchmark, as
    difference of two cosine distances, 0 to 2; without it nothing is asked. A calibrated gate takes the margin that was
    learned instead."""
    gate: Literal["fixed", "calibrated"] = "fixed"
    """`fixed` takes the two distances above; `calibrated` takes those that calibration_path learned instead."""
    calibration_path: str | None = Field(default=None, min_length=1, max_length=4096)
    """A file that `proctor variants calibrate` wrote for this encoder and benchmark, relative to the suite's file."""
    perturbation_strategy: Annotated[
        str, Words(alphabet="strategy names in lower case, joined with '+', e.g. wordings+option_shuffle")
    ] = Field(default="paraphrase_llm", pattern=r"^[a-z][a-z_]*(\+[a-z][a-z_]*)*$")
    """One strategy, or several joined with '+' that are applied in that order."""
    paraphrase_model: str | None = Field(
        default=None, min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$"
    )
    """The model that rewords, for strategies that ask one: its name, e.g. org/paraphrase-model."""
    paraphraser: ParaphraserSection = Field(default_factory=ParaphraserSection)
    rewordings_path: str | None = Field(default=None, min_length=1, max_length=4096)
    """JSONL of ready rewordings for the strategy `imported`, relative to the suite's file."""
    seed: Seed = 0
    """The seed of the rewordings."""
    max_token_overlap: float = Field(default=0.9, ge=0.0, le=1.0)
    """A variant that shares more of the item's word bigrams than this is too easily recalled."""
    max_containment: float = Field(default=1.0, ge=0.0, le=1.0)
    """Largest share of the question's word 5-grams that a variant may hold word for word; 1 sets no limit."""
    min_edit_distance: float = Field(default=0.0, ge=0.0, le=1.0)
    """Smallest share of the question's words that a variant must change, by edit distance; 0 sets no limit."""
    strict_relations: bool = False
    """Whether a rewording must say every "5 more" and "3 fewer" as often as its item; a tenth of the good ones fail."""
    min_yield: float = Field(default=0.5, ge=0.0, le=1.0)
    """The share of items that must get a variant; below it the audit stops and says why."""
    # Not written where it is absent, so that suites keep the fingerprints of the time before it.
    answering_check: AnsweringCheckSection | None = Field(default=None, exclude_if=lambda check: check is None)
    """Models that answer both wordings of an item, by which rewordings are held for reading."""

    @field_validator("perturbation_strategy")
    @classmethod
    def _strategies_exist(cls, chain: str, info: ValidationInfo) -> str:
        for part in chain.split("+") if handed_in(info.context) else ():
            if part in NO_VARIANT:
                raise PydanticCustomError(
                    "no_variant",
                    "has '{part}', which makes no variants: it {makes}",
                    {"part": part, "makes": NO_VARIANT[part], "mend": f"there are: {', '.join(STRATEGIES.names)}"},
                )
            if part not in STRATEGIES:
                which = {} if part == chain else {"part": part}
                raise PydanticCustomError("unknown_part", "is no strategy", {**which, "choices": STRATEGIES.names})
        return chain

    @property
    def asks_a_model(self) -> bool:
        """Whether a strategy of the chain asks a model."""
        return any(calls_for(name) for name in self.perturbation_strategy.split("+"))

    @model_validator(mode="after")
    def _window_is_not_inverted(self) -> Self:
        if self.min_semantic_distance >= self.max_semantic_distance:
            raise PydanticCustomError(
                "inverted_window",
                "min_semantic_distance {low} is not below max_semantic_distance {high}",
                {
                    "low": self.min_semantic_distance,
                    "high": self.max_semantic_distance,
                    "mend": "swap them; the article's window is 0.15 to 0.45",
                },
            )
        if self.gate == "calibrated" and self.calibration_path is None:
            raise PydanticCustomError(
                "no_calibration",
                "has gate 'calibrated' without calibration_path",
                {"mend": "name the file that `proctor variants calibrate` wrote in calibration_path"},
            )
        if "imported" in self.perturbation_strategy.split("+") and self.rewordings_path is None:
            raise PydanticCustomError(
                "no_rewordings",
                "has strategy 'imported' without rewordings_path",
                {"mend": "name the JSONL file of rewordings in rewordings_path"},
            )
        return self


class ScoringSection(Section):
    """Thresholds of the perturbation channel. Contamination Score and alpha are fractions, shares are percent."""

    contamination_threshold: Fraction = 0.10
    """Contamination Score that may not be passed, as a fraction."""
    significance_alpha: float = Field(default=SIGNIFICANCE_ALPHA, gt=0.0, le=0.5)
    """Largest p-value that counts as significant, as a fraction."""
    max_allowed_contaminated_items_pct: Percent = 5.0
    """Score inflation that is still approved, in percent of items."""
    method: Literal["stratified", "per_item_t_test"] = "stratified"
    """`per_item_t_test` is the article's rule, for comparison only: it flags clean items."""
    confidence_level: float = Field(default=0.95, ge=0.5, lt=1.0)
    """Level of every confidence interval, as a fraction."""
    guess_chance: float | None = Field(default=None, ge=0.0, lt=1.0)
    """Chance that a guess is right; by default 1/options for multiple choice, unknown otherwise."""
    # Not written where it is the default, so that suites keep the fingerprints of the time before it.
    max_cut_short_pct: Percent = Field(default=2.0, exclude_if=lambda pct: pct == 2.0)
    """Answers of an arm that may be cut at the token limit before an answer stands in them, in percent; beyond it the
    report says so and what to raise, and beyond 20 the comparison is invalid."""
    design: DesignSection = Field(default_factory=DesignSection, exclude_if=lambda design: design == DesignSection())
    """Whether the whole sample is asked, or the audit stops where the evidence decides."""
    required_channels: tuple[ChannelName, ...] = ALWAYS_REQUIRED
    """Channels of evidence without which nothing is approved, beside those that governance.profile requires."""


class GovernanceSection(Section):
    """Who owns the audit and what its outcome does."""

    # Not written where it is the default, so that suites and reports of the time before it keep their bytes.
    profile: ProfileName = Field(default=STANDARD, exclude_if=lambda profile: profile == STANDARD)
    """`strict` requires the channel fresh, because an approval by wordings alone does not rule out memory of short
    facts; without fresh_config such a suite always ends in a review. The others are defaults for fields that the suite
    leaves out: `factual` lets rewordings be no farther than 0.30 from their items, `reasoning` asks for 0.20 to 0.50,
    `high_stakes` for four rewordings of each item."""
    audit_owner: str = Field(default="unassigned", min_length=1, max_length=200)
    """Who answers for the audit; told of reviews and blocks where the operator knows the name, or lets suites name the
    address."""
    review_required_above_cs: Fraction = 0.25
    """Contamination Score past which a person must look, as a fraction."""
    block_deployment_above_contaminated_pct: Percent = 5.0
    """Score inflation that is blocked, in percent of items."""
    required_weights: Literal["any", "declared", "proven"] = Field(
        default="any", exclude_if=lambda required: required == "any"
    )
    """What has to be known of the weights for an approval: `proven` takes a digest that a backend of Proctor computed
    from the files, `declared` also one that whoever runs the endpoint wrote down, `any` none at all. Less is a
    review."""
    approval_expires_after_days: int | None = Field(
        default=None, ge=1, le=MAX_APPROVAL_DAYS, exclude_if=lambda days: days is None
    )
    """After how many days an approval ends and becomes a review."""
    approval_ends_when_superseded: bool = Field(default=False, exclude_if=lambda ends: not ends)
    """Whether an approval ends when this suite, changed, has decided on the same model."""
    result_retention_days: int = Field(default=365, ge=1, le=36_500)
    """How long prompts and completions are kept, in days from the decision; the report and the record stay."""
    notify_on_failure: tuple[str, ...] = Field(default=(), max_length=100)
    """Who is told of a review or a block, as mail addresses or names, as far as the operator lets suites name them."""


class FewShotExample(Section):
    """A solved example that is shown before the question."""

    question: Annotated[str, Words(example='the question, e.g. "1 + 1 = ?"')]
    """The example's question."""
    choices: tuple[str, ...] = ()
    """The example's options."""
    answer: Annotated[str, Words(example='the answer, e.g. "2"')]
    """The example's answer."""


class PromptSection(Section):
    """How an item becomes a prompt."""

    template: str | None = Field(default=None, max_length=20_000)
    """Text with {question} and, for multiple choice, {options}; by default one for each kind of item."""
    chat_template: Literal["none", "user"] = "none"
    """`none` sends the prompt as a completion, `user` as one user message through the chat endpoint; on Triton by the
    template that the operator gave the endpoint, and refused without one. A contract that carries neither (`…/infer`)
    leaves it unknown on the card, as all of decoding_config."""
    few_shot: tuple[FewShotExample, ...] = Field(default=(), max_length=64)
    """Solved examples that are shown before the question."""

    @model_validator(mode="after")
    def _template_asks_the_question(self) -> Self:
        if self.template is not None and "{question}" not in self.template:
            raise PydanticCustomError(
                "template_without_question",
                "does not contain {question}",
                {"mend": "put {question} where the item's question goes"},
            )
        return self


class MetricSection(Section):
    """How an answer is read and graded."""

    name: Literal["accuracy"] = "accuracy"
    """How graded answers become a score."""
    extractor: Literal[
        "auto",
        "choice_letter",
        "numeric",
        "exact",
        "answer_phrase",
        "boxed",
        "hash_marker",
        "last_number",
        "article",
        "constraints",
        "execution",
    ] = "auto"
    """`auto` is choice_letter for multiple choice, execution where targets are tests, constraints where they are
    constraints, numeric where every one is a number, else exact. The others are described in docs/datasets.md;
    execution runs what the model wrote, where the operator lets it."""


class Suite(Section):
    """A pinned audit configuration. Loads the article's JSON unchanged."""

    schema_uri: str | None = Field(default=None, alias="$schema")
    """The URI of the schema that the suite was written against; kept, not fetched."""
    audit_suite_id: Annotated[str, _NAME_WORDS] = Field(
        min_length=1, max_length=128, pattern=_NAME, examples=["my-benchmark-audit-v1"]
    )
    """The suite's name, under which its audits are listed."""
    model: Annotated[ModelSection, Words(example="{…} with model_id, model_version and endpoint")] = Field(
        alias="model_config"
    )
    dataset: Annotated[DatasetSection, Words(example="{…} with benchmark_name")] = Field(alias="dataset_config")
    perturbation: PerturbationSection = Field(default_factory=PerturbationSection, alias="perturbation_config")
    scoring: ScoringSection = Field(default_factory=ScoringSection, alias="scoring_config")
    governance: GovernanceSection = Field(default_factory=GovernanceSection)
    prompt: PromptSection = Field(default_factory=PromptSection, alias="prompt_config")
    protocol: ProtocolSection = Field(default_factory=ProtocolSection, alias="protocol_config")
    decoding: AnswerDecoding = Field(default_factory=AnswerDecoding, alias="decoding_config")
    metric: MetricSection = Field(default_factory=MetricSection, alias="metric_config")
    budget: BudgetSection = Field(default_factory=BudgetSection, alias="budget_config")
    # Not written where it is absent, so that suites keep the fingerprints of the time before it.
    fresh: Annotated[FreshSection | None, Words(example="{…} with path")] = Field(
        default=None, alias="fresh_config", exclude_if=lambda fresh: fresh is None
    )
    exposure: Annotated[ExposureSection | None, Words(example="{…} with corpora")] = Field(
        default=None, alias="exposure_config", exclude_if=lambda exposure: exposure is None
    )
    control: Annotated[ControlSection | None, Words(example="{…} with path")] = Field(
        default=None, alias="control_config", exclude_if=lambda control: control is None
    )

    @property
    def required_channels(self) -> tuple[str, ...]:
        """The channels without which nothing is approved, each once: the one place that says which they are.

        Those that the gate's table is made of, those that the suite names, and those of its profile.
        """
        named = self.scoring.required_channels
        return tuple(dict.fromkeys((*ALWAYS_REQUIRED, *named, *REQUIRED_BY_PROFILE.get(self.governance.profile, ()))))

    @property
    def search_required(self) -> bool:
        """Whether nothing is approved without a search of training data."""
        return SEARCHES in self.required_channels

    @model_validator(mode="after")
    def _approval_and_block_do_not_overlap(self) -> Self:
        allowed = self.scoring.max_allowed_contaminated_items_pct
        blocked = self.governance.block_deployment_above_contaminated_pct
        if blocked < allowed:
            raise PydanticCustomError(
                "overlapping_limits",
                "governance.block_deployment_above_contaminated_pct {blocked} is below "
                "scoring_config.max_allowed_contaminated_items_pct {allowed}",
                {
                    "blocked": blocked,
                    "allowed": allowed,
                    "mend": "a share that is allowed cannot block: raise the first or lower the second",
                },
            )
        return self

    @model_validator(mode="after")
    def _replicates_are_weighed(self) -> Self:
        other = next((what for what, holds in self._asked_once if holds), None)
        if self.decoding.replicates > 1 and other is not None:
            raise PydanticCustomError(
                "unweighed_replicates",
                "has decoding_config.replicates beside {other}, which takes each prompt as asked once",
                {"other": other, "mend": "leave one of them out"},
            )
        return self

    @property
    def _asked_once(self) -> tuple[tuple[str, bool], ...]:
        return (
            ("scoring_config.method per_item_t_test", self.scoring.method == "per_item_t_test"),
            ("protocol_config.protocol router_worker", self.protocol.asks_routers),
        )

    @model_validator(mode="after")
    def _looks_are_at_random_samples(self) -> Self:
        other = self.asked_whole
        if self.scoring.design.sequential and other is not None:
            raise PydanticCustomError(
                "not_sequential",
                "has scoring_config.design sequential beside {other}",
                {"other": other, "mend": "leave one of them out"},
            )
        return self

    @property
    def asked_whole(self) -> str | None:
        """What the suite has that looks on the way are not made for; None where they may be taken.

        The first items of a file are no random sample, the article's rule has no level to spend, and the others ask
        about all items before the first is answered.
        """
        found = (
            ("dataset_config.selection first", self.dataset.selection == "first"),
            ("scoring_config.method per_item_t_test", self.scoring.method == "per_item_t_test"),
            ("protocol_config.protocol router_worker", self.protocol.asks_routers),
            ("protocol_config.stages", bool(self.protocol.stages)),
            ("perturbation_config.answering_check", self.perturbation.answering_check is not None),
        )
        return next((what for what, holds in found if holds), None)

    @model_validator(mode="after")
    def _no_solver_is_audited(self) -> Self:
        check, model = self.perturbation.answering_check, self.model
        audited = (model.model_id, model.model_version, model.endpoint, model.name_on_endpoint)
        for solver in () if check is None else check.solvers:
            if is_audited(solver, *audited):
                raise PydanticCustomError(
                    "audited_solver",
                    "perturbation_config.answering_check names the solver {solver}, which is the model under audit",
                    {"solver": solver.model, "mend": "name another model: what it remembers would judge its own test"},
                )
        return self
