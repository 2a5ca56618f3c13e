"""The runbook of an offline partition explains every first line that the commands and the console print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recovery.advice import Advice, AdviceKind
from recovery.wording.advice_text import advice_text

RUNBOOK = Path(__file__).parents[3] / "docs/runbook-offline-partition.md"
ADVICE = [
    Advice(kind, () if kind is AdviceKind.CHOOSE else (7,), (), (7,) if kind is AdviceKind.BRING_BACK else ())
    for kind in AdviceKind
]


def explained() -> list[str]:
    """The first words of each point, with a number for the broker."""
    section = RUNBOOK.read_text(encoding="utf-8").partition("## 2. ")[2].partition("## 3. ")[0]
    return [words.replace(" N", " 7") for words in re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE)]


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.kind.name)
def test_what_is_to_be_done_first_is_explained_in_its_own_words(advice: Advice) -> None:
    said = advice_text(advice).action
    assert [words for words in explained() if words in said]
