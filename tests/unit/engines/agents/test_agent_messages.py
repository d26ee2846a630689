"""Orders, answers and gauges that cross between hosts."""

from dataclasses import replace

import pytest

from tests.fakes.specs import make_spec
from tianji.channels.gauges import Gauge, Gauges
from tianji.engines.agents.messages import (
    Answer,
    Door,
    GroupOrder,
    Question,
    Shipped,
    Span,
    check_source,
    copy_gauges,
    to_bytes,
)
from tianji.engines.agents.peers import Post
from tianji.engines.agents.spanning import Expected
from tianji.errors import UsageError
from tianji.records import LinkFigures

KINDS = {"actor-0": "actor", "buffer": "buffer", "learner": "learner"}


@pytest.mark.parametrize("shipped", [None, Shipped("v00000003", b"\x00\xff{}")])
@pytest.mark.parametrize("gauges", [b"", b"\x01" * 16])
def test_an_answer_arrives_as_it_was(gauges, shipped):
    report = {"kind": "note", "role": "learner", "text": "It is “here”."}
    outcome = {"because": "max_wall", "record": None, "restarts": 1, "first_cause": None}
    posts = [Post("peer-1", 7, b"\x00\x01")]
    links = [LinkFigures(2, 100, 200, 3)]
    answer = Answer([report], gauges, 12, outcome, shipped, posts, [1], links)
    assert Answer.decode(answer.encode()) == answer


def test_an_order_makes_the_same_spec(tmp_path):
    spec = replace(make_spec(tmp_path, num_envs=4, num_actors=2), address="10.0.0.2")
    order = GroupOrder.of(spec, "mark", resume=True)
    shipped = [Shipped("v00000002", b"12"), Shipped("v00000003", b"123")]
    posts = [Post("peer-0", 3, b"45"), Post("b", 0, b"")]
    assert GroupOrder.decode(order.encode(shipped, posts)) == (order, shipped, posts)
    assert GroupOrder.decode(order.encode([])) == (order, [], [])
    assert order.to_spec(tmp_path) == spec


def test_keys_and_doors_reach_a_host_and_are_not_printed(tmp_path):
    span = Span(1, "secret", door=Door(["10.0.0.1"], 9), expected=Expected("host 1, try 1", [0, 2]))
    order = GroupOrder.of(make_spec(tmp_path), "mark", resume=False, span=span)
    decoded, _, _ = GroupOrder.decode(order.encode([]))
    assert decoded == order
    assert decoded.span == span
    assert "secret" not in repr(decoded)


def test_a_group_of_several_continues_where_it_is_told(tmp_path):
    """A host that has the run folder reads the checkpoint there; another one gets it shipped."""
    spec = make_spec(tmp_path, num_envs=4, num_actors=2)
    start_from = tmp_path / "groups" / "0" / "checkpoints" / "v00000002"
    grouped = replace(spec, group=2, has_head=True, start_from=start_from)
    order = GroupOrder.of(grouped, "mark", resume=True)
    assert order.to_spec(tmp_path) == grouped
    elsewhere = tmp_path / "elsewhere"
    assert order.to_spec(elsewhere) == replace(grouped, run_dir=elsewhere, start_from=None)


def test_a_question_arrives_as_it_was():
    question = Question(0.25, 12, [Post("peer-1", 7, b"\x00\x01")])
    assert Question.decode(question.encode()) == question


def test_gauges_are_copied_and_their_times_are_of_this_clock():
    there, here = Gauges(KINDS), Gauges(KINDS)
    there.rows["learner"][Gauge.HEARTBEAT_NS] = 1_000
    there.rows["learner"][Gauge.BUSY_NS] = 70
    there.rows["actor-0"][Gauge.FIRST_STEP_NS] = 2_000
    there.rows["actor-0"][Gauge.STEPS] = 5
    copy_gauges(to_bytes(there), here, offset_ns=-300)
    assert here.rows["learner"][Gauge.HEARTBEAT_NS] == 700
    assert here.rows["learner"][Gauge.BUSY_NS] == 70, "durations are as they are"
    assert here.rows["actor-0"][Gauge.FIRST_STEP_NS] == 1_700
    assert here.rows["actor-0"][Gauge.STEPS] == 5
    assert here.rows["buffer"][Gauge.HEARTBEAT_NS] == 0, "no time stays none"


def test_an_environment_without_a_name_is_refused(tmp_path):
    spec = make_spec(tmp_path)
    check_source(spec)
    object.__setattr__(spec, "env", lambda: None)
    with pytest.raises(UsageError, match="module:factory"):
        check_source(spec)
