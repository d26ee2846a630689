"""Memories against PyTorch's cells and literal loops: states, resets and gradients."""

import numpy as np
import pytest
import torch
from torch import nn

from tianji.models.networks.memory import GRU, LSTM, MEMORIES

ROWS, ENVS, FEATURES, SIZE = 7, 3, 4, 5


def make(kind, seed=0):
    torch.manual_seed(seed)
    memory = MEMORIES[kind](FEATURES, SIZE)
    for parameter in memory.parameters():  # biases too
        nn.init.normal_(parameter, std=0.5)
    features_TNF = torch.randn(ROWS, ENVS, FEATURES)
    state_NS = torch.randn(ENVS, memory.state_size)
    resets_TN = torch.rand(ROWS, ENVS) < 0.3
    assert resets_TN[1:].any() and not resets_TN.all()
    return memory, features_TNF, state_NS, resets_TN


def gates(blocks, *order):
    """Put the gates of a parameter in another order."""
    parts = blocks.chunk(len(order))
    return torch.cat([parts[index] for index in order])


def torch_cell(memory):
    """PyTorch's own cell with the same parameters; its gates are r, z, n and i, f, g, o."""
    none = torch.zeros_like(memory.bias)
    if isinstance(memory, GRU):
        order = 1, 0, 2
        hidden = torch.cat([none[: 2 * SIZE], memory.bias_recalled])
    else:
        order = 1, 0, 3, 2
        hidden = none
    weights = [gates(w, *order) for w in (memory.weight_input, memory.weight_state)]
    biases = [gates(memory.bias, *order), hidden]
    return weights + biases


def literal_states(memory, features_TNF, state_NS, resets_TN):
    """Step by step and environment by environment, with PyTorch's cells."""
    parameters = torch_cell(memory)
    states = torch.zeros(ROWS, ENVS, memory.state_size)
    for n in range(ENVS):
        state = state_NS[n]
        for t in range(ROWS):
            state = torch.zeros_like(state) if resets_TN[t, n] else state
            if isinstance(memory, LSTM):
                h, c = (part[None] for part in state.chunk(2))
                state = torch.cat(torch.lstm_cell(features_TNF[t, n][None], (h, c), *parameters), 1)
            else:
                state = torch.gru_cell(features_TNF[t, n][None], state[None], *parameters)
            state = state[0]
            states[t, n] = state
    return states


@pytest.mark.parametrize("kind", MEMORIES)
def test_states_are_those_of_pytorchs_cells(kind):
    memory, *given = make(kind)
    torch.testing.assert_close(memory(*given), literal_states(memory, *given))


@pytest.mark.parametrize("kind", MEMORIES)
def test_gradients_are_those_of_a_literal_loop(kind):
    memory, features_TNF, state_NS, resets_TN = make(kind)
    weight = torch.randn(ROWS, ENVS, memory.state_size)
    inputs = [features_TNF.requires_grad_(), state_NS.requires_grad_(), *memory.parameters()]
    gradients = [
        torch.autograd.grad((states.tanh() * weight).sum(), inputs)
        for states in (
            memory(features_TNF, state_NS, resets_TN),
            literal_states(memory, features_TNF, state_NS, resets_TN),
        )
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("kind", MEMORIES)
def test_a_sequence_is_its_steps(kind):
    memory, features_TNF, state_NS, resets_TN = make(kind)
    with torch.no_grad():
        whole_TNS = memory(features_TNF, state_NS, resets_TN)
        for t in range(ROWS):
            row = slice(t, t + 1)
            (state_NS,) = memory(features_TNF[row], state_NS, resets_TN[row])
            np.testing.assert_allclose(state_NS, whole_TNS[t], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", MEMORIES)
def test_nothing_from_before_a_reset_is_seen_after_it(kind):
    memory, features_TNF, state_NS, _ = make(kind)
    resets_TN = torch.zeros(ROWS, ENVS, dtype=torch.bool)
    resets_TN[4] = True
    other = features_TNF.clone()
    other[:4] += 1.0
    one, two = (memory(x, s, resets_TN) for x, s in ((features_TNF, state_NS), (other, -state_NS)))
    assert torch.equal(one[4:], two[4:]) and not torch.allclose(one[:4], two[:4])


@pytest.mark.parametrize("kind", MEMORIES)
def test_a_new_memory_keeps_most_of_its_state(kind):
    """The gates that keep it begin at sigmoid(1) = 0.73."""
    torch.manual_seed(0)
    memory = MEMORIES[kind](FEATURES, SIZE)
    none = torch.zeros(1, 1, FEATURES), torch.zeros(1, 1, dtype=torch.bool)
    state_NS = torch.zeros(1, memory.state_size)
    state_NS[:, -1] = 0.1
    (after_NS,) = memory(none[0], state_NS, none[1])
    assert 0.05 < float(after_NS.detach()[0, -1]) < 0.1
