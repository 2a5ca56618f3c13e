"""What a sentence must be that is read at three in the morning."""

from __future__ import annotations

import re

OURS = re.compile(
    r"branch|divergen|verdict|rank|fold|survey|evidence|lineage|candidate|precondition|epoch|high watermark|proved"
    r" whole|acked",
    re.I,
)
"""Words that a reader of Kafka's own documentation does not know, or that are no help at first sight."""
_SIDE_REMARK = re.compile(r"\((?:ktriage [a-z ]+)\)|\(ktriage disk scan says how\)")
"""What may stand in parentheses: a command."""


def too_much(sentence: str, limit: int) -> str:
    """What is wrong with it: longer than ``limit`` characters, a word of ours, a parenthesis; "" for nothing."""
    if len(sentence) > limit:
        return f"{len(sentence)} characters: {sentence}"
    if word := OURS.search(sentence):
        return f"{word.group()!r}: {sentence}"
    return f"a parenthesis: {sentence}" if "(" in _SIDE_REMARK.sub("", sentence) else ""
