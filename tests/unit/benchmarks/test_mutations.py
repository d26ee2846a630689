"""Where mutations are found, how they are chosen, and what is made of their results."""

import ast
from collections import Counter

import pytest

from benchmarks.mutations.book import Book, room_rows
from benchmarks.mutations.replay import Mutation, find_again, newly_surviving, replayed
from benchmarks.mutations.room_tests import find_tests, is_about
from benchmarks.mutations.selection import select, shares
from benchmarks.mutations.sites import Site, find_sites
from benchmarks.mutations.trial import Trial, read_trial

SOURCE = '''
LIMIT = 3


class Counter:
    def __init__(self):
        self.count = 0

    def add(self, more: int) -> int:
        """Add."""
        # a comment with a wide letter: \u00e4
        self.count += more
        if more > 1 and self.count:
            notify(self.count - 1)
        assert more > 0, "too few"
        return self.count
'''


def site(name="f", file="src/tianji/actor/role.py", operator="negate", ordinal=0):
    return Site(file, name, operator, ordinal, 1, 0, 1, "x", "(not (x))")


def entry(caught, **values):
    return Book(None, {}).add(site(**values), Trial("failed" if caught else "passed", 1.0))


def test_every_operator_finds_its_sites_and_nothing_else():
    found = [(found.operator, found.before, found.after) for found in find_sites("a.py", SOURCE)]
    assert found == [
        ("constant", "0", "1"),
        ("plus_minus", "self.count += more", "self.count -= more"),
        ("drop", "self.count += more", "pass"),
        ("negate", "more > 1 and self.count", "(not (more > 1 and self.count))"),
        ("and_or", "more > 1 and self.count", "(more > 1 or self.count)"),
        ("compare", "more > 1", "(more >= 1)"),
        ("constant", "1", "2"),
        ("drop", "notify(self.count - 1)", "pass"),
        ("plus_minus", "self.count - 1", "(self.count + 1)"),
        ("constant", "1", "2"),
        ("early_return", "return self.count", "return None"),
    ]


def test_a_mutation_changes_its_place_alone():
    for found in find_sites("a.py", SOURCE):
        mutated = found.apply(SOURCE)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(SOURCE))
        same = [a == b for a, b in zip(mutated.split("\n"), SOURCE.split("\n"), strict=True)]
        assert same.count(False) == 1


def test_other_functions_do_not_change_the_identity_of_a_mutation():
    more = SOURCE + "\n\ndef other(x):\n    return x + 1 if x else 2\n"
    ids = [found.id for found in find_sites("a.py", SOURCE)]
    assert len(set(ids)) == len(ids)
    assert [found.id for found in find_sites("a.py", more)][: len(ids)] == ids
    assert "a.py::Counter.add::constant#1" in ids


def test_an_inner_function_has_sites_of_its_own():
    source = "def outer():\n    def inner():\n        return 1\n    return inner() + 2\n"
    names = Counter(found.function for found in find_sites("a.py", source))
    assert names == {"outer.inner": 1, "outer": 3}


def test_every_room_gets_a_mutation_and_large_rooms_get_more():
    assert shares({"a": 1000, "b": 10, "c": 1, "empty": 0}, 10) == {"a": 8, "b": 1, "c": 1}
    assert shares({"a": 2, "b": 1}, 10) == {"a": 2, "b": 1}


def test_the_choice_follows_from_the_seed_and_uses_several_operators():
    sites = [
        site(f"f{number}", operator=operator)
        for number in range(20)
        for operator in ("constant", "drop", "negate")
    ]
    chosen = select(sites, 6, seed=1)
    assert chosen == select(reversed(sites), 6, seed=1)
    assert chosen != select(sites, 6, seed=2)
    assert Counter(found.operator for found in chosen) == {"constant": 2, "drop": 2, "negate": 2}


def test_the_tests_of_a_room_are_its_folder_and_what_imports_it(tmp_path):
    for path, text in {
        "tests/unit/ops/test_x.py": "",
        "tests/unit/test_run.py": "",
        "tests/numerics/test_gae.py": "from tianji.ops.returns import gae\n",
        "tests/numerics/test_heads.py": "from tianji.opsy import heads\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert find_tests("ops", tmp_path) == ["tests/unit/ops", "tests/numerics/test_gae.py"]
    assert find_tests("(top)", tmp_path) == ["tests/unit/test_run.py"]
    assert find_tests("presets", tmp_path) == []
    assert is_about("test_algorithm", "", "algorithms")


@pytest.mark.parametrize(
    ("code", "output", "trial"),
    [
        (0, "1 passed", Trial("passed", 2.0)),
        (5, "no tests ran", Trial("no tests", 2.0)),
        (1, "...\nFAILED a.py::test_b - x\n", Trial("failed", 2.0, "a.py::test_b")),
        (4, "ImportError in conftest", Trial("failed", 2.0, "ImportError in conftest")),
    ],
)
def test_any_failure_catches_a_mutation(code, output, trial):
    assert read_trial(code, output, 2.0) == trial


def test_results_are_found_again_and_belong_to_one_choice(tmp_path):
    path, facts = tmp_path / "results" / "abc.json", {"commit": "abc", "count": 60}
    Book(path, facts).add(site(), Trial("timeout", 60.0))
    Book(path, facts).add_baseline("actor", Trial("passed", 4.0))
    again = Book(path, facts)
    assert again.find(site())["caught"] and again.find(site("g")) is None
    assert again.baseline("actor") == Trial("passed", 4.0) and again.baseline("buffer") is None
    with pytest.raises(ValueError, match="count 60, not 30"):
        Book(path, {**facts, "count": 30})


def test_a_function_that_moved_is_the_same_mutation():
    before = [entry(True, name="f"), entry(False, name="g"), entry(True, name="gone")]
    moved = "src/tianji/learner/group.py"
    now = [entry(False, name="f", file=moved), entry(False, name="g", file=moved)]
    assert newly_surviving(now, before) == [now[0]]
    assert newly_surviving([entry(False, name="f")], before) == [entry(False, name="f")]
    sites = [site("f", moved), site("g"), site("g", moved), site("new")]
    assert replayed(sites, before) == [site("f", moved), site("g")]


def mutation(place, text="x"):
    function, _, rest = place.rpartition("::")
    operator, _, ordinal = rest.partition("#")
    return Mutation(place, function.split("::")[1], operator, int(ordinal), text)


def test_the_code_of_a_place_finds_it_where_names_and_ordinals_changed():
    old = mutation("a.py::A.f::negate#0", "self._version < 0")
    other = mutation("a.py::A.f::negate#0", "is_new")
    for now in ("a.py::A.f::negate#1", "b.py::A.f::negate#2", "b.py::B.f::negate#0"):
        here = mutation(now, old.text)
        assert find_again(old, [other, here]) == here
    assert find_again(old, [mutation("a.py::A.g::negate#0", old.text)]) is None
    long = old._replace(text="self._version < 0 and self._is_open")
    assert find_again(long, [mutation("b.py::C.h::negate#0", long.text)]) is not None
    assert find_again(old, [other]) == other


def test_a_place_that_was_rewritten_is_found_by_the_list():
    old, here = mutation("a.py::A.f::negate#0"), mutation("b.py::B.g::negate#3", "y")
    assert find_again(old, [here]) is None
    assert find_again(old, [here], {old.id: "B.g::negate#3"}) == here


def test_rooms_of_two_results_stand_side_by_side():
    before = [entry(True), entry(False, file="src/tianji/old/a.py")]
    assert room_rows([entry(True), entry(False)], before) == [
        ["actor", "2", "1", "1", "1"],
        ["old", "0", "0", "1", "0"],
        ["total", "2", "1", "2", "1"],
    ]
