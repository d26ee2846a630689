"""The timeline of whole runs: what every role did, how items travelled, whatever happened."""

import gzip
import json
import signal
from pathlib import Path

import pytest

from tests.system.commands import FOREVER, SMALL, Command
from tests.system.runs import DQN, PPO, QUIET, differences, resume, run, saved_state
from tianji.cli.main import main
from tianji.trace.read import newest_trace, read_trace
from tianji.trace.spans import Kind, open_spans, read_spans

TRACED = {**QUIET, "trace": True}
ACTOR = {"infer", "step", "write", "pick up"}
LEARNER = {"update", "publish", "save"}
BUFFER = {"receive", "take"}


@pytest.fixture
def in_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def traced_run(**values):
    summary = run(observe=TRACED, max_env_steps=2000, num_actors=2, **values)
    return read_trace(newest_trace(Path(summary["run_dir"])))


def names(timeline, role):
    return {span.name for span in timeline.spans[role]}


@pytest.mark.parametrize(
    ("engine", "algorithm"),
    [
        ("inline", PPO),
        ("inline", DQN),
        ("local", PPO),
        pytest.param("local", DQN, marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) else value["name"],
)
def test_a_trace_has_all_that_was_done_and_how_items_travelled(in_new_folder, engine, algorithm):
    timeline = traced_run(engine=engine, algorithm=algorithm)
    asleep = {"paced", "wait"} if engine == "local" else set()
    actors = [role for role in timeline.spans if role.startswith("actor-")]
    assert len(actors) == 2 or engine == "local"  # there one may have done it all alone
    assert any("step" in names(timeline, role) for role in actors)
    for role in actors:
        worked = ACTOR if "step" in names(timeline, role) else set()
        assert worked <= names(timeline, role) <= ACTOR | asleep
    assert names(timeline, "buffer") == BUFFER
    assert LEARNER <= names(timeline, "learner") <= LEARNER | asleep
    if engine == "local":
        assert any("paced" in names(timeline, role) for role in actors)
        assert "wait" in names(timeline, "learner")
    check_spans_do_not_overlap(timeline)
    check_every_receipt_has_one_send(timeline)
    check_items_end(timeline, "learner" if algorithm is PPO else "buffer")
    check_policies_are_picked_up(timeline)
    check_busy_and_idle_are_the_whole_time(timeline, engine)


def check_spans_do_not_overlap(timeline):
    for role, spans in timeline.spans.items():
        ends = [round(span.end_s * 1e9) for span in spans]
        starts = [round(span.start_s * 1e9) for span in spans]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False)), role


def check_every_receipt_has_one_send(timeline):
    received = [span.about["item"] for span in timeline.of_kind("receive")]
    sent = [s.about["item"] for s in timeline.of_kind("write") if s.about["part"] == "send"]
    assert len(set(received)) == len(received) > 0
    assert len(set(sent)) == len(sent)
    assert set(received) <= set(sent)
    items = [arrow for arrow in timeline.arrows if arrow.name == "item"]
    assert len(items) == len(received)
    for arrow in items:
        assert arrow.touches[0].role.startswith("actor-")
        assert arrow.touches[1].role == "buffer"
        times = [touch.at_s for touch in arrow.touches]
        assert times == sorted(times)


def check_items_end(timeline, role):
    """All but the last few, which were received and never taken."""
    whole = [a for a in timeline.arrows if a.name == "item" and len(a.touches) == 3]
    assert {arrow.touches[2].role for arrow in whole} == {role}
    taken = len(timeline.of_kind("take"))
    assert len(whole) >= taken > 0


def check_policies_are_picked_up(timeline):
    picked = timeline.of_kind("pick up")
    policies = [arrow for arrow in timeline.arrows if arrow.name == "policy"]
    assert len(policies) == len(picked) > 0
    versions = [span.about["version"] for span in timeline.of_kind("publish")]
    assert versions == list(range(len(versions)))
    updates = [span.about["version"] for span in timeline.of_kind("update")]
    assert set(updates) == set(versions[1:])


def check_busy_and_idle_are_the_whole_time(timeline, engine):
    begun_s = min(s.start_s for s in timeline.of_kind("write"))
    for role, share in timeline.shares.items():
        mates = timeline.spans if engine == "inline" else {"buffer", "learner"}
        process = mates if role in mates else {role}
        spans = [span for mate in process for span in timeline.spans[mate]]
        start_s = max(begun_s, min(span.start_s for span in spans if span.end_s > begun_s))
        lived_s = max(span.end_s for span in spans) - start_s
        assert share.busy_s + share.idle_s == pytest.approx(lived_s, abs=1e-6)
        asleep = [span for span in timeline.spans[role] if span.name in ("paced", "wait")]
        asleep_s = sum(s.end_s - max(s.start_s, begun_s) for s in asleep if s.end_s > begun_s)
        assert share.idle_s >= asleep_s - 1e-6
        if process == {role}:
            assert share.idle_s == pytest.approx(asleep_s, abs=1e-6)


def test_a_trace_changes_nothing_in_the_training(in_new_folder):
    values = {"engine": "inline", "algorithm": PPO, "max_env_steps": 1000}
    plain = run(**values)
    traced = run(**values, observe=TRACED)
    one, other = saved_state(plain["run_dir"]), saved_state(traced["run_dir"])
    timed = [name for name in one if "wall" in name or name.endswith("_ns")]
    assert not differences(one, other, but=timed)


def test_a_run_that_goes_on_keeps_its_earlier_trace(in_new_folder):
    summary = run(engine="inline", algorithm=PPO, max_env_steps=500, observe=TRACED)
    run_dir = Path(summary["run_dir"])
    before = (run_dir / "trace.json.gz").read_bytes()
    resume(run_dir, max_env_steps=1000)
    resume(run_dir, max_env_steps=1500, observe={"trace": False})
    assert (run_dir / "trace.json.gz").read_bytes() == before
    found = sorted(path.name for path in run_dir.glob("trace*"))
    assert found == ["trace-2.json.gz", "trace.json.gz"]
    first = read_trace(newest_trace(run_dir)).of_kind("publish")[0]
    assert first.about["version"] == summary["version"]


def has_stepped(command, role, but):
    found = map(read_spans, (command.run_dir / "trace").glob(f"{role}-*"))
    return any(ring.pid != but and Kind.STEP in ring.kind for ring in found)


def test_a_killed_actor_leaves_its_spans(tmp_path):
    slow = ["--env", "tianji.envs.worlds:Slow", "--env-kwargs.seconds", "0.001"]
    command = Command(tmp_path, "train", *SMALL, *slow, *FOREVER, "--num-actors", "1", "--trace")
    command.wait_for(lambda: has_stepped(command, "actor-0", but=0), "a step of actor-0")
    victim = command.workers()["actor-0"]
    victim.kill()
    command.wait_for(lambda: has_stepped(command, "actor-0", but=victim.pid), "a new actor-0")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "Trace runs/run/trace.json.gz" in err and "│ trace" in err
    with gzip.open(command.run_dir / "trace.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    steps = [e for e in events if e["name"] == "step" and e["cat"] == "actor-0"]
    assert len({e["pid"] for e in steps}) == 2
    assert victim.pid in {e["pid"] for e in steps}
    assert not (command.run_dir / "trace").exists()
    check_spans_do_not_overlap(read_trace(command.run_dir / "trace.json.gz"))


def test_what_a_killed_supervisor_left_is_kept_when_the_run_goes_on(in_new_folder):
    summary = run(engine="inline", algorithm=PPO, max_env_steps=500)
    run_dir = Path(summary["run_dir"])
    open_spans(run_dir, "actor-0").add(Kind.STEP, 100, 200, 0)
    resume(run_dir, max_env_steps=1000, observe={"trace": True})
    assert names(read_trace(run_dir / "trace.json.gz"), "actor-0") == {"step"}
    assert "infer" in names(read_trace(run_dir / "trace-2.json.gz"), "actor-0")


def test_a_run_that_fails_has_its_trace(in_new_folder):
    words = ["--env", "tianji.envs.worlds:Flaky", "--trace", "--engine", "inline"]
    assert main(["train", *SMALL, *words]) == 1
    timeline = read_trace(newest_trace(in_new_folder / "runs" / "run"))
    assert timeline.of_kind("step")
    assert not (in_new_folder / "runs" / "run" / "trace").exists()
