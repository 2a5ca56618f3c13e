"""client.properties is read as java.util.Properties reads it, and its errors show nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.live.client.properties import PropertiesError, parse_properties, read_properties

LATIN = st.text(st.characters(min_codepoint=0, max_codepoint=255), max_size=30)

# What Java 17 made of each of these.
AS_JAVA_READS_THEM = [
    ("a=b", {"a": "b"}),
    ("a:b", {"a": "b"}),
    ("a b", {"a": "b"}),
    ("  a \t=\f b  ", {"a": "b  "}),
    ("a==b", {"a": "=b"}),
    ("a = : b", {"a": ": b"}),
    ("a", {"a": ""}),
    ("=b", {"": "b"}),
    ("# a=b\n  ! c=d\ne=f", {"e": "f"}),
    ("a=b\\\n   c", {"a": "bc"}),
    ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    ("a=b\\\n#c=d", {"a": "b#c=d"}),
    ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
    ("# a\\\nb=c", {"b": "c"}),
    ("\\\n# a\nb=c", {"b": "c"}),
    ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
    ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
    ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
    ("a=\\u00e9\\ud83d\\ude00", {"a": "é😀"}),
    ("a=1\na=2", {"a": "2"}),
    ("a=é".encode().decode("iso-8859-1"), {"a": "Ã©"}),
]


@pytest.mark.parametrize(("text", "expected"), AS_JAVA_READS_THEM)
def test_what_java_makes_of_it(text: str, expected: dict[str, str]) -> None:
    read = parse_properties(text, "client.properties")
    assert {key: entry.value.reveal() for key, entry in read.items()} == expected


def escape(text: str, is_key: bool) -> str:
    """As java.util.Properties.store writes it."""
    out = []
    for at, char in enumerate(text):
        if char in "\\=:#!" or (char == " " and (is_key or at == 0)):
            out.append("\\" + char)
        elif char in "\t\n\r\f":
            out.append("\\" + {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}[char])
        elif not " " <= char <= "~":
            out.append("".join(f"\\u{unit:04x}" for unit in utf16(char)))
        else:
            out.append(char)
    return "".join(out)


def utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=30), max_size=6))
def test_what_java_stores_is_read_back(stored: dict[str, str]) -> None:
    text = "\n".join(f"{escape(key, True)}={escape(value, False)}" for key, value in stored.items())
    read = parse_properties(f"#stored\n{text}\n", "stored")
    assert {key: entry.value.reveal() for key, entry in read.items()} == stored


@given(LATIN)
def test_any_text_is_read_or_refused_in_one_line_without_showing_it(text: str) -> None:
    try:
        read = parse_properties(f"password=hunter2{text}", "client.properties")
    except PropertiesError as error:
        assert "\n" not in str(error)
        assert "hunter2" not in str(error)
    else:
        assert "hunter2" not in repr(read)


def test_an_entry_knows_the_first_line_of_its_value() -> None:
    read = parse_properties("# comment\n\na=1\\\n  2\nb=3", "client.properties")
    assert (read["a"].where, read["b"].where) == ("client.properties:3", "client.properties:5")


def test_a_bad_escape_is_told_with_its_line() -> None:
    with pytest.raises(
        PropertiesError, match=r"^client\.properties:2: .u is not followed by four hexadecimal"
    ):
        parse_properties("a=b\nc=\\u12xy", "client.properties")


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        PropertiesError, match=r"nothing\.properties: cannot be read: No such file or directory$"
    ):
        read_properties(tmp_path / "nothing.properties")


def test_a_byte_order_mark_is_refused_as_java_would_lose_the_first_setting(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes(b"\xef\xbb\xbfsecurity.protocol=SASL_SSL\r\nsasl.mechanism=PLAIN\r\n")
    with pytest.raises(PropertiesError, match="begins with a byte order mark"):
        read_properties(file)
