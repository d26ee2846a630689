"""An actor that takes over from a dead one touches nothing that was granted to that one."""

from tests.unit.actor.rig import Rig
from tianji.channels.orders import Order


def test_a_successor_waits_until_its_lane_was_reset():
    rig = Rig(length=3)
    rig.publish(0)
    rig.grant(0)
    rig.rows.supervision[Order.RESETS] = 1
    assert not rig.actor.tick(), "it took a grant of the dead actor"
    rig.stream.reset_lane(0)
    rig.orders[Order.RESETS] = 1
    assert not rig.actor.tick()
    rig.grant(0)
    assert rig.actor.tick()
