"""sasl.jaas.config is read as Kafka's JaasConfig reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.live.client.client_config import JaasError, parse_jaas

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_a_login_module_with_its_options() -> None:
    module = parse_jaas(f'{SCRAM} required username="alice" password="p w;=\\"\\\\\\101";')
    assert module.name == "ScramLoginModule"
    assert (module.get("username"), module.get("password")) == ("alice", 'p w;="\\A')
    assert module.get("nothing") is None


@pytest.mark.parametrize(
    "text",
    [
        "M required a=b;",
        "M REQUIRED a = b ;",
        "M required\n  a='b'\n;",
        "M required // why\n a=b /* and\n how */;",
    ],
)
def test_its_many_spellings(text: str) -> None:
    assert parse_jaas(text).get("a") == "b"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "expected a login module and a control flag"),
        ("M;", "expected a login module and a control flag"),
        ("M sometimes a=b;", "expected a login module and a control flag"),
        ('M required password="hunter2"', "does not end with a semicolon"),
        ('M required password "hunter2";', 'expected option="value"'),
        ("M required password=;", "option number 1 has no value"),
        ('M required password="hunter2', "position 21 is out of place"),
        ("M required password=123;", "values go into double quotes"),
        ('M required a="hunter2"; M required b="c";', "more than one login module"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_of_it_shown(text: str, what: str) -> None:
    with pytest.raises(JaasError, match=what) as caught:
        parse_jaas(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.long
@given(
    st.dictionaries(
        st.from_regex(r"[a-z_$][a-z0-9_.$-]{0,8}", fullmatch=True), st.text(max_size=20), max_size=4
    )
)
def test_every_quoted_value_comes_back(options: dict[str, str]) -> None:
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
    quoted = " ".join(f'{name}="{value.translate(escapes)}"' for name, value in options.items())
    module = parse_jaas(f"{SCRAM} required {quoted};")
    assert {name: value.reveal() for name, value in module.options.items()} == options
    assert not any(value in repr(module) for value in options.values() if len(value) > 12)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jaas(text)
    except JaasError as error:
        assert "\n" not in str(error)
