from __future__ import annotations

import json
import os
import re
import resource
import time
from pathlib import Path

import pytest

from tianji.cli.main import main
from tianji.display import stream
from tianji.envs.check import Finding
from tianji.observe import doctor


def levels(findings: list[Finding]) -> set[str]:
    return {finding.level for finding in findings}


def test_doctor_says_in_json_and_in_words_what_it_found(capfd: pytest.CaptureFixture[str]) -> None:
    exit_code = main(["doctor", "--json"])
    out, err = capfd.readouterr()
    report = json.loads(out)
    assert report["ok"] == (exit_code == 0)
    assert all(set(finding) == {"level", "what", "advice"} for finding in report["findings"])
    for words in (
        "Python 3",
        "torch",
        "cores usable",
        "GiB of memory",
        "/dev/shm",
        "memfd",
        "disk",
    ):
        assert words in err


def test_doctor_says_where_an_environment_hangs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def waits(name: str, _keywords: object) -> list[Finding]:
        seen, until_s = "", time.monotonic() + 60.0
        while (now_s := time.monotonic()) < until_s:
            while time.monotonic() < now_s + 0.05:
                pass  # here, and not in pytest's own code
            if "waits() of" in (seen := seen + capfd.readouterr().err):
                return [Finding("ok", seen)]
        return [Finding("error", f"nothing was told of {name}")]

    monkeypatch.setattr("tianji.envs.check.check_environment", waits)
    monkeypatch.setattr(stream, "SLOW_S", 0.001)
    assert main(["doctor", "--json", "--env", "mine:Slow"]) == 0
    said = json.loads(capfd.readouterr().out)["findings"][-1]["what"]
    assert re.search(r"Checking mine:Slow: no answer for \d+ s, in waits\(\) of test_doctor", said)


def test_doctor_checks_an_environment_when_asked(capfd: pytest.CaptureFixture[str]) -> None:
    machine = len(doctor.check_machine())
    line = "doctor --json --env CartPole-v1 --env-kwargs.sutton-barto-reward true"
    assert main(line.split()) == 0
    assert len(json.loads(capfd.readouterr().out)["findings"]) > machine


def test_doctor_names_the_version_that_it_checks(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def check(name: str, _keywords: object) -> list[Finding]:
        return [Finding("ok", f"{name} was checked.")]

    monkeypatch.setattr("tianji.observe.doctor.check_machine", list)
    monkeypatch.setattr("tianji.envs.check.check_environment", check)
    assert main(["doctor", "--env", "Acrobot"]) == 0
    told = capfd.readouterr().err.split()
    assert told[0] == "Acrobot-v1"
    assert "Acrobot-v1 was checked." in " ".join(told)


def test_an_error_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("torch", "no-such-package"))
    assert main(["doctor", "--json"]) == 1
    out, err = capfd.readouterr()
    assert json.loads(out)["ok"] is False
    assert "no-such-package is not installed." in err


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"box2d": ("no_such_module",)})
    (finding,) = doctor.check_extras()
    assert finding.advice == 'pip install "tianji[box2d]"'


def test_one_core_and_little_memory_are_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    small = doctor.read_machine().__class__(cores=(0,), memory_bytes=2**20)
    monkeypatch.setattr(doctor, "read_machine", lambda: small)
    assert levels([*doctor.check_cores(), *doctor.check_memory()]) == {"warn"}


def test_a_quota_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "cpu_quota", lambda: 1.5)
    (finding,) = doctor.check_cores()
    assert "the control group allows 1.5" in finding.what


def test_no_memfd_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> int:
        raise OSError("not here")

    monkeypatch.setattr(os, "memfd_create", refuse)
    assert "error" in levels(list(doctor.check_shared_memory()))


def test_too_little_shm_is_warned_about(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = doctor.shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: full)
    assert [f.level for f in doctor.check_shared_memory(tmp_path)] == ["ok", "warn"]
    assert [f.level for f in doctor.check_disk(tmp_path)] == ["warn"]


@pytest.mark.parametrize(("parent", "level"), [(1, "warn"), (77, "ok")])
def test_orphans_that_hold_segments_are_named(tmp_path: Path, parent: int, level: str) -> None:
    descriptors = tmp_path / "4242" / "fd"
    descriptors.mkdir(parents=True)
    (descriptors / "3").symlink_to("/memfd:tianji-slots (deleted)")
    (tmp_path / "4242" / "status").write_text(f"Name:\tpython\nPPid:\t{parent}\n")
    (finding,) = doctor.check_leftovers(tmp_path)
    assert finding.level == level
    assert ("4242" in finding.what) == (level == "warn")


def test_a_segment_of_our_own_is_seen() -> None:
    descriptors = Path("/proc/self/fd")
    descriptor = os.memfd_create("tianji-test")
    try:
        assert doctor._holds_segment(descriptors)
    finally:
        os.close(descriptor)


def test_low_limits_are_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    findings = list(doctor.check_limits())
    assert levels(findings) == {"warn"}
    assert findings[0].advice.startswith("ulimit -n")


def test_thread_variables_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (finding,) = doctor.check_thread_variables()
    assert "OMP_NUM_THREADS=7" in finding.what


@pytest.mark.parametrize(
    ("rollup", "words"),
    [
        ("Rss: 9 kB\nShmemPmdMapped:   2048 kB\n", "use huge pages"),
        ("Rss: 9 kB\nShmemPmdMapped:      0 kB\n", "uses small pages"),
        (None, "Cannot check whether"),
    ],
)
def test_whether_shared_memory_lies_on_huge_pages(tmp_path, rollup, words):
    path = tmp_path / "smaps_rollup"
    if rollup is not None:
        path.write_text(rollup)
    (finding,) = doctor.check_huge_pages(path)
    assert (finding.level, words in finding.what) == ("ok", True)


@pytest.mark.parametrize(
    ("has_gloo", "words"), [(True, "neither authenticated nor encrypted"), (False, "server")]
)
def test_what_an_all_reduce_would_mean_here(monkeypatch, has_gloo, words):
    monkeypatch.setattr("torch.distributed.is_gloo_available", lambda: has_gloo)
    (finding,) = doctor.check_collectives()
    assert finding.level == "ok"
    assert words in finding.advice


@pytest.mark.parametrize("installed", [set(), {"mpi4py"}, {"ray", "mpi4py"}])
def test_engines_for_several_hosts_come_with_a_warning(monkeypatch, installed):
    monkeypatch.setattr(
        doctor.importlib.util, "find_spec", lambda name: True if name in installed else None
    )
    findings = list(doctor.check_trust())
    assert len(findings) == bool(installed)
    for finding in findings:
        assert finding.level == "warn"
        assert finding.what.startswith("Ray and MPI" if "ray" in installed else "MPI can")
        assert "neither authenticated nor encrypted" in finding.what
        assert "network that you trust" in finding.advice


def test_doctor_compares_the_environments_of_one_run(capfd: pytest.CaptureFixture[str]) -> None:
    twins = "--env tianji.envs.twins:plain --env tianji.envs.twins:mirrored"
    assert main(f"doctor --json {twins} --env-kwargs.id CartPole-v1".split()) == 0
    assert "All 2 have the same spaces" in capfd.readouterr().err
    assert main(["doctor", "--json", "--env", "CartPole-v1", "--env", "Acrobot-v1"]) == 1
    last = json.loads(capfd.readouterr().out)["findings"][-1]
    assert last["level"] == "error" and "same spaces" in last["what"]
