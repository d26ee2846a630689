"""Advice for settings that do not fit names only what the style of the run allows."""

import re
import shlex

import pytest

from tests.contracts.test_style import MACHINE
from tianji.config.overrides import resolve_tokens
from tianji.envs.build import probe
from tianji.errors import UsageError
from tianji.planning.groups import check_groups
from tianji.planning.resolve.resolve import resolve

MISTAKES = [
    "cartpole-ppo --style impala --max-lag 0",
    "cartpole-ppo --style impala --lag-target 1",
    "cartpole-ppo --style impala --limiter.min-size 64",
    "cartpole-ppo --style impala --inference actor-gpu",
    "cartpole-ppo --style impala --plan.actors-per-worker 2",
    "cartpole-ppo --style seed --engine inline",
    "cartpole-ppo --style seed --model.memory gru",
    "cartpole-ppo --style blocking --max-lag 0",
    "cartpole-ppo --style sample-factory --engine inline",
    "cartpole-ppo --style serial --queue-size 64",
    "cartpole-ppo --style serial --plan.actors-per-worker 2",
    "cartpole-ppo --style reverb --max-lag 0",
    "cartpole-ppo --style reverb --pool-batches 2",
    "cartpole-ppo --style lock-step --actor-hosts 1",
    "cartpole-ppo --style gala --engine virtual",
    "cartpole-a3c --style reverb",
    "cartpole-ppo --style a3c --device cuda",
    "cartpole-ppo --style a3c --inference served",
    "cartpole-ppo --style a3c --model.memory gru",
    "cartpole-dqn --style apex --max-lag 0",
    "cartpole-dqn --style apex --queue-size 8",
    "cartpole-dqn --style gorila --model.memory lstm",
    "rennala-nigt --style serial --times.law equal",
]


def plan(line):
    config = resolve_tokens(shlex.split(line)).config
    check_groups(config)
    return resolve(config, MACHINE, probe(config.env, config.env_kwargs))


def advised(line):
    """The mistake and its advice, and the settings that this names, as one would type them."""
    with pytest.raises(UsageError) as error:
        plan(line)
    told = str(error.value)
    assert "style is '" not in told, "the settings alone do not fit; the style has no objection"
    ways = told.rpartition("Use ")[2].split(", ")
    options = (" ".join(re.findall(r"--\S+ [^\s.]+", way)) for way in ways)
    return told, list(filter(None, options))


@pytest.mark.parametrize("line", MISTAKES)
def test_every_setting_that_is_advised_is_one_that_the_style_takes(line):
    told, ways = advised(line)
    for way in ways:
        resolve_tokens(shlex.split(f"{line} {way}"))
    assert ways or "another --style" in told or "leave" in told


@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("cartpole-ppo --style impala --max-lag 0", "--engine inline"),
        ("cartpole-ppo --style impala --max-lag 0", "--max-lag 1"),
        ("cartpole-ppo --style seed --engine inline", "--engine local"),
        ("cartpole-dqn --style apex --max-lag 0", "--max-lag 1"),
        ("cartpole-ppo --style gala --engine virtual", "--engine local"),
    ],
)
def test_what_is_left_of_the_advice_helps(line, way):
    assert way in advised(line)[1]
    plan(f"{line} {way}")


def test_where_the_style_refuses_a_way_out_another_style_is_one():
    told, ways = advised("cartpole-ppo --style reverb --max-lag 0")
    assert ways == ["--max-lag 1", "--engine inline"] and "another --style" in told
    assert "another --style" not in advised("cartpole-ppo --balance limiter --max-lag 0")[0]
