"""An actor whose sender waits for the other end: it begins nothing, and shows why."""

from tests.unit.actor.rig import Rig
from tianji.channels.gauges import Activity, Gauge


def test_an_actor_that_waits_for_a_reply_asks_and_is_not_paced():
    rig = Rig()
    rig.publish(0)
    sender, is_waiting = rig.actor._sender, [False]
    sender.is_waiting = lambda: is_waiting[0]
    assert not rig.actor.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.PACED
    rig.grant()
    is_waiting[0] = True
    assert not rig.actor.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.ASKING
    assert rig.gauges[Gauge.STARTED_VERSION] == 0, "nothing is in work"
    is_waiting[0] = False
    stamp, _ = rig.finish_unroll()
    assert stamp.round == 0
