"""Checkpoints that cross between hosts, and the mark by which an agent knows the run folder."""

import pytest

from tianji.engines.agents.files import mark, pack, sees, unpack
from tianji.errors import CheckpointError


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "v00000007"
    made.mkdir()
    (made / "weights.safetensors").write_bytes(bytes(range(256)) * 5)
    (made / "manifest.json").write_bytes(b"{}")
    (made / "empty").write_bytes(b"")
    return made


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_arrives_as_it_was(folder, tmp_path):
    there = tmp_path / "other" / "checkpoints" / folder.name
    unpack(pack(folder), there)
    assert contents(there) == contents(folder)
    assert [path.name for path in there.parent.iterdir()] == [folder.name], "no parts are left"


def test_one_that_is_there_stays(folder, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    unpack(pack(folder), there)
    assert contents(there) == {}


def test_one_that_is_cut_off_is_refused(folder, tmp_path):
    with pytest.raises(CheckpointError, match="cut off"):
        unpack(pack(folder)[:-1], tmp_path / "there")
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("name", ["../weights", "/etc/weights", "..", "a/b"])
def test_names_outside_are_refused(name, folder, tmp_path):
    data = pack(folder).replace(b'"empty": 0', f'"{name}": 0'.encode())
    length = int.from_bytes(data[:8], "little") + len(name) - len("empty")
    with pytest.raises(CheckpointError, match="outside"):
        unpack(length.to_bytes(8, "little") + data[8:], tmp_path / "x" / "there")
    assert not (tmp_path / "x" / "there").exists()


def test_an_agent_knows_the_folder_of_its_head(tmp_path):
    text = mark(tmp_path)
    assert sees(tmp_path, text)
    assert not sees(tmp_path, text[::-1])
    assert not sees(tmp_path / "elsewhere", text)
    assert mark(tmp_path) != text, "a copy of an earlier session is not the folder"
