"""The balance and the limiter under disturbances, on the virtual clock."""

from dataclasses import replace

import pytest

from benchmarks.limiter import simulated
from benchmarks.limiter.script import PHASES, Answer, by_second, follow, judge, series
from tests.unit.benchmarks.test_disturbances_tape import tape_of

SHORT = tuple(replace(phase, seconds=7.0) for phase in PHASES if phase.seconds)


def played(contestant):
    run = simulated.SimulatedRun(contestant)
    run.run_for(2.0)
    return run, follow(run, SHORT, run.clock.elapsed_s)


@pytest.fixture(scope="module", params=["queue", "replay"])
def both(request):
    """The answers of balance and limiter, by phase."""
    found = []
    for contestant in (simulated.paced(request.param, 1), simulated.limited(request.param)):
        run, marks = played(contestant)
        assert run.tape.lost() == run.buffer.discarded == 0
        found.append({name: judge(run.tape, *mark, 4) for name, mark in marks.items()})
    return found


def test_the_balance_blocks_no_insert_and_keeps_the_lag_at_its_set_point(both):
    balance, _ = both
    for name, answer in balance.items():
        assert answer.blocked == answer.blocked_share == 0, name
        assert answer.settled_lag_p95 == answer.highest_lag == 1, name


def test_the_limiter_blocks_inserts_whenever_actors_are_faster(both):
    _, limiter = both
    for name in ("learner 2 times slower", "learner as before", "an actor killed"):
        assert limiter[name].blocked > 100, name
        assert limiter[name].settled_lag_p95 > 1, name
    assert limiter["environments 5 times slower"].blocked_share < 0.01


def test_both_are_as_fast_when_they_have_settled(both):
    balance, limiter = both
    for name, answer in balance.items():
        assert answer.settled_rate >= 0.97 * limiter[name].settled_rate, name


def test_a_replay_store_makes_up_for_bursts():
    bursts = tuple(phase for phase in PHASES if "bursts" in phase.name)
    answers = []
    for contestant in (simulated.paced("replay", 1, max_lag=2), simulated.limited("replay")):
        run = simulated.SimulatedRun(contestant)
        run.run_for(2.0)
        (mark,) = follow(run, bursts, run.clock.elapsed_s).values()
        answers.append(judge(run.tape, *mark, 4))
        assert run.tape.lost() == run.buffer.discarded == 0
    balance, limiter = answers
    assert (balance.blocked, balance.highest_lag) == (0, 2)
    assert balance.settled_rate >= 0.97 * limiter.settled_rate


def test_two_simulations_of_a_seed_are_the_same():
    first, second = (played(simulated.limited("queue"))[0].tape for _ in range(2))
    assert first.samples == second.samples


def test_an_answer_counts_from_five_seconds_after_the_disturbance():
    tape = tape_of(lambda at: 1000 if at < 25 else 500, lag_at=lambda at: 2 if at < 25 else 1)
    answer = judge(tape, 20.0, 40.0, num_actors=4)
    assert (answer.settled_lag_p95, answer.highest_lag) == (1, 2)
    assert answer.settled_rate == pytest.approx(500, rel=0.01)
    assert answer.rate == pytest.approx(625, rel=0.01)
    assert isinstance(answer, Answer)


def test_the_series_has_a_figure_for_every_second():
    tape = tape_of(lambda _: 1000)
    assert by_second(tape, 10.0, 14.5) == [1, 1, 1, 1]
    drawn = series(tape, {"a": (10.0, 20.0), "b": (20.0, 30.0)}, num_actors=4)
    assert drawn["begins"] == {"a": 4.0, "b": 14.0}
    assert len(drawn["rate"]) == len(drawn["lag_p95"]) == len(drawn["blocked_share"]) == 24
