"""The ablations: each is tianji with one mechanism replaced, and says where it makes no sense."""

import pytest

from tests.unit.planning.plans import plan_for
from tianji.config.overrides import make_config
from tianji.errors import UsageError
from tianji.programs.ablations.waits import without_waits
from tianji.programs.one_group import program_for
from tianji.programs.program import CONFIRMATIONS, REQUESTS
from tianji.programs.registry import STYLES

ABLATIONS = [name for name, style in STYLES.items() if style.kind == "ablation"]


def test_every_mechanism_has_an_ablation():
    assert ABLATIONS == [
        "lock-step", "request-reply", "confirmed", "free", "dropping", "blocking", "unplanned",
        "uncorrected", "stacks", "reverb",
    ]  # fmt: skip


def test_actors_that_ask_for_the_policy_have_one_on_a_gpu_too():
    assert make_config("pong-ppo", style="request-reply").inference == "actor-cpu"
    asked = make_config("pong-ppo", style="request-reply", inference="actor-gpu")
    assert asked.inference == "actor-gpu"


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_says_what_it_is_and_what_differs(name):
    style = STYLES[name]
    assert style.about.endswith(".")
    assert style.differences


def settings_that_differ(preset, style):
    plain, other = (make_config(preset, style=name).model_dump() for name in ("tianji", style))
    plain.pop("style"), other.pop("style")
    return {name: other[name] for name in other if other[name] != plain[name]}


@pytest.mark.parametrize(
    ("preset", "style", "expected"),
    [
        ("cartpole-ppo", "lock-step", {"max_lag": 0}),
        ("cartpole-ppo", "request-reply", {"inference": "actor-cpu"}),
        ("cartpole-dqn", "confirmed", {}),
        ("cartpole-dqn", "free", {"balance": "free"}),
        ("cartpole-ppo", "dropping", {"balance": "dropping"}),
        ("cartpole-impala", "blocking", {"balance": "blocking"}),
        ("catch-frames-ppo", "stacks", {"env_kwargs": {"whole_stacks": True}}),
    ],
)
def test_an_ablation_changes_only_its_mechanism(preset, style, expected):
    assert settings_that_differ(preset, style) == expected


@pytest.mark.parametrize(
    ("preset", "setting", "value"),
    [("cartpole-ppo", "decoupled", False), ("cartpole-impala", "correction", "none")],
)
def test_without_a_correction_only_that_differs_in_the_loss(preset, setting, value):
    differing = settings_that_differ(preset, "uncorrected")
    plain = make_config(preset).model_dump()["algorithm"]
    assert differing == {"algorithm": {**plain, setting: value}}


def test_without_a_plan_there_is_an_actor_for_each_core_and_nothing_is_pinned(monkeypatch):
    from tianji.config.machine import Machine
    from tianji.programs.ablations import unplanned

    monkeypatch.setattr(unplanned, "read_machine", lambda: Machine(tuple(range(6)), 1 << 30))
    config = make_config("cartpole-ppo", style="unplanned")
    assert config.num_envs % 6 and config.num_envs % 4 == 0
    assert (config.num_actors, config.actor_threads, config.learner_threads) == (4, 6, 6)
    assert (config.plan.source, config.plan.pin) == ("rule", False)
    assert make_config("cartpole-ppo", style="unplanned", num_actors=2).num_actors == 2


REFUSED = {
    "lock-step": [("rennala-nigt", {}, "gradients"), ("cartpole-ppo", {"max_lag": 2}, "no lag")],
    "request-reply": [
        ("rennala-nigt", {}, "gradients"),
        ("cartpole-ppo", {"inference": "served"}, "no policy to ask for"),
        ("cartpole-ppo", {"engine": "virtual"}, "shared memory"),
        ("cartpole-ppo", {"actor_hosts": 1}, "one machine"),
    ],
    "confirmed": [("rennala-nigt", {}, "gradients"), ("cartpole-ppo", {"engine": "ray"}, "memory")],
    "free": [
        ("cartpole-ppo", {}, "ppo.*replay store.*dqn or apex"),
        ("cartpole-dqn", {"lag_target": 1}, "neither its actors nor its learner wait"),
    ],
    "dropping": [
        ("cartpole-dqn", {}, "dqn.*queue.*ppo or impala"),
        ("cartpole-ppo", {"balance": "paced"}, "fixed size"),
    ],
    "blocking": [("cartpole-apex", {}, "queue")],
    "unplanned": [("cartpole-ppo", {"plan": {"pin": True}}, "not planned")],
    "stacks": [("catch-pixels-ppo", {}, "no stacks.*pong-ppo or catch-frames-ppo")],
    "uncorrected": [("cartpole-dqn", {}, "no correction"), ("rennala-nigt", {}, "no correction")],
}


@pytest.mark.parametrize(
    ("style", "preset", "given", "why"),
    [(style, *case) for style, cases in REFUSED.items() for case in cases],
)
def test_what_makes_no_sense_is_refused_with_the_reason(style, preset, given, why):
    with pytest.raises(UsageError, match=f"(?s)style is '{style}'.*{why}.*--style"):
        make_config(preset, style=style, **given)


@pytest.mark.parametrize(
    ("style", "wire", "sources", "targets"),
    [
        ("request-reply", REQUESTS, ("actor-0", "actor-1"), ("learner",)),
        ("confirmed", CONFIRMATIONS, ("buffer",), ("actor-0", "actor-1")),
    ],
)
def test_actors_that_wait_have_one_wire_more(style, wire, sources, targets):
    plain, asked = (
        make_config("cartpole-ppo", num_actors=2, style=name) for name in ("tianji", style)
    )
    program = program_for(asked, plan_for(asked))
    (more,) = set(program.wires) - set(program_for(plain, plan_for(plain)).wires)
    assert (more.name, more.sources, more.targets) == (wire, sources, targets)
    assert without_waits(program) == program_for(plain, plan_for(plain))
