import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import IMAGE, TREE, VECTOR
from tianji.envs.spaces import observation_leaves
from tianji.models.networks.encoder import CHANNELS_LAST_ROWS, Encoder, ImageTorso


def encoder(space, normalize=False):
    return Encoder(observation_leaves(space), normalize, clip=10.0)


def test_a_plain_vector_is_taken_as_it_is():
    made = encoder(VECTOR)
    x = torch.randn(5, 4)
    assert made({"": x}).data_ptr() == x.data_ptr()
    assert made.is_plain and not made.is_learned


def test_matrices_are_flattened():
    made = encoder(spaces.Box(-1, 1, (2, 3), np.float32))
    assert made({"": torch.arange(6.0).view(1, 2, 3)}).tolist() == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("space", "given", "expected"),
    [
        (spaces.Discrete(3, start=5), [6], [[0, 1, 0]]),
        (spaces.MultiDiscrete([2, 3]), [[1, 2]], [[0, 1, 0, 0, 1]]),
        (spaces.MultiBinary(3), [[1, 0, 1]], [[1, 0, 1]]),
        (spaces.Box(0, 255, (2,), np.uint8), [[255, 51]], [[1.0, 0.2]]),
    ],
)
def test_other_leaves_become_small_floats(space, given, expected):
    made = encoder(space)
    features = made({"": torch.tensor(given)})
    torch.testing.assert_close(features, torch.tensor(expected, dtype=torch.float32))
    assert made.num_features == features.shape[1]
    assert not made.is_plain


def test_the_leaves_of_a_tree_lie_side_by_side_in_its_order():
    made = encoder(TREE)
    obs = {
        "arm.angle": torch.ones(2, 3),
        "mode": torch.tensor([1, 3]),
        "camera": torch.zeros(2, 3, 12, 12, dtype=torch.uint8),
    }
    features = made(obs)
    assert features.shape == (2, 3 + 3 + 512) == (2, made.num_features)
    assert features[:, :6].tolist() == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 1]]
    assert made.is_learned


def test_channels_first_and_last_give_the_same_features():
    torch.manual_seed(0)
    last = ImageTorso((12, 10, 3), 1 / 255)
    torch.manual_seed(0)
    first = ImageTorso((3, 12, 10), 1 / 255)
    images = torch.randint(256, (2, 12, 10, 3), dtype=torch.uint8)
    torch.testing.assert_close(first(images.permute(0, 3, 1, 2)), last(images))


@pytest.mark.parametrize(
    ("shape", "kernel"),
    [((84, 84, 4), 8), ((4, 84, 84), 8), ((36, 36, 1), 8), ((35, 60, 3), 3), ((5, 5, 2), 3)],
)
def test_small_images_get_small_kernels(shape, kernel):
    torso = ImageTorso(shape, 1 / 255)
    assert torso.convolutions[0].kernel_size == (kernel, kernel)
    assert torso(torch.zeros(2, *shape, dtype=torch.uint8)).shape == (2, 512)


def test_bytes_are_scaled_to_one():
    torch.manual_seed(0)
    scaled, plain = ImageTorso((12, 12, 3), 1 / 255), ImageTorso((12, 12, 3), 1.0)
    plain.load_state_dict(scaled.state_dict())
    images = torch.randint(256, (2, 12, 12, 3), dtype=torch.uint8)
    torch.testing.assert_close(scaled(images), plain(images.float() / 255))


def test_small_tables_of_three_axes_are_numbers_and_not_images():
    assert encoder(spaces.Box(0, 1, (4, 4, 2), np.float32)).num_features == 32
    assert encoder(IMAGE).num_features == 512


def test_only_numbers_are_normalised():
    space = spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32), "m": spaces.Discrete(2)})
    made = encoder(space, normalize=True)
    numbers, choices = made.normalizer.changes_V.sum(), (~made.normalizer.changes_V).sum()
    assert (numbers, choices) == (2, 2)
    assert encoder(IMAGE, normalize=True).normalizer is None


def test_an_export_fixes_no_number_of_images():
    torso = ImageTorso((4, 84, 84), 1.0 / 255.0)
    rows = torch.export.Dim("rows", min=1)
    images = torch.randint(256, (2, 4, 84, 84), dtype=torch.uint8)
    exported = torch.export.export(torso, (images,), dynamic_shapes=({0: rows},)).module()
    for num_rows in (1, 3, CHANNELS_LAST_ROWS):
        some = torch.randint(256, (num_rows, 4, 84, 84), dtype=torch.uint8)
        torch.testing.assert_close(exported(some), torso(some), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 12, 12), (12, 12, 4)])
def test_images_that_are_used_several_times_have_their_channels_last(shape):
    made = encoder(spaces.Box(0, 255, shape, np.uint8))
    obs = {"": torch.randint(256, (CHANNELS_LAST_ROWS, *shape), dtype=torch.uint8)}
    arranged = made.arranged(obs)
    assert torch.equal(arranged[""], obs[""])
    channels = arranged[""].stride(1 + shape.index(4))
    assert channels == 1
    torch.testing.assert_close(made(arranged), made(obs))
    few = {"": obs[""][:8]}
    assert made.arranged(few)[""].is_contiguous()
