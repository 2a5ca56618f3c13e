"""Errors of the testbed: one line that says what to do, then the log that shows why."""


class TestbedError(Exception):
    """A cluster for tests could not be made, started or brought into the wanted state."""

    __test__ = False  # pytest would collect the name


class NodeDied(TestbedError):
    """A node's process ended, or never answered, while it was expected to come up."""


class ToolFailed(TestbedError):
    """One of Java's tools ended with a status other than 0."""


class TimedOut(TestbedError):
    """A condition did not become true by its deadline."""
