"""Every module of the benchmarks can be imported, so that none rots unseen."""

import importlib
import pkgutil

import pytest

import benchmarks

MODULES = [
    module.name
    for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
    if not {"peers", "sb3_run", "sb3_returns"} & set(module.name.split("."))
]
"""All but those that run with the packages of the peers."""


@pytest.mark.parametrize("name", MODULES)
def test_every_module_finds_what_it_imports(name):
    importlib.import_module(name)
