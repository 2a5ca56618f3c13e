"""Addresses as operators write them."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from backends.live.client.addresses import Address, parse_address, parse_addresses, resolve


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("broker:9093", Address("broker", 9093)),
        (" broker ", Address("broker", 9092)),
        ("10.0.0.1:1", Address("10.0.0.1", 1)),
        ("[::1]:9093", Address("::1", 9093)),
        ("[fe80::1]", Address("fe80::1", 9092)),
    ],
)
def test_an_address_is_read_and_written(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text", ["", ":1", "a:", "a:b", "a:0", "a:65536", "a:-1", "::1", "[::1", "[::1]x", "a b:1", "a:²"]
)
def test_what_is_no_address_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        parse_address(text)


def test_a_list_loses_doubles_and_is_not_empty() -> None:
    assert parse_addresses("a:1, b:2,,a:1") == (Address("a", 1), Address("b", 2))
    with pytest.raises(ValueError, match="no address given"):
        parse_addresses(" , ")


async def test_an_ip_address_is_not_looked_up() -> None:
    assert await resolve(Address("127.0.0.1", 1)) == ("127.0.0.1",)
    assert await resolve(Address("::1", 1)) == ("::1",)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid", "..", "\u2024"])
async def test_a_name_that_is_none_does_not_resolve(host: str) -> None:
    with pytest.raises(socket.gaierror):
        await resolve(Address(host, 1))


async def test_a_resolver_that_hangs_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    # A resolver cannot be made to hang here; the threads that wait for one are what is tried.
    release = threading.Event()

    def hang(*_args: object, **_kwargs: object) -> list[object]:
        release.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    asked = [asyncio.ensure_future(resolve(Address(f"host-{i}", 1))) for i in range(40)]
    done, waiting = await asyncio.wait(asked, timeout=0.05)
    assert (len(done), len(waiting)) == (0, 40)
    assert await asyncio.to_thread(lambda: "free") == "free"
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    threads = [t for t in threading.enumerate() if t.name.startswith("resolve host-")]
    assert threads
    assert all(t.daemon for t in threads)
    release.set()


async def test_thousands_of_names_are_resolved_by_a_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    at_work: list[int] = []

    def slow(*_args: object, **_kwargs: object) -> list[object]:
        at_work.append(1)
        release.wait(60)
        return [(0, 0, 0, "", ("10.0.0.1", 1))]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    before = threading.active_count()
    waiting = [asyncio.create_task(resolve(Address(f"broker-{n}.invalid", 1))) for n in range(2_000)]
    await asyncio.sleep(0)
    left_behind = waiting[-500:]
    for task in left_behind:
        task.cancel()
    assert threading.active_count() - before <= 32
    release.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert found[:1_500] == [("10.0.0.1",)] * 1_500
    assert len(at_work) == 1_500  # a name for which nobody waits any more is not looked up
