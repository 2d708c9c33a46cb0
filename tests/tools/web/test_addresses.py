"""Which addresses are public, in every form that an address can be written in."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.tools.web import addresses
from keryx.tools.web.addresses import Exceptions, check_exception, is_public, literal

pytestmark = pytest.mark.promise("kit.1")


def words_of(text: str) -> list[str]:
    return text.split()


PRIVATE = words_of(
    """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 100.100.100.200 127.0.0.1
127.255.255.254 168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1
192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1
239.255.255.250 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1
::ffff:8.8.8.8 ::ffff:7f00:1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1
64:ff9b:1::8.8.8.8 100::1 100:0:0:1::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:20::1
2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1
fe80::1%eth0 fe80::1%1 2606:4700::1111%eth0 fec0::1 ff02::1 ff0e::1 1::1 4000::1 localhost 1.2.3
1.2.3.4.5 01.2.3.4 1.1.1.1/8
"""
)
PUBLIC = words_of(
    """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1
172.15.255.255 172.32.0.1 192.167.1.1 198.17.1.1 198.20.1.1 223.255.255.255 2606:4700::1111
2a00:1450:4001:82f::200e 2001:4860:4860::8888 64:ff9b::8.8.8.8
"""
)


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_not_everybody_reaches_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_ordinary_address_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
@pytest.mark.promise("kit.12")
def test_an_ipv6_form_of_an_address_is_public_only_if_the_address_is(
    inner: ipaddress.IPv4Address,
) -> None:
    number = int(inner)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    compatible = ipaddress.IPv6Address(number)
    six_to_four = ipaddress.IPv6Address((0x2002 << 112) | (number << 80))
    teredo = ipaddress.IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF))
    for address in (mapped, compatible, six_to_four, teredo):
        assert not is_public(str(address))
    nat64 = ipaddress.IPv6Address((0x64FF9B << 96) | number)
    assert is_public(str(nat64)) == is_public(str(inner))


@given(st.ip_addresses())
def test_what_python_calls_private_is_not_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if address.is_private or address.is_multicast or address.is_reserved or address.is_link_local:
        in_nat64 = str(address).startswith("64:ff9b::")
        assert not is_public(str(address)) or in_nat64


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[::1]", "::1"),
        ("::1", "::1"),
    ],
)
def test_a_host_of_numbers_is_the_address_that_the_system_reads(host: str, address: str) -> None:
    assert str(literal(host)) == address


@pytest.mark.parametrize("host", ["example.org", "localhost", "", "[fe80::1%25eth0]", "a.1b", "\0"])
def test_a_name_is_no_address(host: str) -> None:
    assert literal(host) is None


@given(st.text())
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert not is_public(text) or addresses.parse(text) is not None
    literal(text)


def test_an_exception_covers_its_host_and_port_and_nothing_else() -> None:
    exceptions = Exceptions(["127.0.0.1:8080", "Intranet.Example", "[::1]:90", "fd00::1"])
    assert exceptions.cover("127.0.0.1", 8080)
    assert not exceptions.cover("127.0.0.1", 80)
    assert exceptions.cover("intranet.example.", 443)
    assert not exceptions.cover("other.intranet.example", 443)
    assert exceptions.cover("0:0:0:0:0:0:0:1", 90)
    assert not exceptions.cover("::1", 91)
    assert exceptions.cover("fd00::1", 1)


@pytest.mark.parametrize("entry", ["", "http://a/", "a b", "a:99999", "a:0"])
def test_an_exception_that_is_no_host_is_refused_with_an_example(entry: str) -> None:
    with pytest.raises(ValueError, match="intranet"):
        check_exception(entry)
