"""What each style makes of the settings of a preset, and where its roles live."""

import pytest

from tests.contracts.test_style import MACHINE, config_of, program_of
from tianji.config.files import save_config
from tianji.config.overrides import make_config, resume_changes, with_changes
from tianji.config.schema import flat
from tianji.config.values import Assignment
from tianji.envs.build import probe
from tianji.errors import UsageError
from tianji.planning.resolve.resolve import resolve
from tianji.programs.registry import find_style
from tianji.programs.styles.gala import GROUPS, MAX_AGE


def algorithm(preset, **values):
    return make_config(preset, **values).algorithm


def test_v_trace_keeps_what_it_shares_with_ppo():
    ppo, found = algorithm("pong-ppo"), algorithm("pong-ppo", style="impala")
    shared = ("gamma", "learning_rate", "learning_rate_final", "max_grad_norm", "entropy")
    assert [getattr(found, name) for name in shared] == [getattr(ppo, name) for name in shared]
    assert found.name == "impala"
    assert found.unroll_length == ppo.unroll_length * ppo.unrolls_per_batch
    assert found.value_loss == 2 * ppo.value_loss, "half a squared error"


@pytest.mark.parametrize("preset", ["cartpole-ppo", "pong-ppo", "catch-pixels-ppo"])
@pytest.mark.parametrize("style", ["impala", "seed"])
def test_what_v_trace_does_not_keep_of_ppo_is_named_in_the_differences(preset, style):
    ppo, found = (algorithm(preset, **given).model_dump() for given in ({}, {"style": style}))
    changed = {name for name in ppo.keys() & found.keys() - {"name"} if ppo[name] != found[name]}
    (loss,) = [told for told in find_style(style).differences if told.startswith("Loss")]
    assert changed and all(name in loss for name in changed)


def test_v_trace_has_an_entropy_bonus_where_ppo_needs_none():
    assert algorithm("cartpole-ppo").entropy == 0
    assert algorithm("cartpole-ppo", style="impala").entropy == 0.01
    assert algorithm("cartpole-ppo", style="impala", entropy=0).entropy == 0, "unless it is given"


def test_what_the_person_gives_wins_and_may_be_a_setting_of_the_new_algorithm():
    found = algorithm("cartpole-ppo", style="impala", learning_rate=1e-5, clip_rho=2.0)
    assert (found.learning_rate, found.clip_rho) == (1e-5, 2.0)


def test_settings_that_are_auto_stay_so_if_the_new_algorithm_has_them():
    found = make_config("cartpole-ppo", style="impala", unroll_length="auto")
    assert found.plan.choose == ("algorithm.unroll_length",)


def test_a_preset_with_v_trace_keeps_its_settings():
    assert algorithm("cartpole-impala", style="impala") == algorithm("cartpole-impala")
    assert make_config("cartpole-impala", style="impala").balance == "blocking"


def test_apex_keeps_the_network_and_the_returns_and_draws_by_priority():
    dqn, found = algorithm("cartpole-dqn"), algorithm("cartpole-dqn", style="apex")
    assert (found.name, found.sampling, found.exploration) == ("apex", "prioritized", "ladder")
    assert (found.n_step, found.dueling, found.target_tau) == (3, dqn.dueling, dqn.target_tau)
    assert make_config("cartpole-dqn", style="apex").balance == "free"


def test_gala_divides_the_environments_among_the_groups_that_it_brings():
    found = make_config("cartpole-ppo", style="gala")
    assert (found.num_groups, found.combine, found.combine_every) == (GROUPS, "gossip", 1)
    assert found.combine_max_age == MAX_AGE
    assert found.num_groups * found.num_envs == make_config("cartpole-ppo").num_envs


def test_groups_of_gala_that_somebody_asks_for_have_num_envs_each_as_in_other_styles():
    asked = make_config("cartpole-ppo", style="gala", num_envs=6, num_groups=3)
    assert (asked.num_groups, asked.num_envs) == (3, 6)
    for num_groups in (2, 3):
        gala = make_config("cartpole-ppo", style="gala", num_groups=num_groups, combine_max_age=0)
        tianji = make_config("cartpole-ppo", style="tianji", num_groups=num_groups)
        assert (gala.num_groups, gala.num_envs) == (tianji.num_groups, tianji.num_envs)
        assert gala.combine_max_age == 0, "nobody waits if that is asked for"
    assert make_config("cartpole-ppo", style="gala", num_envs=6).num_envs == 6


def test_groups_that_nobody_asked_for_keep_environments_that_do_not_divide():
    three_agents = make_config("cartpole-ppo").model_copy(update={"num_envs": 9})
    values = flat(three_agents.model_dump())
    found = find_style("gala").settings(values, frozenset({"style"}))
    assert (found["num_groups"], found["num_envs"]) == (2, 9)


def test_sample_factory_has_two_actors_in_a_process_or_more():
    found = make_config("cartpole-ppo", style="sample-factory")
    assert found.plan.actors_per_worker == 2
    asked = {"plan": {"actors_per_worker": 4}, "num_actors": 8}
    assert make_config("cartpole-ppo", style="sample-factory", **asked).plan.actors_per_worker == 4


@pytest.mark.parametrize("preset", ["cartpole-dqn", "pendulum-sac"])
def test_sample_factory_has_two_actors_in_a_process_for_replay_too(preset):
    config = make_config(preset, style="sample-factory", **{"plan.source": "rule"})
    plan = resolve(config, MACHINE, probe(config.env, {}))
    assert (plan.inference, plan.actors_per_worker) == ("served", 2) and plan.num_actors % 2 == 0


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"num_envs": 7}, "num_envs = 7 cannot be shared evenly by num_actors = 2.*num_envs = 8"),
        ({"num_envs": 18, "plan": {"actors_per_worker": 4}}, "by num_actors = 4.*num_envs = 16"),
    ],
)
def test_sample_factory_refuses_environments_that_do_not_fill_its_processes(asked, told):
    config = make_config("cartpole-ppo", style="sample-factory", **asked)
    with pytest.raises(UsageError, match=told):
        resolve(config, MACHINE, probe(config.env, {}))


def test_sample_factory_divides_agents_among_two_actors_or_says_what_would():
    def plan(num_envs):
        config = make_config(
            style="sample-factory",
            env="pettingzoo:tianji.envs.exits",
            env_kwargs={"num_agents": 3},
            num_envs=num_envs,
        )
        return resolve(config, MACHINE, probe(config.env, config.env_kwargs))

    with pytest.raises(UsageError, match=r"in whole environments of 3 agents.*num_envs = 12"):
        plan(9)
    found = plan(12)
    assert found.num_actors % 2 == 0 and found.actors_per_worker == 2


def test_processes_hold_no_more_actors_than_there_are():
    config = make_config(
        "cartpole-ppo", inference="served", num_actors=1, plan={"actors_per_worker": 2}
    )
    assert resolve(config, MACHINE, probe(config.env, {})).actors_per_worker == 1


def test_a_run_of_gala_continues_with_any_number_of_groups():
    """Its num_envs is that of a group already, and is not divided again."""
    run = make_config("cartpole-ppo", style="gala")
    changes = resume_changes(run, [Assignment("num_groups", 3)])
    assert with_changes(run, changes).num_envs == run.num_envs


def test_gala_refuses_algorithms_with_one_learner_and_says_what_to_use():
    told = (
        "style is 'gala', and the algorithm is a3c: .* Use a preset or an --algorithm such as ppo"
    )
    with pytest.raises(UsageError, match=told):
        make_config("cartpole-a3c", style="gala")


def test_a_serial_run_has_one_worker():
    program, _ = program_of("serial")
    assert [worker.name for worker in program.workers] == ["learner"]
    assert config_of("serial").engine == "inline"


def test_seed_infers_in_the_learners_process():
    (server,) = program_of("seed")[0].of_kind("inference")
    assert (server.worker, server.thread) == ("learner", 1)


def test_sample_factory_has_two_actors_in_every_process():
    program, plan = program_of("sample-factory")
    held = [len(program.roles_in(worker.name)) for worker in program.workers]
    assert plan.actors_per_worker == 2 and held.count(2) >= plan.num_actors // 2


def test_actors_of_impala_have_a_policy_of_their_own():
    assert program_of("impala")[0].of_kind("inference") == ()


def test_a_run_is_repeated_exactly_from_its_config(tmp_path):
    given = make_config("cartpole-ppo", style="gala", combine_every=4, num_groups=4)
    path = tmp_path / "config.yaml"
    save_config(given, path)
    assert make_config(str(path)) == given, "what was given beside the style is not replaced"
    assert make_config(str(path), style="serial").num_groups == 1, "unless another one is named"


def test_a_preset_that_contradicts_its_own_style_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("style: lock-step\nenv: CartPole-v1\nmax_lag: 3\n")
    with pytest.raises(UsageError, match="style is 'lock-step', and max_lag is '3'"):
        make_config(str(path))


def test_settings_beside_a_style_in_a_preset_outlive_another_algorithm(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("style: a3c\nenv: CartPole-v1\nalgorithm: {unroll_length: 64}\n")
    assert algorithm(str(path)).unroll_length == 64
