"""The age of items that were used."""

from tianji.buffer.stores.age import AgeGauge


def test_the_mean_starts_again_and_stays_if_nothing_was_added():
    gauge = AgeGauge()
    assert gauge.read() == 0.0
    gauge.add(6, 3)
    gauge.add(4, 2)
    assert gauge.read() == 2.0
    assert gauge.read() == 2.0
    gauge.add(5, 1)
    assert gauge.read() == 5.0
