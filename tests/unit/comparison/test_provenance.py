"""What runs were made by."""

import subprocess

from tianji.comparison import provenance as origins
from tianji.comparison.provenance import Provenance, combine, package_commit


def test_runs_of_several_origins_name_each_value_once():
    machine = {"cpu": "one", "cores": 2}
    old = Provenance(machine=machine, commit="a", versions={"torch": "2.6", "numpy": "2.2"})
    new = Provenance(machine=machine, commit="a", versions={"torch": "2.7", "numpy": "2.2"})
    both = {"torch": "2.6, 2.7", "numpy": "2.2"}
    assert combine([old, new, old]) == {"machine": machine, "commit": "a", "versions": both}


def test_outside_of_a_checkout_there_is_no_commit(monkeypatch):
    def fail(*_words, **_options):
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setattr(origins.subprocess, "run", fail)
    assert package_commit() == "installed"


def test_a_change_since_the_commit_is_marked(monkeypatch):
    answers = {"ls-files": "__init__.py", "status": " M a.py", "rev-parse": "abc123"}

    def git(words, **_options):
        return subprocess.CompletedProcess(words, 0, stdout=f"{answers[words[3]]}\n")

    monkeypatch.setattr(origins.subprocess, "run", git)
    assert package_commit() == "abc123+"
    answers["status"] = ""
    assert package_commit() == "abc123"
