"""Acting with the outputs of an inference server."""

from types import SimpleNamespace

from tianji.actor.served import ServedInference


def test_a_row_has_the_version_that_answered_and_not_the_newest():
    board = SimpleNamespace(version=lambda: 9)
    asker = SimpleNamespace(version=4)
    acting = SimpleNamespace(begin=None, act=None, finish=None, collect=lambda unroll, t: t)
    inference = ServedInference(acting, board, None, asker)
    for version in (4, 7):
        asker.version = version
        inference.collect({}, 0)
        assert inference.version == version
