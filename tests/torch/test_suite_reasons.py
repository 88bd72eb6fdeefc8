"""The reasons why tests of PyTorch's own files fail: each is one, and explains some."""

import importlib.util
import itertools
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]
PATH = HERE / "tests" / "conformance" / "torch_suite_reasons.py"
PAGE = HERE / "docs" / "torch.md"


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("torch_suite_reasons", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_of(table):
    return [
        (kind, word)
        for kind, reason in table.REASONS.items()
        for word in reason.tests.split()
    ]


def failure(test, text="", error="AssertionError"):
    return {"id": test, "status": "fail", "error": error, "text": text}


def test_each_kind_says_why_and_what_it_explains(table):
    for kind, reason in table.REASONS.items():
        assert kind == kind.strip()
        assert len(reason.why.split()) > 3, kind
        assert reason.tests.split() or reason.error, kind
        re.compile(reason.error)


def test_no_test_has_two_reasons(table):
    words = words_of(table)
    assert len({word for _, word in words}) == len(words)
    for (kind, word), (other, longer) in itertools.permutations(words, 2):
        assert kind == other or not f"{longer}_".startswith(f"{word}_"), (word, longer)


def test_names_are_those_of_whole_tests(table):
    for _, word in words_of(table):
        assert re.fullmatch(r"(Test\w+\.)?\w+", word), word
        assert not word.rpartition(".")[2].startswith("test_"), word


def test_a_failure_is_explained_by_its_name(table):
    for kind, word in words_of(table):
        place, _, name = word.rpartition(".")
        place = place or "TestAny"
        assert table.kinds(failure(f"{place}.test_{name}")) == kind
        assert table.kinds(failure(f"{place}.test_{name}_cpu_float32")) == kind
        assert not table.named(failure(f"{place}.test_{name}s"), word)


@pytest.mark.parametrize("text", ["VALUES 1 != 2", "EQUAL 1", "Tensor-likes not close"])
def test_a_wrong_value_needs_a_reason_of_its_own(table, text):
    for kind, word in words_of(table):
        place, _, name = word.rpartition(".")
        row = failure(f"{place or 'TestAny'}.test_{name}", text)
        expected = kind if table.REASONS[kind].values else table.UNEXPLAINED
        assert table.kinds(row) == expected
    assert table.kinds(failure("TestAny.test_new", text)) == table.UNEXPLAINED


def test_what_has_no_reason_is_unexplained(table):
    assert table.kinds(failure("TestAny.test_new", "x", "TypeError")) == "unexplained"
    slow = {"id": "TestAny.test_new", "status": "slow"}
    assert table.kinds(slow) == "slow"
    crash = {"id": "TestAny.test_new", "status": "crash", "error": "crash", "text": ""}
    assert table.kinds(crash) == "unexplained"


def test_the_page_has_no_other_reasons(table):
    text = PAGE.read_text()
    text = text[text.index("<!-- suite: begin -->") : text.index("<!-- suite: end -->")]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "|" in line]
    start = next(i for i, row in enumerate(rows) if row[0] == "what fails")
    found = {row[0]: row[2] for row in rows[start + 2 :]}
    assert found == {kind: table.REASONS[kind].why for kind in found}
