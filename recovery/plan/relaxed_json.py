"""JSON whose keys may stand without quotes and whose lists may end with a comma.

The recovery tool's own example of its input file is written so (unclean-recovery-tool,
``--path-to-json-file``). All else is as strict as JSON: no comments, no single quotes, no key twice.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from recovery.plan.values import PlanError

_DEEPEST = 32
_DIGITS = 20
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(
    r"""(?P<mark>[{}\[\],:])
    |(?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<word>[A-Za-z_$][A-Za-z0-9_$]*)""",
    re.VERBOSE,
)
_WORDS = {"true": True, "false": False, "null": None}
_END = "the end of the file"


def parse(document: str) -> object:
    """The value in ``document``. Raises PlanError with line and column."""
    return _Reader(document).whole()


class _Reader:
    """Reads one document from left to right; ``_lexeme`` is the current token."""

    def __init__(self, document: str) -> None:
        self._document = document
        self._at = 0
        self._end = 0
        self._kind = ""
        self._lexeme = ""
        self._next()

    def whole(self) -> object:
        if not self._lexeme:
            raise PlanError("the file is empty")
        value = self._value(0)
        if self._lexeme:
            self._fail("nothing more")
        return value

    def _next(self) -> None:
        space = _SPACE.match(self._document, self._end)
        self._at = space.end() if space else self._end
        token = _TOKEN.match(self._document, self._at)
        if token is None:
            self._lexeme, self._kind = "", ""
            if self._at < len(self._document):
                self._fail("JSON", self._document[self._at])
            return
        self._lexeme, self._kind, self._end = token.group(), token.lastgroup or "", token.end()

    def _value(self, depth: int) -> object:
        if depth > _DEEPEST:
            self._fail("a flatter file", "nested too deep", quote=False)
        if self._lexeme == "{":
            return self._object(depth)
        if self._lexeme == "[":
            return self._list(depth)
        if self._kind == "text":
            return self._text()
        if self._kind == "number":
            return self._number()
        if self._lexeme in _WORDS:
            word = self._lexeme
            self._next()
            return _WORDS[word]
        self._fail("a value")

    def _object(self, depth: int) -> dict[str, object]:
        fields: dict[str, object] = {}
        self._next()
        while self._lexeme != "}":
            line_and_column = self._place()
            key = self._key()
            if key in fields:
                raise PlanError(f'{line_and_column}: the key "{key}" stands twice in one object')
            if self._lexeme != ":":
                self._fail('":"')
            self._next()
            fields[key] = self._value(depth + 1)
            self._comma("}")
        self._next()
        return fields

    def _list(self, depth: int) -> list[object]:
        values: list[object] = []
        self._next()
        while self._lexeme != "]":
            values.append(self._value(depth + 1))
            self._comma("]")
        self._next()
        return values

    def _comma(self, closing: str) -> None:
        if self._lexeme == ",":
            self._next()
        elif self._lexeme != closing:
            self._fail(f'"," or "{closing}"')

    def _key(self) -> str:
        if self._kind == "text":
            return self._text()
        if self._kind == "word":
            key = self._lexeme
            self._next()
            return key
        self._fail("a key")

    def _text(self) -> str:
        try:
            value = json.loads(self._lexeme)
        except ValueError:
            self._fail("a text with JSON's escapes")
        self._next()
        return str(value)

    def _number(self) -> int | float:
        if len(self._lexeme) > _DIGITS:
            self._fail("a number of at most 20 digits")
        value: int | float = json.loads(self._lexeme)
        self._next()
        return value

    def _place(self) -> str:
        line = self._document.count("\n", 0, self._at) + 1
        column = self._at - self._document.rfind("\n", 0, self._at)
        return f"line {line}, column {column}"

    def _fail(self, expected: str, found: str = "", *, quote: bool = True) -> NoReturn:
        found = found or self._lexeme
        shown = _END if not found else ascii(found[:30]) if quote else found
        raise PlanError(f"{self._place()}: expected {expected}, found {shown}")
