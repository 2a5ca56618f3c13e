"""Settings of every test."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from console import paths
from tests import kept_runs
from tests.repetitions import repetitions

# No test asserts a duration, and on a busy machine any deadline can be missed.
settings.register_profile("ktriage", deadline=None, max_examples=repetitions(40, 100))
settings.load_profile("ktriage")

# `make test &` and nohup start with these signals ignored, and every process that a test starts would ignore them
# too. A handler that does nothing keeps them ignored here, and exec resets it to the default there.
for _signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_signum) is signal.SIG_IGN:
        signal.signal(_signum, lambda _signum, _frame: None)

kept_runs.keep(kept_runs.directory())


def pytest_collection_finish() -> None:
    """The collector does not visit again and again what was imported, and seldom what is still in use: that was a
    fifth of the time of the console's tests. Their own cycles, a whole application each, are still collected.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 20)


@pytest.fixture(autouse=True)
def _each_test_has_its_own_state_directory() -> Iterator[None]:
    """A command that a test runs in this process decides where records lie for the rest of the process."""
    yield
    paths.use_state_dir(None)
