"""Records of older versions are completed when they are read."""

from tianji.records import NO_METRICS, NO_RATES, NOTHING_DONE, with_defaults, without_open_round


def test_missing_and_null_values_count_as_nothing_done():
    found = with_defaults({"env_steps": 7, "span_s": None, "ratio": {"target": 1.0}}, NO_METRICS)
    assert (found["env_steps"], found["span_s"], found["restarts"]) == (7, 0.0, 0)
    assert found["ratio"] == {"target": 1.0, "actual": None}
    assert found["rates_per_s"] == NO_RATES


def test_rounds_of_older_runs_have_all_keys():
    gather = {"rule": "first", "num_gradients": 8, "counts": [3], "rounds_per_s": 2.0}
    found = with_defaults({"gather": gather}, NOTHING_DONE)["gather"]
    assert (found["network"], found["closing_s"], found["overdue_share"]) == ("none", 0.0, 0.0)
    assert (found["counts"], found["rounds_per_s"]) == ([3], 2.0)


def test_keys_that_have_no_default_are_kept():
    assert with_defaults({"time": "now", "later": 1}, NO_METRICS)["later"] == 1


def test_a_run_that_is_over_has_no_open_round():
    gather = {"rule": "first", "waiting_for": [0], "late": [0], "open_s": 1.0}
    assert without_open_round(gather) == {"rule": "first"}
