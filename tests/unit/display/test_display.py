"""What a person sees, on terminals of different widths and on none."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.unit.observe import accounts
from tests.unit.observe.accounts import make_plan
from tianji.display import display
from tianji.display.display import WHY_PERIOD_S, Display
from tianji.display.live import ASCII, UNICODE, to_columns
from tianji.display.panel import Panel
from tianji.display.phrases import Outlook
from tianji.records import NO_METRICS


def make_config(**changes):
    values = {
        "env_name": "CartPole-v1", "algorithm": SimpleNamespace(name="ppo"), "engine": "local",
        "seed": 1, "run": "cartpole-v1-ppo-s1", "target_return": 475.0,
        "max_env_steps": 1_000_000, "max_wall_s": None, "max_lag": 2, "balance": "paced",
        "supervise": SimpleNamespace(heartbeat_timeout_s=60.0),
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


def make_record(num_actors=2, **changes):
    actors = [f"actor-{i}" for i in range(num_actors)]
    values = {
        "wall_s": 12.0,
        "env_steps": 410_000,
        "updates": 3200,
        "version": 160,
        "episodes": 1204,
        "mean_return_100": 312.44,
        "rates_per_s": {"produced": 33_100, "received": 33_000, "trained": 662_000,
                        "unique_trained": 32_900},
        "lag_versions": {"mean": 1.12, "p95": 2, "max": 3},
        "lag_histogram": [1, 8, 4, 1, 0, 0],
        "ratio": {"target": 1.0, "actual": 0.998},
        "kind": {**dict.fromkeys(actors, "actor"), "buffer": "buffer", "learner": "learner"},
        "busy_share": {**dict.fromkeys(actors, 0.57), "buffer": 0.08, "learner": 0.99},
        "paced_share": dict.fromkeys(actors, 0.43),
        "activity": {**dict.fromkeys(actors, "stepping"), "learner": "updating"},
        "rss_bytes": {"learner": 310_000_000},
        "restarts": 1,
        "discarded_items": 0,
        "learner": {"approx_kl": 0.01234, "entropy": 0.5432, "explained_variance": 0.91,
                    "clip_fraction": 0.1, "grad_norm": 0.4, "policy_loss": -0.01, "v_loss": 12.0},
    }  # fmt: skip
    return {**NO_METRICS, **values, **changes}


def draw(record, width=80, config=None, marks=UNICODE, why=()):
    panel = Panel(config or make_config(), marks)
    panel.update(record, why)
    return [line.plain for line in panel.lines(width, [("12:01:33 checkpoint", "")])]


def test_the_panel_tells_everything_in_80_by_24():
    lines = draw(make_record())
    text = "\n".join(lines)
    for part in (
        "CartPole-v1", "ppo", "seed 1", "cartpole-v1-ppo-s1", "0:12", "312.4 of 475",
        "410k of 1.00M", "41 %", "produced 33.1k", "received 33.0k", "trained 662k",
        "unique 32.9k", "mean 1.12", "p95 2", "max 3 of 2", "▁█▄▁ 0-3 versions", "0.998 of 1",
        "version 160", "updates 3,200", "restarts 1", "57 % busy", "43 % waiting", "stepping",
        "99 % busy", "310 MB", "updating", "approx_kl 0.0123", "12:01:33 checkpoint",
    ):  # fmt: skip
        assert part in text
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


WHY = ("The learner is the bottleneck: 98 % busy; the actor is 22 %.", "This helps most: x" * 9)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_why_has_four_lines_at_most_cut_between_words(width):
    lines = draw(make_record(), width, why=WHY)
    first, event = (
        next(number for number, line in enumerate(lines) if line.startswith(name))
        for name in ("why", "event")
    )
    assert lines[first] == "why       " + " ".join(WHY)[: len(lines[first]) - 10]
    assert event - first <= 4
    assert max(map(len, lines[first:event])) <= width
    assert lines[event - 1].endswith("…") == (width < 80)
    assert draw(make_record(), width, marks=ASCII, why=WHY)[event - 1].isascii()


@pytest.mark.parametrize("width", [80, 100, 105, 113, 120, 140])
def test_the_line_of_the_return_fits_and_has_the_episodes_where_there_is_room(width):
    (line,) = (line for line in draw(make_record(), width) if line.startswith("return"))
    assert len(line) <= width
    assert ("episodes 1.20k" in line) == (width >= 120)


def test_a_record_without_a_reason_has_no_line_for_it():
    assert not any(line.startswith("why") for line in draw(make_record()))


def test_plain_says_why_at_the_end_and_only_there(clock, capsys):
    shown = Display(make_config(), make_plan(), "plain")
    shown.start()
    shown.update(accounts.make_record(env_steps=1))
    assert "bottleneck" not in capsys.readouterr().err
    shown.stop()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("The learner is the bottleneck: it is busy 97 % of the time")
    assert last.endswith("Halving the update time would help most (up to 1.8 x as fast).")


def test_the_last_line_is_about_the_whole_run_as_the_closing_block_is(clock, capsys):
    shown = Display(make_config(), make_plan(), "plain")
    shown.start()
    shown.update(accounts.make_record(0.60, 0.62, env_steps=1))
    shown.stop(accounts.make_record(env_steps=1))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("The learner is the bottleneck: it is busy 97 % of the time")
    shown.stop(NO_METRICS)
    assert "bottleneck" not in capsys.readouterr().err, "the whole run is too short to explain"


def test_an_explanation_stays_long_enough_to_be_read(clock, monkeypatch):
    told = []
    monkeypatch.setattr(display._Plain, "update", lambda _, record, why: told.append(why))
    shown = Display(make_config(), make_plan(), "plain")
    shown.update(NO_METRICS)
    for learner in (0.97, 0.92, 0.92):
        shown.update(accounts.make_record(learner=learner))
        clock.s += WHY_PERIOD_S / 2
    assert told[0] == (), "there is nothing to explain yet"
    assert told[1] == told[2] != told[3]
    assert "97 %" in told[1][0] and "92 %" in told[3][0]


def test_explanations_follow_the_plan_in_use(clock):
    shown = Display(make_config(), make_plan(), "off")
    shown.update(accounts.make_record(cores=4))
    assert "`tianji plan` measures" in shown._why[1]
    shown.plan = make_plan(promised=40_000)
    clock.s += WHY_PERIOD_S
    shown.update(accounts.make_record(cores=4))
    assert "`tianji plan` measures" not in shown._why[1], "a measured plan has done that"


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("num_actors", [6, 7, 64])
def test_many_actors_share_one_line(width, num_actors):
    lines = draw(make_record(num_actors), width)
    assert len(lines) <= 24 and max(map(len, lines[:-1])) <= width
    shown = [line for line in lines if line.startswith("actor-")]
    assert len(shown) == (6 if num_actors == 6 else 0)
    assert any(line.startswith(f"{num_actors} actors") for line in lines) == (num_actors > 6)


def test_before_the_first_record_and_the_first_episode_the_panel_says_so():
    assert "starting" in "".join(line.plain for line in Panel(make_config(), ASCII).lines(80, []))
    assert "no episode has finished yet" in "\n".join(draw(make_record(mean_return_100=None)))


def test_a_terminal_without_unicode_gets_plain_characters():
    assert "\n".join(draw(make_record(), marks=ASCII)).isascii()


def test_a_record_with_nothing_in_it_can_be_drawn():
    assert draw(NO_METRICS)


def at_rate(received, **values):
    record = make_record(**values)
    return record | {"rates_per_s": record["rates_per_s"] | {"received": received}}


def test_the_time_left_follows_the_recent_rate_and_the_nearer_limit():
    steady = Outlook(make_config())
    assert steady.left_s() is None
    steady.update(at_rate(0.0, env_steps=0))  # a run that is resumed: its steps are not known yet
    assert steady.left_s() is None
    steady.update(at_rate(1_000.0, env_steps=300_000))
    assert steady.left_s() == pytest.approx(700.0)
    steady.update(at_rate(10_000.0, env_steps=390_000))
    assert steady.left_s() == pytest.approx(61.0)

    limited = Outlook(make_config(max_wall_s=60.0))
    limited.update(at_rate(10.0, wall_s=50.0, env_steps=1))
    assert limited.left_s() is None, "one record has no rate, and its run may be over"
    limited.update(at_rate(499_999.0, wall_s=51.0, env_steps=500_001))
    assert limited.left_s() == pytest.approx(1.0)
    limited.update(at_rate(1.0, wall_s=59.9, env_steps=500_002))
    assert limited.left_s() == pytest.approx(0.1)


def test_the_way_to_the_target_begins_at_the_first_return():
    outlook = Outlook(make_config(target_return=-100.0))
    shares = []
    for mean_return in (None, -500.0, -400.0, -450.0, -100.0):
        outlook.update(make_record(mean_return_100=mean_return))
        shares.append(outlook.return_share())
    assert shares == [None, 0.0, 0.25, 0.125, 1.0]
    assert outlook.best_return == -100.0


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr(display.time, "monotonic", lambda: now.s)
    return now


def test_plain_lines_come_every_few_seconds_and_only_with_news(clock, capsys):
    shown = Display(make_config(), make_plan(), "plain")
    shown.start()
    capsys.readouterr()
    shown.update(make_record(env_steps=0))
    assert capsys.readouterr().err == ""
    shown.update(make_record(env_steps=100_000, mean_return_100=None))
    assert "100k steps (10 %)  return - of 475" in capsys.readouterr().err
    clock.s += 1
    shown.update(make_record(env_steps=200_000))
    assert capsys.readouterr().err == ""
    clock.s += 5
    shown.update(make_record(env_steps=200_000))
    assert "return 312.4 of 475" in capsys.readouterr().err
    clock.s += 5
    shown.update(make_record(env_steps=200_000))
    shown.stop()
    out, err = capsys.readouterr()
    assert (out, err) == ("", "")


def test_plain_goes_on_while_an_environment_hangs_and_says_what_it_waits_for(clock, capsys):
    shown = Display(make_config(), make_plan(), "plain")
    shown.start()
    capsys.readouterr()
    hanging = {**NO_METRICS, "activity": {"actor-0": "acting", "learner": "waiting"}}
    for second in range(1, 22):
        clock.s += 1
        shown.update({**hanging, "wall_s": second, "silent_s": {"actor-0": second, "learner": 0.1}})
    assert capsys.readouterr().err.splitlines() == [
        f"   0:{second}  waiting for actor-0: its environment has not answered for {second} s; "
        "restart after 60 s (supervise.heartbeat_timeout_s)"
        for second in (10, 20)
    ]


def test_plain_goes_on_while_a_version_takes_long(clock, capsys):
    shown = Display(make_config(), make_plan(), "plain")
    record = make_record(version=4, activity={"actor-0": "paced", "learner": "updating"})
    shown.update(record)
    capsys.readouterr()
    clock.s += 11
    shown.update({**record, "wall_s": 23.0})
    assert capsys.readouterr().err == (
        "   0:23  waiting for version 5: actor-0 paced and learner updating\n"
    )


def test_the_panel_names_who_is_silent_and_nobody_else():
    silent = {"actor-0": 0.2, "actor-1": 12.0, "learner": 0.1}
    activity = {"actor-0": "acting", "actor-1": "starting", "learner": "waiting"}
    lines = draw(make_record(silent_s=silent, activity=activity))
    assert "waiting   for actor-1: it has been starting for 12 s" in lines
    lines = draw(make_record(silent_s={**silent, "actor-1": 4.0}, activity=activity))
    assert not any(line.startswith("waiting") for line in lines)


def test_no_more_than_all_steps_are_done():
    config = make_config(max_env_steps=400_000)
    assert any(
        "410k of 400k" in line and "100 %" in line for line in draw(make_record(), 80, config)
    )


def test_plain_says_what_happens_at_once(capsys):
    shown = Display(make_config(), make_plan(), "plain")
    shown.event("checkpoint v00000160", "info")
    shown.event("actor-1 was killed", "warning")
    assert capsys.readouterr().err == "checkpoint v00000160\nwarning: actor-1 was killed\n"


def test_off_shows_errors_alone(capsys):
    shown = Display(make_config(), make_plan(), "off")
    shown.start()
    shown.update(make_record())
    shown.event("a", "info")
    shown.event("b", "warning")
    shown.event("learner: loss is not finite", "error")
    shown.stop()
    assert capsys.readouterr() == ("", "error: learner: loss is not finite\n")


def test_without_a_terminal_auto_is_plain(capsys):
    shown = Display(make_config(), make_plan())
    shown.start()
    assert capsys.readouterr().err == "CartPole-v1, ppo, local engine, seed 1\n"


def test_the_live_display_leaves_its_last_state_and_warnings_on_standard_error(clock, capsys):
    shown = Display(make_config(), make_plan(), "live")
    shown.start()
    shown.update(make_record(version=1))
    shown.event("actor-1 [was] killed", "warning")
    shown.update(make_record(version=2))
    shown.stop()
    shown.stop()
    out, err = capsys.readouterr()
    assert out == "" and "actor-1 [was] killed" in err
    assert "version 2" in err


def test_the_live_display_is_drawn_four_times_a_second_at_most(clock, monkeypatch):
    shown = Display(make_config(), make_plan(), "live")
    shown.start()
    drawn = []
    monkeypatch.setattr(Panel, "lines", lambda *_: drawn.append(clock.s) or iter(()))
    for _ in range(40):
        clock.s += 0.1
        shown.update(make_record())
    shown.stop()
    assert 10 <= len(drawn) <= 17


@pytest.mark.parametrize("mode", ["live", "plain"])
def test_showing_imports_no_torch(mode):
    code = f"""if True:
        import sys, types
        from tianji.display.display import Display
        from tianji.records import NO_METRICS
        import tianji.observe.summary, tianji.observe.run_log
        config = types.SimpleNamespace(env_name="a", algorithm=types.SimpleNamespace(name="b"),
            engine="c", seed=1, run=None, max_wall_s=None, max_env_steps=9, target_return=None,
            max_lag=1, balance="paced", supervise=types.SimpleNamespace(heartbeat_timeout_s=1.0))
        plan = types.SimpleNamespace(lag_target=1, prediction=None)
        shown = Display(config, plan, {mode!r}); shown.start(); shown.update(NO_METRICS)
        shown.stop()
        sys.exit("torch" in sys.modules)
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr


def test_columns_show_what_is_not_zero():
    assert to_columns([1, 800, 0, 400], UNICODE) == "▁█ ▄"


def test_a_ratio_that_is_not_kept_has_no_target():
    (line,) = [text for text in draw(make_record(ratio={"target": None, "actual": 3.5}))
               if text.startswith("ratio")]  # fmt: skip
    assert "3.5  version 160" in line and " of " not in line


def test_a_lag_that_is_not_bounded_has_no_bound():
    for balance, told in (("paced", "max 3 of 2"), ("blocking", "max 3  ")):
        lines = draw(make_record(), config=make_config(balance=balance))
        assert any(line.startswith("lag") and told in line for line in lines)


def test_the_panel_shows_each_group_and_which_one_is_slow():
    def figures(group, rate):
        rates = {**NO_METRICS["rates_per_s"], "received": rate}
        return {"group": group, "rates_per_s": rates}

    record = make_record(groups=[figures(0, 16_900), figures(1, 4_100)])
    assert "groups    0 16.9k/s  1 4.10k/s" in [line.strip() for line in draw(record)]
    panel = Panel(make_config(), UNICODE)
    panel.update(record)
    (line,) = [line for line in panel.lines(80, []) if line.plain.startswith("groups")]
    slow = [line.plain[span.start : span.end] for span in line.spans if span.style == "yellow"]
    assert slow == ["4.10k/s"]
    assert not [line for line in draw(make_record()) if line.startswith("groups")]
