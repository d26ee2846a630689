"""The keys of a run are made anew, held in memory, and never shown."""

import ssl

import pytest

from tianji.errors import UsageError
from tianji.gateways.links.keys import LinkKeys


@pytest.fixture(scope="module")
def keys():
    return LinkKeys.make()


def test_every_run_has_its_own(keys):
    other = LinkKeys.make()
    assert other.secret != keys.secret and other.pem != keys.pem
    assert len(keys.secret) == 32


def test_nothing_of_them_is_printed(keys):
    for text in (repr(keys), str(keys), f"{keys}"):
        assert keys.secret.hex() not in text and "PRIVATE" not in text


def test_they_can_be_handed_to_another_host(keys):
    assert LinkKeys.from_text(keys.to_text()) == keys
    clear = LinkKeys.make(is_encrypted=False)
    assert LinkKeys.from_text(clear.to_text()) == clear
    assert clear.pem == ""


def test_only_the_newest_protocol_and_only_this_certificate_are_accepted(keys):
    for context in (keys.listening(), keys.connecting()):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert len(context.get_ca_certs()) == 1


def test_without_openssl_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="Install the package openssl"):
        LinkKeys.make()
    assert LinkKeys.make(is_encrypted=False).secret
