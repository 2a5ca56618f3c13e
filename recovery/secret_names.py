"""Which settings, options and fields hold a secret, by their names."""

from __future__ import annotations

import re

NAME_PATTERN = "passw|passphrase|secret|token|jaas|credential|private.?key|keystore.key|assertion|webhook"
"""A regular expression; among them are all settings of Kafka that may hold one (type PASSWORD), but for those with
certificates.
"""
_SECRET_NAME = re.compile(f"(?i){NAME_PATTERN}")


def names_secret(name: str) -> bool:
    """Whether the value of an option, a setting or a field of that name may be a secret."""
    return _SECRET_NAME.search(name) is not None
