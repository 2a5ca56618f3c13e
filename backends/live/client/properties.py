"""client.properties as Kafka's tools read it (backends/java_properties.py, ISO 8859-1), and variables in values:
``${env:NAME}``, ``${file:PATH:KEY}``, ``${directory:PATH:FILE}`` (KIP-297, KIP-421, KIP-887).

Values may be passwords: each is a Secret from the start, and no error shows one.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from backends.java_properties import JavaPropertiesError, java_properties
from backends.live.client.secret import Secret


class PropertiesError(ValueError):
    """A client.properties file that cannot be used: one line with file and line number, and no value of it."""


class Property(NamedTuple):
    """A value, and its file and line."""

    value: Secret
    where: str

    @property
    def text(self) -> str:
        """The value as Kafka's settings take it: without blanks around it."""
        return self.value.reveal().strip()


Properties = Mapping[str, Property]


def read_properties(path: Path) -> Properties:
    """Read a file. Raises PropertiesError where it cannot be read or is no properties file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PropertiesError(f"{path}: cannot be read: {error.strerror}") from None
    if data.startswith(codecs.BOM_UTF8):
        # Java would read it as part of the first key, and ignore that setting: without security.protocol the
        # connection would be in clear.
        why = "begins with a byte order mark, which Java takes as part of the first key: save it without"
        raise PropertiesError(f"{path}: {why}")
    return parse_properties(data.decode("iso-8859-1"), str(path))


def parse_properties(text: str, name: str) -> Properties:
    """Parse ``text``; a key that comes twice has its last value. ``name`` is the file's in errors."""
    try:
        read = list(java_properties(text))
    except JavaPropertiesError as error:
        raise PropertiesError(f"{name}:{error.line}: {error}") from None
    return {key: Property(Secret(value), f"{name}:{line}") for line, key, value in read}


_VARIABLE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_PACKAGE = "org.apache.kafka.common.config.provider."

Lookup = Callable[[str, str], str | None]


def resolve_variables(properties: Properties) -> Properties:
    """Replace variables by the values of the providers in ``config.providers``; without that key, nothing.

    Raises PropertiesError for a provider that is not known here, and for a variable that it does not have.
    """
    listed = properties.get("config.providers")
    if listed is None:
        return properties
    lookups = {
        name: _lookup(name, properties, listed) for name in map(str.strip, listed.text.split(",")) if name
    }
    return {key: _resolved(key, entry, lookups) for key, entry in properties.items()}


def _lookup(name: str, properties: Properties, listed: Property) -> Lookup:
    key = f"config.providers.{name}.class"
    given = properties.get(key)
    kind = given.text.removeprefix(_PACKAGE) if given else ""
    if kind not in _PROVIDERS:
        where = (given or listed).where
        raise PropertiesError(f"{where}: {key}: known here are {', '.join(_PACKAGE + k for k in _PROVIDERS)}")
    return _PROVIDERS[kind]


def _resolved(key: str, entry: Property, lookups: Mapping[str, Lookup]) -> Property:
    def put_in(found: re.Match[str]) -> str:
        provider, path, variable = found[1], found[3] or "", found[4]
        if provider not in lookups:
            return found[0]
        value = lookups[provider](path, variable)
        if value is None:
            raise PropertiesError(f"{entry.where}: {key}: the {provider} provider has no {found[0]}")
        return value

    return entry._replace(value=Secret(_VARIABLE.sub(put_in, entry.value.reveal())))


def _env(_path: str, name: str) -> str | None:
    return os.environ.get(name)


def _file(path: str, name: str) -> str | None:
    found = read_properties(Path(path)).get(name)
    return None if found is None else found.value.reveal()


def _directory(path: str, name: str) -> str | None:
    try:
        return Path(path, name).read_text(encoding="utf-8")
    except OSError:
        return None


_PROVIDERS: Mapping[str, Lookup] = {
    "EnvVarConfigProvider": _env,
    "FileConfigProvider": _file,
    "DirectoryConfigProvider": _directory,
}
