import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import IMAGE, TREE, VECTOR
from tianji.envs.spaces import observation_leaves
from tianji.models.networks.encoder import (
    CHANNELS_LAST_ROWS,
    Encoder,
    ImageTorso,
    ResidualTorso,
)


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


@pytest.mark.parametrize("torso", [ImageTorso, ResidualTorso])
def test_frames_of_a_stack_are_channels(torso):
    """A stack of K images, with channels first or last, is one image with K times the channels."""
    images = torch.randint(256, (2, 4, 20, 18, 3), dtype=torch.uint8)
    as_channels = images.permute(0, 1, 4, 2, 3).reshape(2, 12, 20, 18)
    given = {
        (12, 20, 18): as_channels,
        (4, 20, 18, 3): images,
        (4, 3, 20, 18): images.permute(0, 1, 4, 2, 3),
    }
    features = []
    for shape, batch in given.items():
        torch.manual_seed(0)
        features.append(torso(shape, 1 / 255)(batch))
    torch.testing.assert_close(features[1], features[0])
    torch.testing.assert_close(features[2], features[0])


def test_an_image_without_channels_has_one():
    image = torch.randint(256, (2, 20, 18), dtype=torch.uint8)
    torch.manual_seed(0)
    plain = ImageTorso((20, 18), 1 / 255)
    torch.manual_seed(0)
    expected = ImageTorso((20, 18, 1), 1 / 255)
    torch.testing.assert_close(plain(image), expected(image[..., None]))


@pytest.mark.parametrize(
    ("shape", "dtype", "is_learned"),
    [
        ((84, 84), np.uint8, True),
        ((16, 20), np.uint8, True),
        ((15, 20), np.uint8, False),
        ((84, 84), np.float32, False),
        ((4, 4, 3), np.uint8, False),
        ((5, 5, 3), np.float32, True),
        ((4, 64, 64, 3), np.uint8, True),
        ((4, 64, 4, 3), np.uint8, False),
        ((2, 2, 5, 64, 64), np.uint8, False),
    ],
)
def test_what_is_an_image_goes_through_convolutions(shape, dtype, is_learned):
    assert encoder(spaces.Box(0, 1, shape, dtype)).is_learned is is_learned


@pytest.mark.parametrize(
    ("low", "high", "dtype", "scale"),
    [
        (0, 255, np.uint8, 1 / 255),
        (0, 10, np.uint8, 1 / 10),
        (0, 65535, np.uint16, 1 / 65535),
        (0.0, 1.0, np.float32, 1.0),
        (-2.0, 1.0, np.float32, 0.5),
        (-np.inf, np.inf, np.float32, 1.0),
        (0.0, 3e38, np.float32, 1.0),
    ],
)
def test_pixels_are_scaled_by_the_bounds_of_their_space(low, high, dtype, scale):
    made = encoder(spaces.Box(low, high, (6, 6, 1), dtype))
    images = torch.from_numpy(np.ones((2, 6, 6, 1), dtype))
    plain = ImageTorso((6, 6, 1), scale)
    plain.load_state_dict(made.torsos[0].state_dict())
    torch.testing.assert_close(made({"": images}), plain(images))


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
