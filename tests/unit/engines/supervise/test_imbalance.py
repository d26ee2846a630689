"""The supervisor's look at the balance: what lasts is reported, and may lead to another plan."""

import pytest

from tests.fakes.roles import ONE_ACTOR
from tests.unit.planning.plans import config, plan_for
from tianji.channels.gauges import Gauge, Gauges
from tianji.config.plan import Prediction
from tianji.engines.supervise.imbalance import Imbalances

SECOND_NS = 10**9


class Run:
    """A run in which a version of ten steps is made ten times a second."""

    def __init__(self, promised, replan=None):
        prediction = Prediction(
            produced=promised, received=promised, trained=promised, lag_versions=1.0,
            bottleneck="training",
        )  # fmt: skip
        self.gauges = Gauges(ONE_ACTOR)
        self.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 1
        self.now_ns = 0
        plan = plan_for(config()).model_copy(update={"prediction": prediction})
        self.imbalances = Imbalances(plan, self.gauges, replan, lambda: self.now_ns)

    def goes(self, seconds, steps_per_s):
        """The reports of that time."""
        reports = []
        for _ in range(seconds):
            self.now_ns += SECOND_NS
            self.gauges.rows["learner"][Gauge.VERSION] += 10
            self.gauges.rows["buffer"][Gauge.RECEIVED_STEPS] += steps_per_s
            reports.append(self.imbalances.look())
        return [report for report in reports if report is not None]


def test_a_run_as_promised_is_not_reported():
    assert Run(promised=1000).goes(60, steps_per_s=900) == []


def test_a_slow_run_is_reported_with_its_rates_and_shares():
    (report,) = Run(promised=1000).goes(60, steps_per_s=500)
    assert (report["kind"], report["record"]["is_over"]) == ("imbalance", False)
    assert report["record"]["rates_per_s"]["received"] == pytest.approx(500)
    assert {"busy_share", "paced_share", "role", "text"} <= set(report["record"])
    assert "500 steps/s instead of 1,000" in report["text"]


def test_it_is_looked_at_once_a_second_however_often_it_is_asked():
    run = Run(promised=1000)
    run.goes(1, steps_per_s=500)
    run.now_ns += SECOND_NS // 2
    run.gauges.rows["buffer"][Gauge.RECEIVED_STEPS] += 10**9
    run.imbalances.look()
    assert run.imbalances._watch.now().measured["rates_per_s"]["received"] == 0, "it looked again"


@pytest.mark.parametrize("answer", [True, False])
def test_a_better_plan_is_asked_for_with_the_speeds_and_its_answer_counts(answer):
    asked = []
    run = Run(promised=1000, replan=lambda speeds: asked.append(speeds) or answer)
    (report,) = run.goes(25, steps_per_s=500)
    assert asked[0].received == pytest.approx(report["record"]["rates_per_s"]["received"])
    assert run.imbalances.is_replan_due is answer


def test_it_is_asked_for_again_now_and_then_while_the_imbalance_lasts():
    asked = []
    run = Run(promised=1000, replan=lambda speeds: bool(asked.append(speeds)))
    run.goes(16, steps_per_s=500)
    assert not asked
    run.goes(30, steps_per_s=500)
    assert len(asked) == 3, "every ten seconds"
    run.goes(60, steps_per_s=1000)
    before = len(asked)
    run.goes(60, steps_per_s=1000)
    assert len(asked) == before, "it is over"


class Emulators:
    """Processor time of an actor whose emulator keeps so many cores busy."""

    def __init__(self, num_cores):
        self.num_cores = num_cores
        self.core_ns, self.no_core_ns, self.resident_bytes = {"actor-0": 0}, {}, {}

    def look(self, pids, seats):
        self.core_ns = {"actor-0": self.core_ns["actor-0"] + int(self.num_cores * SECOND_NS)}


@pytest.mark.parametrize(("busy", "is_reported"), [(15.5, False), (1, True)])
def test_cores_that_an_emulator_uses_are_not_idle(busy, is_reported):
    run = Run(promised=1000)
    plan = plan_for(config(), cores=16).model_copy(update={"emulator_threads": 16})
    run.imbalances = Imbalances(plan, run.gauges, None, lambda: run.now_ns)
    run.imbalances._watch._times = Emulators(busy)
    reports = []
    for _ in range(60):
        run.gauges.rows["learner"][Gauge.WAIT_NS] += int(0.9 * SECOND_NS)
        run.gauges.rows["actor-0"][Gauge.BUSY_NS] += SECOND_NS
        reports += run.goes(1, steps_per_s=1000)
    assert bool(reports) == is_reported
    assert all("cores are idle" in report["text"] for report in reports)


@pytest.mark.parametrize(("cores", "is_reported"), [(1, False), (4, True)])
def test_idle_cores_are_those_that_the_plan_is_for(cores, is_reported):
    """A group of a cluster has the cores of its hosts, however many groups there are."""
    run = Run(promised=1000)
    asked = config(num_groups=8, engine="ray")
    run.imbalances = Imbalances(plan_for(asked, cores), run.gauges, None, lambda: run.now_ns)
    for _ in range(20):
        run.gauges.rows["learner"][Gauge.WAIT_NS] += int(0.9 * SECOND_NS)
        run.gauges.rows["actor-0"][Gauge.BUSY_NS] += SECOND_NS
        run.goes(1, steps_per_s=1000)
    assert (run.imbalances._drift.lasting is not None) == is_reported
