"""What is shown is what was recorded; ``python -m tests.recorded --write`` records again.

Here what `make test-long` compares; ``python -m benchmarks.soak records`` compares all that are recorded.
"""

from __future__ import annotations

import pytest

from tests.recorded.records import QUICK, differences

pytestmark = pytest.mark.long


@pytest.mark.timeout(600)
@pytest.mark.parametrize("incident", QUICK)
def test_commands_and_panes_show_what_was_recorded(incident: str) -> None:
    assert "\n".join(differences(incident)) == ""
