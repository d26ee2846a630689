"""Given times in real processes: they wait, and the rounds are those of the model."""

from tests.system.runs import run

UNIT_S = 0.05
TIMES = {"law": "equal", "network": "equal", "unit_s": UNIT_S}
SHARED = {
    "env": "CartPole-v1", "engine": "local", "times": TIMES,
}  # fmt: skip


def test_nobody_is_faster_than_the_times_that_were_given(tmp_path, monkeypatch):
    """A gradient of each actor, and then the messages: 2 units for each version."""
    monkeypatch.chdir(tmp_path)
    algorithm = {"name": "rennala-nigt", "m": 2, "unroll_length": 4}
    summary = run(algorithm=algorithm, num_actors=2, num_envs=2, max_env_steps=2 * 4 * 8, **SHARED)
    assert summary["version"] >= 5
    assert summary["wall_s"] >= (2 * summary["version"] - 1) * UNIT_S


def test_where_every_gradient_travels_by_itself_its_message_is_part_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    algorithm = {"name": "sync-nigt", "unroll_length": 4}
    summary = run(algorithm=algorithm, num_actors=1, num_envs=1, max_env_steps=4 * 8, **SHARED)
    assert summary["version"] == 8
    assert summary["gather"]["counts"] == [8]
    assert summary["wall_s"] >= 8 * 2 * UNIT_S
