import pytest

from tianji.models.optimizers import linear, linear_by_steps


@pytest.mark.parametrize(
    ("share", "expected"), [(-1.0, 2.0), (0.0, 2.0), (0.25, 1.5), (1.0, 0.0), (7.0, 0.0)]
)
def test_linear_goes_from_start_to_final_and_stays_there(share, expected):
    assert linear(2.0, 0.0, share) == expected


def test_without_a_final_value_it_is_constant():
    assert linear(2.0, None, 0.7) == 2.0


@pytest.mark.parametrize(("step", "expected"), [(0, 1.0), (50, 0.55), (100, 0.1), (10**9, 0.1)])
def test_by_steps_ends_at_num_steps(step, expected):
    assert linear_by_steps(1.0, 0.1, step, 100) == pytest.approx(expected)
