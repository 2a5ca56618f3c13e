"""Incident scripts that run on a real cluster and on the simulator; both states are compared after each step."""

import pytest

pytest.register_assert_rewrite("tests.side_by_side.both_clusters", "tests.side_by_side.comparison")
