"""`tianji status` beside a real run: while it goes on, and after it was killed."""

import json

from tests.system.commands import (
    FOREVER,
    SMALL,
    Command,
    assert_nothing_is_left,
    tianji_processes,
)
from tianji.checkpoint.load import read_checkpoint


def test_a_run_is_told_while_it_goes_on_and_after_its_supervisor_was_killed(tmp_path):
    run = Command(tmp_path, "train", *SMALL, *FOREVER, "--num-actors", "1")
    run.wait_for_version(20)
    out, seen = Command(tmp_path, "status", "run", "--json").process.communicate()
    report = json.loads(out)
    assert report["state"] == "running" and report["gauges"]["version"] >= 20
    assert report["critical_path"] is not None and report["explanation"][0] in " ".join(
        seen.split()
    )
    assert report["gauges"]["waited_s"]["actor-0"].keys() == {"grant", "parked", "core"}
    assert report["gauges"]["core_s"]["learner"] > 0

    assert len(tianji_processes(tmp_path)) == 2
    run.process.kill()
    run.process.communicate()
    assert_nothing_is_left(tmp_path)
    for path in (run.run_dir / "checkpoints").glob("v*"):
        read_checkpoint(path)
    out, _ = Command(tmp_path, "status", "run", "--json").process.communicate()
    assert json.loads(out)["state"] == "lost"
