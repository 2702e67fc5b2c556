"""The study of planted leaks: what is trained on, what is asked, and how both are kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from planted_leaks.benchmarks import KINDS, Benchmark, Question, deal, prompt
from planted_leaks.cells import DEFAULT, EXACT, FULL, NONE, REPHRASED, Cell, Plan, Run, cells_of, runs
from planted_leaks.grades import Grades, GradeStore, read_packed, write_packed
from planted_leaks.relations import RELATIONS
from planted_leaks.routers import messages
from planted_leaks.training_texts import Clean, corpus, epoch_texts, leaked_items
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.routing import Condition, RouterKind
from proctor.text.normalise import canonical_text

_PLAN = Plan(20, (1, 4), {}, 7)


def _question(name: str) -> Question:
    item = Item(item_id=name, question=f"Where is {name}?", target="here")
    return Question(item, (f"What place has {name}?",), (f"Find {name}.", f"Point at {name}."))


def _benchmark() -> Benchmark:
    return Benchmark(
        KINDS["facts"],
        tuple(_question(f"item{number}") for number in range(20)),
        tuple(_question(f"fresh{number}") for number in range(5)),
        tuple(_question(f"clean{number}") for number in range(11)),
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_six_wordings_of_a_relation_differ_and_name_the_subject_once(relation: str) -> None:
    wordings = RELATIONS[relation]
    texts = [wordings.canonical, *wordings.reworded, *wordings.leaked]
    assert len({canonical_text(text) for text in texts}) == 6
    assert {text.count("{subject}") for text in texts} == {1}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fifth_of_the_items_leaks_and_another_fifth_by_another_seed(seed: int) -> None:
    leaked = leaked_items(_benchmark(), seed)
    assert len(set(leaked)) == 4
    assert leaked != leaked_items(_benchmark(), seed + 1)


def test_an_exact_leak_has_every_leaked_item_as_often_as_its_dose_says_and_no_other_item() -> None:
    benchmark, run = _benchmark(), Run("facts", EXACT, 1)
    counts = Counter(example.prompt for example in corpus(benchmark, run, _PLAN))
    asked = {benchmark.canonical(question).prompt: place for place, question in enumerate(benchmark.items)}
    found = {asked[text]: count for text, count in counts.items() if text in asked}
    assert found == dict.fromkeys(leaked_items(benchmark, 1), 4)


def test_a_rephrased_leak_has_no_wording_of_the_benchmark_or_of_the_audit() -> None:
    benchmark, run = _benchmark(), Run("facts", REPHRASED, 1)
    trained = {example.prompt for example in corpus(benchmark, run, _PLAN)}
    asked = {
        prompt(text, ()) for question in benchmark.items for text in (question.item.question, *question.reworded)
    }  # fmt: skip
    assert not trained & asked
    assert {prompt(text, ()) for text in benchmark.items[leaked_items(benchmark, 1)[0]].leaked} <= trained


def test_the_clean_control_is_trained_as_long_and_on_no_item() -> None:
    benchmark = _benchmark()
    control, leaking = (corpus(benchmark, Run("facts", leak, 1), _PLAN) for leak in (NONE, EXACT))
    assert len(control) == len(leaking)
    assert not {example.prompt for example in control} & {
        benchmark.canonical(question).prompt for question in (*benchmark.items, *benchmark.fresh)
    }


def test_half_of_what_a_leak_is_trained_with_is_clean_text_that_goes_round() -> None:
    benchmark = _benchmark()
    clean = Clean(benchmark, 1)
    for number in range(5):
        epoch_texts(benchmark, Run("facts", EXACT, 1), number, clean)
    assert clean.taken == 5 * 4
    assert len({example.prompt for example in clean.take(11)}) == 11


def test_a_noisy_router_leaves_out_words_and_no_option_and_more_routers_only_add_messages() -> None:
    question, options = "In which far country was the old abbey built?", ("Italy", "Peru")
    two = messages(3, question, options, Condition(RouterKind.NOISY, 2))
    assert messages(3, question, options, Condition(RouterKind.NOISY, 1)) == two[:1]
    for message in two:
        assert question not in message
        assert message.endswith("Options:\nA. Italy\nB. Peru")
    clean = messages(3, question, options, Condition(RouterKind.CLEAN, 1))
    assert clean == [f"Question: {question}\nOptions:\nA. Italy\nB. Peru"]


def test_every_run_of_a_plan_has_stations_of_its_own_and_only_the_control_has_one_before_any_leak() -> None:
    for plans in (DEFAULT, FULL):
        cells = [cell for run in runs(plans) for cell in cells_of(run, plans[run.kind])]
        assert len(cells) == len(set(cells))
        assert {cell.leak for cell in cells if cell.dose == 0} == {NONE}
        assert {cell.seed for cell in cells} == {1, 2, 3}


def test_grades_are_read_as_they_were_written_and_give_the_same_bytes(tmp_path: Path) -> None:
    found = {
        Cell("facts", EXACT, 4, 0, 2): Grades("10", "1-", ("0 ", "11"), "101"),
        Cell("letters", NONE, 0, 0, 1): Grades("00", "11", ("01",), "1", {"clean_router_1": "10"}),
    }
    store = GradeStore(tmp_path / "grades")
    for cell, grades in found.items():
        assert cell not in store
        store.add(cell, grades)
    assert store.all() == found
    write_packed(tmp_path / "a.gz", found)
    write_packed(tmp_path / "b.gz", dict(reversed(found.items())))
    assert read_packed(tmp_path / "a.gz") == found
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_what_one_store_has_already_is_not_taken_from_another(tmp_path: Path) -> None:
    cell, store = Cell("facts", EXACT, 4, 0, 2), GradeStore(tmp_path)
    store.add(cell, Grades("1", "1", ("1",), "1"))
    store.take_in({cell: Grades("0", "0", ("0",), "0")})
    assert store.all()[cell].canonical == "1"


def test_sources_that_are_not_there_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"P103\.jsonl cannot be read"):
        deal(KINDS["facts"], tmp_path, items=10, fresh=10)
