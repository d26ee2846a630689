"""What the numbers of several seeds allow to claim."""

from tianji.figures.estimates import sooner


def test_fewer_than_five_seeds_give_no_verdict():
    assert sooner([1.0] * 4, [2.0] * 4) == "4 seeds each: no claim"
    assert sooner([1.0] * 5, [2.0] * 4) == "4 seeds each: no claim"
    assert sooner([1.0] * 5, [2.0] * 5).startswith("the first is sooner")
