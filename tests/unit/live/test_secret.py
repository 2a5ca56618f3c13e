"""A secret shows itself nowhere but where it is revealed."""

from __future__ import annotations

import copy
import pickle
import traceback
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.live.client.secret import Secret


@dataclass(frozen=True)
class Holder:
    password: Secret


@given(st.text(min_size=5))
def test_it_is_in_no_text(value: str) -> None:
    secret = Secret(value)
    for text in (repr(secret), str(secret), f"{secret}", f"{secret:>10}", f"{secret!r}"):
        assert text.strip() == "***"
    assert repr(Holder(secret)) == "Holder(password=***)"
    assert secret.reveal() == value


def test_it_is_not_pickled_nor_copied_out() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("hunter2"))
    with pytest.raises(TypeError):
        copy.copy(Secret("hunter2"))


def test_a_traceback_with_locals_does_not_show_it() -> None:
    def fails(secret: Secret) -> None:
        raise RuntimeError(f"with {secret}")

    with pytest.raises(RuntimeError) as caught:
        fails(Secret("hunter2"))
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
    assert "hunter2" not in "".join(line for line in shown if "fails(Secret" not in line)


def test_equal_secrets_are_equal_and_an_empty_one_is_false() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != "a"
    assert not Secret("")
