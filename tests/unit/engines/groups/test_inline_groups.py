"""Several groups in one process, and the head that makes one run of them."""

from dataclasses import replace

import numpy as np
import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.orders import Stop
from tianji.checkpoint.load import latest, list_checkpoints, read_checkpoint
from tianji.checkpoint.sets import group_folder, newest_set
from tianji.config.seeding import seed_for
from tianji.engines.groups.inline import InlineGroups
from tianji.engines.groups.specs import group_specs
from tianji.learner.combination import Combination

IMPALA = {"name": "impala", "unroll_length": 8}
DQN = {
    "name": "dqn", "unroll_length": 4, "batch_size": 8, "updates_per_version": 2,
    "warmup_steps": 32, "replay_size": 256,
}  # fmt: skip
PPO = {"name": "ppo", "unroll_length": 8, "epochs": 2, "minibatch_size": 8}
STEPS = 16  # of a version of one group: 8 rows, 2 environments


def spec_of(run_dir, num_groups=2, **values):
    always = {"combine": "average", "combine_every": 1}
    settings = {"algorithm": PPO, "max_env_steps": 8 * STEPS, **always, **values}
    return make_spec(run_dir, "CartPole-v1", num_groups=num_groups, **settings)


def run(run_dir, num_groups=2, saved=None, watcher=None, **values):
    spec = spec_of(run_dir, num_groups, **values)
    watcher = watcher or Watcher()
    engine = InlineGroups(spec, [spec.plan] * spec.config.num_learners, saved, watcher)
    return engine.run(watcher.stop, resume=saved is not None), watcher


def weights_of(run_dir, group):
    saved = read_checkpoint(latest(group_folder(run_dir, group)).path)
    return np.concatenate([tensor.numpy().ravel() for tensor in saved.weights.values()])


@pytest.fixture
def mixes(monkeypatch):
    """Parameters before and after each mix, by group."""
    seen = {}
    mix = Combination.mix

    def watched(self, version):
        vector = self._state._vector_P
        before = vector.clone().numpy()
        mix(self, version)
        seen.setdefault(self._group, []).append((before, vector.clone().numpy()))

    monkeypatch.setattr(Combination, "mix", watched)
    return seen


@pytest.mark.parametrize(("num_groups", "algorithm"), [(2, PPO), (3, PPO), (2, IMPALA)])
def test_groups_that_average_after_every_update_are_equal_after_every_mix(
    tmp_path, mixes, num_groups, algorithm
):
    outcome, _ = run(tmp_path, num_groups, algorithm=algorithm, max_env_steps=30 * STEPS)
    assert outcome["because"] == "max_env_steps"
    assert sorted(mixes) == list(range(num_groups))
    rounds = list(zip(*mixes.values(), strict=True))
    assert len(rounds) >= 4
    for states in rounds:
        befores, afters = zip(*states, strict=True)
        assert not np.array_equal(befores[0], befores[1]), "they learn from other episodes"
        assert all(np.array_equal(afters[0], after) for after in afters)
    assert outcome["record"]["updates"] == len(rounds) * num_groups
    for group in range(num_groups):
        assert np.array_equal(weights_of(tmp_path, group), weights_of(tmp_path, 0))


def test_groups_of_dqn_mix_though_they_make_different_numbers_of_updates(tmp_path, mixes):
    outcome, _ = run(tmp_path, algorithm=DQN, max_env_steps=30 * STEPS)
    by_group = [figures["updates"] for figures in outcome["record"]["groups"]]
    assert [len(mixes[group]) for group in range(2)] == by_group and min(by_group) > 10
    one, other = (weights_of(tmp_path, group) for group in range(2))
    assert np.abs(one - other).max() < 0.01 * np.abs(one).max()


def test_between_mixes_the_groups_go_their_own_way(tmp_path, mixes):
    run(tmp_path, combine_every=10**6)
    assert mixes == {}
    assert not np.array_equal(weights_of(tmp_path, 0), weights_of(tmp_path, 1))


def test_normaliser_statistics_are_those_of_all_groups(tmp_path):
    run(tmp_path, normalize={"observations": True, "rewards": True})
    first, second = (
        read_checkpoint(latest(group_folder(tmp_path, group)).path).state["update"]
        for group in range(2)
    )
    for name in ("observations/count", "observations/mean", "rewards/m2"):
        assert first[name].tolist() == second[name].tolist(), name
    assert np.array_equal(weights_of(tmp_path, 0), weights_of(tmp_path, 1))


def test_two_runs_of_the_same_groups_are_equal_to_the_bit(tmp_path):
    for name in ("one", "other"):
        run(tmp_path / name, combine="gossip")
    for group in range(2):
        one, other = (weights_of(tmp_path / name, group) for name in ("one", "other"))
        assert np.array_equal(one, other)


def test_limits_and_schedules_are_those_of_the_run(tmp_path, monkeypatch):
    from tianji.learner.role import Learner

    seen = []
    begin = Learner._begin

    def watched(self):
        began = begin(self)
        if began:
            seen.append(self._progress())
        return began

    monkeypatch.setattr(Learner, "_begin", watched)
    outcome, _ = run(tmp_path)
    by_group = [figures["env_steps"] for figures in outcome["record"]["groups"]]
    assert 8 * STEPS <= sum(by_group) == outcome["record"]["env_steps"] < 10 * STEPS
    assert max(by_group) < 6 * STEPS, "no group has made them all"
    assert seen[-1] > 0.75, "the share of all steps of the run"


def test_the_target_counts_the_episodes_of_all_groups(tmp_path):
    outcome, _ = run(
        tmp_path, max_env_steps=10**6, target_return=5.0, algorithm={**PPO, "epochs": 1}
    )
    assert outcome["because"] == "target_reached"
    record = outcome["record"]
    assert record["episodes"] >= 100 and record["time_to_target_s"] > 0
    for group in range(2):
        progress = read_checkpoint(latest(group_folder(tmp_path, group)).path).state["progress"]
        assert 0 < progress["episodes"] < 100, "no group alone has reached it"


def test_what_is_reported_is_the_run_as_a_whole(tmp_path):
    outcome, watcher = run(tmp_path)
    records = [r["record"] for r in watcher.reports if r["kind"] == "metrics"]
    assert [figures["group"] for figures in records[-1]["groups"]] == [0, 1]
    assert records[-1]["env_steps"] == outcome["record"]["env_steps"] >= 8 * STEPS
    steps = [record["env_steps"] for record in records]
    assert steps == sorted(steps)
    assert set(watcher.gauges.rows) == {
        f"{group}/{role}" for group in range(2) for role in ("actor-0", "buffer", "learner")
    }
    assert {r["role"] for r in watcher.reports if r["kind"] == "checkpoint_written"} == {
        "0/learner", "1/learner"
    }  # fmt: skip


def test_a_stop_ends_all_groups_between_two_versions_and_saves_them(tmp_path):
    watcher = Watcher()
    watcher.stop_at, watcher.how = 2, Stop.FINISH
    outcome, _ = run(tmp_path, watcher=watcher, max_env_steps=10**6)
    assert outcome["because"] == "interrupted"
    saved = newest_set(tmp_path)
    versions = [figures["version"] for figures in outcome["record"]["groups"]]
    assert [int(path.name[1:]) for path in saved.paths] == versions
    assert saved.found.env_steps == outcome["record"]["env_steps"]


def test_groups_whose_folders_are_deleted_save_again(tmp_path):
    class Deletes(Watcher):
        has_deleted = False

        def report(self, report):
            super().report(report)
            if report["kind"] == "metrics" and not self.has_deleted:
                # All at once: a checkpoint that is being written would keep `rmtree` from it.
                (tmp_path / "groups").rename(tmp_path / "deleted")
                self.has_deleted = True

    run(tmp_path, watcher=Deletes())
    assert len(newest_set(tmp_path).paths) == 2


@pytest.mark.parametrize("num_groups", [1, 2, 3])
def test_a_run_continues_with_any_number_of_groups(tmp_path, num_groups):
    before, _ = run(tmp_path)
    saved = newest_set(tmp_path)
    outcome, watcher = run(tmp_path, num_groups, saved, max_env_steps=14 * STEPS)
    assert outcome["because"] == "max_env_steps"
    assert outcome["record"]["env_steps"] >= 14 * STEPS
    assert outcome["record"]["env_steps"] < (14 + num_groups) * STEPS
    assert outcome["record"]["episodes"] > before["record"]["episodes"]
    (told,) = watcher.texts("restored")
    words = {
        1: "continues with 1. Not used: the checkpoints of group 1.",
        2: "Every group continues from its checkpoint.",
        3: "continues with 3: group 2 from group 0.",
    }
    assert words[num_groups] in told
    for group in range(num_groups):
        assert len(list_checkpoints(group_folder(tmp_path, group))) > 1
    assert len(newest_set(tmp_path).paths) == num_groups


def test_actors_are_numbered_and_schedules_run_over_all_groups(tmp_path):
    spec = spec_of(tmp_path)
    engine = InlineGroups(spec, [spec.plan] * 2, None, Watcher())
    for group, made in enumerate(engine.groups):
        plan = made.roles.actors["actor-0"]._assembler._episodes._plan
        assert plan.seed == seed_for(spec.config.seed, "actor", group)
        assert plan.steps_per_round == 2 * STEPS
        made.roles.close()


@pytest.mark.parametrize(("num_groups", "algorithm"), [(2, PPO), (3, PPO), (2, IMPALA), (2, DQN)])
def test_groups_that_add_up_their_gradients_are_one_policy(tmp_path, num_groups, algorithm):
    weights = []
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        outcome, _ = run(
            tmp_path / name,
            num_groups,
            algorithm=algorithm,
            combine="gradients",
            max_env_steps=30 * STEPS,
        )
        assert outcome["because"] == "max_env_steps"
        figures = outcome["record"]["groups"]
        assert len({each["version"] for each in figures}) == 1
        assert len({each["updates"] for each in figures}) == 1 and figures[0]["updates"] > 2
        weights += [weights_of(tmp_path / name, group) for group in range(num_groups)]
    assert all(np.array_equal(weights[0], each) for each in weights), "also in another run"


def test_the_last_checkpoints_of_groups_that_add_up_gradients_are_a_set(tmp_path):
    outcome, _ = run(tmp_path, combine="gradients")
    versions = [each["version"] for each in outcome["record"]["groups"]]
    saved = newest_set(tmp_path)
    assert [int(path.name[1:]) for path in saved.paths] == versions


NORMALIZED = {"normalize": {"observations": True, "rewards": True}}
TWO_EACH = {"learners_per_group": 2, "max_env_steps": 40 * STEPS}


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [(PPO, NORMALIZED), (IMPALA, {}), (DQN, {}), (PPO, {"combine_every": 3})],
    ids=["ppo", "impala", "dqn", "ppo every 3"],
)
@pytest.mark.parametrize("combine", ["average", "gossip"])
def test_learners_of_a_group_stay_equal_while_groups_mix(tmp_path, mixes, algorithm, more, combine):
    settings = {"algorithm": algorithm, "combine": combine, **TWO_EACH, **more}
    outcome, _ = run(tmp_path, **settings)
    assert outcome["because"] == "max_env_steps"
    assert sorted(mixes) == [0, 2], "the first learner of each group mixes"
    assert min(len(rounds) for rounds in mixes.values()) > 2
    states = [
        read_checkpoint(latest(group_folder(tmp_path, learner)).path).state["update"]
        for learner in range(4)
    ]
    for one, other in ((0, 1), (2, 3)):
        assert np.array_equal(weights_of(tmp_path, one), weights_of(tmp_path, other))
        assert sorted(states[one]) == sorted(states[other])
        own = ("generator", "/returns")  # draws and open episodes of each learner's environments
        for name, value in states[one].items():
            if any(part in name for part in own):
                continue
            assert np.array_equal(np.asarray(value), np.asarray(states[other][name])), name
    again = tmp_path / "again"
    run(again, **settings)
    for learner in (0, 2):
        assert np.array_equal(weights_of(tmp_path, learner), weights_of(again, learner))


def test_groups_of_two_learners_mix_as_worked_out_by_hand(tmp_path, mixes):
    run(tmp_path, **TWO_EACH)
    rounds = list(zip(mixes[0], mixes[2], strict=True))
    assert len(rounds) > 4
    for (before, after), (other_before, other_after) in rounds:
        assert not np.array_equal(before, other_before), "they learn from other episodes"
        by_hand = (before + other_before) / np.float32(2)
        assert np.array_equal(after, by_hand) and np.array_equal(other_after, by_hand)
    for (_, after), (before, _) in zip(mixes[0], mixes[0][1:], strict=False):
        assert not np.array_equal(after, before), "there is an update in between"


def test_learners_of_one_group_are_groups_that_add_up_their_gradients(tmp_path):
    """Whatever `combine` says: there is nothing to combine with."""
    run(tmp_path / "groups", 4, combine="gradients", max_env_steps=20 * STEPS)
    runs = {
        "one": {"num_groups": 1, "learners_per_group": 4, "combine": "average"},
        "two": {"num_groups": 2, "learners_per_group": 2, "combine": "gradients"},
    }
    for name, settings in runs.items():
        run(tmp_path / name, max_env_steps=20 * STEPS, **settings)
        for learner in range(4):
            expected = weights_of(tmp_path / "groups", learner)
            assert np.array_equal(weights_of(tmp_path / name, learner), expected), name


def test_a_group_has_one_record_with_the_figures_of_its_learners(tmp_path):
    outcome, _ = run(tmp_path, **TWO_EACH)
    record = outcome["record"]
    assert [figures["group"] for figures in record["groups"]] == [0, 1]
    assert sum(figures["env_steps"] for figures in record["groups"]) == record["env_steps"]
    assert sum(figures["updates"] for figures in record["groups"]) == record["updates"]
    assert 40 * STEPS <= record["env_steps"] < 46 * STEPS, "limits are the run's"


@pytest.mark.parametrize(
    ("num_groups", "each", "sources"),
    [(2, 2, [0, 1, 2, 3]), (4, 1, [0, 2, 0, 2]), (1, 3, [0, 1, 0]), (3, 2, [0, 1, 2, 3, 0, 1])],
)
def test_a_run_continues_with_other_numbers_of_learners(tmp_path, num_groups, each, sources):
    run(tmp_path, **TWO_EACH)
    saved = newest_set(tmp_path)
    assert (saved.num_groups, saved.found.learners_per_group) == (2, 2)
    assert [saved.source_of(i, each) for i in range(num_groups * each)] == sources
    outcome, watcher = run(
        tmp_path, num_groups, saved, learners_per_group=each, max_env_steps=60 * STEPS
    )
    assert outcome["because"] == "max_env_steps"
    (told,) = watcher.texts("restored")
    assert ("Groups had 2 learners each" in told) is (each != 2)
    assert len(newest_set(tmp_path).paths) == num_groups * each


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=["ppo", "dqn"])
def test_a_group_waits_for_one_that_posts_rarely(tmp_path, monkeypatch, algorithm, each):
    """The first group posts after every update, the other one after 50."""

    def unequal(*given):
        for spec in group_specs(*given):
            every = {"combine_every": 50 if spec.group >= each else 1}
            yield replace(spec, config=spec.config.model_copy(update=every))

    monkeypatch.setattr("tianji.engines.groups.inline.group_specs", unequal)
    values = {"algorithm": algorithm, "combine": "gossip", "learners_per_group": each}
    outcome, _ = run(tmp_path, combine_max_age=3, max_env_steps=40 * each * STEPS, **values)
    assert outcome["because"] == "max_env_steps"
    first, other = outcome["record"]["groups"]
    assert first["peer_age"]["max"] == 3
    assert first["updates"] < other["updates"] and first["peer_age"]["waited_s"] > 0
