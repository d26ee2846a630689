"""Where an exported policy may be written; refused before anything is loaded."""

import pytest

from tianji.errors import UsageError
from tianji.trained.export import export_run


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(UsageError, match="must be the path of a file"):
        export_run(tmp_path / "no-run", tmp_path)


def test_a_file_is_not_a_folder_to_write_into(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="must be the path of a file"):
        export_run(tmp_path / "no-run", tmp_path / "file" / "policy.onnx")
