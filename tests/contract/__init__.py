"""One suite for whatever implements ``backends.base.protocol.Backend``: a class of tests a state of a cluster.

A module that runs it derives from the classes and gives them a ``stage`` fixture (``tests.contract.stage``).
"""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.healthy", "tests.contract.rights", "tests.contract.broken", "tests.contract.offline"
)
