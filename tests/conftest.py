"""What holds for every test: profiles that were kept on this machine are not seen, nor left."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        if "MPLCONFIGDIR" not in os.environ:  # matplotlib's list of fonts takes seconds to make
            patch.setenv("MPLCONFIGDIR", str(cache / "matplotlib"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
