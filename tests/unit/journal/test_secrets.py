"""No secret is ever in a journal, whatever it is handed, and what is needed to restore always is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.live.client.secret import Secret
from console.journal.journal import Journal
from console.redaction import redact_arguments
from tests.unit.journal.runs import CLUSTER, Clock, journal, run

HIDDEN = "hunter2-Xk9"


class Login(NamedTuple):
    user: str
    password: str


@dataclass(frozen=True)
class Listener:
    host: str
    sasl_jaas_config: str


@pytest.mark.parametrize(
    "detail",
    [
        {"password": HIDDEN},
        {"ssl.keystore.password": HIDDEN},
        {"sasl.jaas.config": f'org.apache…PlainLoginModule required username="a" password="{HIDDEN}";'},
        {"note": f'PlainLoginModule required username="a" password="{HIDDEN}";'},
        {"note": f"sasl.password={HIDDEN}"},
        {"note": f"Authorization: Bearer {HIDDEN}abcdefgh"},
        {"note": f"http://ann:{HIDDEN}@proxy:3128"},
        {"note": f"-----BEGIN PRIVATE KEY-----\n{HIDDEN}\n-----END PRIVATE KEY-----"},
        {"settings": {"a": [{"client_secret": {"value": HIDDEN}}]}},
        {"who": Login("ann", HIDDEN)},
        {"listeners": (Listener("h", HIDDEN),)},
        {"value": Secret(HIDDEN)},
        {"raw": HIDDEN.encode()},
        {"token": [HIDDEN]},
        {"error": ValueError(f"login failed: password={HIDDEN}")},
    ],
)
def test_a_secret_in_what_is_recorded_stays_out(tmp_path: Path, detail: dict[str, object]) -> None:
    with journal(tmp_path) as written:
        entry = written.before("add voter", detail)
        written.after(entry, detail)
        written.settle(str(detail.get("note", "")))
    text = written.path.read_text()
    assert HIDDEN not in text
    assert ",".join(map(str, HIDDEN.encode())) not in text
    assert '"action":"add voter"' in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["ktriage", "--password", HIDDEN],
        ["ktriage", f"--password={HIDDEN}"],
        ["ktriage", "--property", f"sasl.jaas.config=x password='{HIDDEN}'"],
        ["ktriage", "--ssl-key-password", HIDDEN, "apply"],
        ["ktriage", "watch", "--webhook", f"https://chat.example/{HIDDEN}"],
        ["ktriage", "watch", f"--webhook=https://chat.example/{HIDDEN}"],
        ["ktriage", "--bootstrap-server", f"sasl://ann:{HIDDEN}@broker:9092"],
    ],
)
def test_a_secret_on_the_command_line_stays_out_of_file_and_lock(
    tmp_path: Path, arguments: list[str]
) -> None:
    with Journal.open(CLUSTER, run("run-1", *arguments), Clock(), tmp_path) as written:
        for path in written.path.parent.iterdir():
            assert HIDDEN not in path.read_text()


def test_a_secret_in_the_reason_stays_out(tmp_path: Path) -> None:
    told = run(reason=f"INC-7, logged in with password: {HIDDEN}")
    with Journal.open(CLUSTER, told, Clock(), tmp_path) as written:
        assert HIDDEN not in written.path.read_text()
        assert "INC-7" in written.path.read_text()


def test_an_ordinary_command_line_is_kept_word_for_word() -> None:
    ordinary = ["ktriage", "apply", "plan.json", "--command-config", "client.properties", "--reason", "INC 7"]
    assert redact_arguments(ordinary) == ordinary


_keys = st.sampled_from(
    ["password", "ssl.key.password", "SASL_JAAS_CONFIG", "accessToken", "private-key", "clientSecret"]
)
_nested = st.recursive(
    st.just(HIDDEN) | st.just(Secret(HIDDEN)) | st.just(HIDDEN.encode()),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.dictionaries(_keys, _nested, min_size=1), st.lists(_keys, max_size=3))
def test_nothing_under_a_name_that_tells_of_a_secret_gets_out(
    tmp_path_factory: pytest.TempPathFactory, secrets: dict[str, object], path: list[str]
) -> None:
    detail: dict[str, object] = {"config": [secrets]}
    with journal(tmp_path_factory.mktemp("state")) as written:
        written.after(written.before("x", detail), {"deeper": {"here": detail}})
    assert HIDDEN not in written.path.read_text()
