"""What the system says of the processor."""

import pytest

from tianji.devices import processor

TOLD = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9554\n\nprocessor\t: 1\n"


@pytest.mark.parametrize(
    ("told", "name", "vendor"),
    [(TOLD, "AMD EPYC 9554", "AuthenticAMD"), ("CPU part\t: 0xd0c\n", "an unnamed one", "")],
)
def test_name_and_vendor(monkeypatch, tmp_path, told, name, vendor):
    (tmp_path / "cpuinfo").write_text(told)
    monkeypatch.setattr(processor, "FACTS", tmp_path / "cpuinfo")
    monkeypatch.setattr("platform.processor", lambda: "an unnamed one")
    processor.vendor.cache_clear()
    assert (processor.processor(), processor.vendor()) == (name, vendor)
    processor.vendor.cache_clear()
