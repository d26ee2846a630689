"""With max_lag 0 the local engine gives, bit for bit, what serial training gives."""

import pytest

from tests.system.runs import (
    CONTINUOUS,
    DQN,
    IMPALA,
    PPO,
    PRIORITISED,
    SAC,
    differences,
    run,
    saved_state,
)

CLOCK = (".state.progress.wall_s",)
ACTORS = ".state.actors"


NAMES = {"ppo": PPO, "prioritised": PRIORITISED, "impala": IMPALA, "sac": SAC, "dqn": DQN}
QUICK = [("ppo", 2), ("prioritised", 2), ("impala", 1), ("sac", 1)]
"""A process for a second actor with one algorithm for each kind of store: unrolls and replay. DQN
has its buffer in a process too in its short form (test_placements.py)."""
SLOW = [
    pytest.param(name, count, marks=pytest.mark.slow)
    for name in NAMES
    for count in (1, 2)
    if (name, count) not in QUICK
]


@pytest.mark.parametrize(("name", "num_actors"), [*QUICK, *SLOW])
def test_local_without_lag_equals_inline(name, num_actors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {"algorithm": NAMES[name], "num_actors": num_actors, "max_lag": 0}
    shared |= {"max_env_steps": 3000, **({"env": CONTINUOUS} if name == "sac" else {})}
    inline = run(engine="inline", **shared)
    local = run(engine="local", **shared)
    for key in ("env_steps", "updates", "version", "episodes", "mean_return_100"):
        assert inline[key] == local[key], key
    one, other = saved_state(inline["run_dir"]), saved_state(local["run_dir"])
    # The inline engine alone can also save its environments.
    one = {k: v for k, v in one.items() if not k.startswith(ACTORS)}
    other = {k: v for k, v in other.items() if not k.startswith(ACTORS)}
    # When rows were finished is the clock's affair; everything else must be equal.
    clock = [name for name in one if name.endswith("row_ns")]
    assert differences(one, other, but=(*CLOCK, *clock)) == []
    assert any(name.startswith(".weights") for name in one)


@pytest.mark.parametrize(
    ("algorithm", "memory"),
    [(PPO, "gru"), (IMPALA, "lstm")],
    ids=["ppo-gru", "impala-lstm"],
)
@pytest.mark.parametrize("num_actors", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_local_without_lag_equals_inline_with_a_memory(
    num_actors, algorithm, memory, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shared = {"algorithm": algorithm, "num_actors": num_actors, "max_lag": 0, "max_env_steps": 1000,
              "model": {"memory": memory, "memory_size": 8}}  # fmt: skip
    one, other = (saved_state(run(engine=e, **shared)["run_dir"]) for e in ("inline", "local"))
    names = [name for name in one if name.startswith((".weights", ".state.update"))]
    assert any("memory" in name for name in names)
    assert [name for name in differences(one, other) if name in names] == []


def test_another_seed_gives_another_policy(tmp_path, monkeypatch):
    """The comparison above can fail."""
    monkeypatch.chdir(tmp_path)
    runs = [run(engine="inline", algorithm=PPO, max_env_steps=500, seed=s) for s in (1, 2)]
    one, other = (saved_state(r["run_dir"]) for r in runs)
    assert any(name.startswith(".weights") for name in differences(one, other))
