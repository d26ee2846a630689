"""Failures of environments, as people hear of them."""

from tests.fakes.scripted import gauge_row
from tianji.channels.gauges import Gauge
from tianji.envs.mending import TELL_PERIOD_NS, EnvFailures


def failure(text="the cable is loose"):
    try:
        raise RuntimeError(text)
    except RuntimeError as error:
        return 3, error


def test_every_failure_is_counted_and_messages_do_not_flood():
    row, reports, now = gauge_row(), [], [0]
    failures = EnvFailures("actor-1", 8, row, reports.append, lambda: now[0])
    for _ in range(100):
        failures(*failure())
    assert row[Gauge.ENV_FAILURES] == 100
    (first,) = reports
    assert (first["kind"], first["role"]) == ("env_failure", "actor-1")
    assert "Environment 3 of 8 failed: RuntimeError: the cable is loose" in first["text"]
    assert first["traceback"].startswith("Traceback")
    now[0] = TELL_PERIOD_NS
    failures(*failure("another one"))
    _, second = reports
    assert "100 failures since the last message" in second["text"]
    assert second["text"].endswith("Failures in all: 101.")
    assert "traceback" not in second
