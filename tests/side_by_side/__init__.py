"""Scripts of incidents that a real cluster and the simulator play, and what the two come to after each step."""

import pytest

pytest.register_assert_rewrite("tests.side_by_side.both_clusters", "tests.side_by_side.comparison")
