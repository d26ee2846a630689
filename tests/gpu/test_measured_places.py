"""`tianji plan` on a GPU measures where inference is fastest, and `tianji train` uses that."""

import json

import pytest
import torch

from tianji.cli.main import main

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SIZES = ["--num-envs", "64"]
"""The same for plan and run: they are part of what a choice is kept under."""


def test_the_fastest_place_is_measured_and_used(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["plan", "catch-pixels-ppo", *SIZES, "--json"]) == 0
    planned = json.loads(capfd.readouterr().out)
    rates = {place["inference"]: place["steps_per_s"] for place in planned["places"]}
    assert set(rates) == {"served", "actor-gpu", "actor-cpu"}
    assert all(rate > 0 for rate in rates.values()), planned["places"]
    assert planned["device"] == "cuda:0"
    assert planned["inference"] == max(rates, key=rates.get)
    assert planned["predicted"]["received"] == max(rates.values())
    limits = ["--max-env-steps", "60000", "--target-return", "none", "--display", "off"]
    assert main(["train", "catch-pixels-ppo", *SIZES, *limits, "--run", "it", "--json"]) == 0
    summary = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert (summary["device"], summary["inference"]) == ("cuda:0", planned["inference"])
    assert summary["planning_s"] < planned["planning_s"] / 4, "nothing was measured again"
    events = (tmp_path / "runs" / "it" / "events.jsonl").read_text()
    assert f"Inference: {planned['inference']} " in events
