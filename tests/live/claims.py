"""Several processes of pytest divide the tests on real Kafka among them, cluster by cluster.

So they end at about the same time on any machine, and no list says which process has which module.
"""

from __future__ import annotations

from pathlib import Path


class DifferentTests(Exception):
    """The other process has collected other tests, so some would be run by neither."""


class Claims:
    """One link for each cluster in a directory that all processes are given, empty at first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own: dict[int, bool] = {}

    def own(self, place: int, first_test: str) -> bool:
        """Whether this process runs the tests of a cluster; it takes them if no process has them yet.

        Raises DifferentTests if the process that has this place began it with another test.
        """
        if place not in self._own:
            self._own[place] = self._taken(self._directory / str(place), first_test)
        return self._own[place]

    def _taken(self, link: Path, first_test: str) -> bool:
        # A link has its content from the first, and of two processes only one can make it.
        try:
            link.symlink_to(first_test)
        except FileExistsError:
            other = str(link.readlink())
            if other != first_test:
                raise DifferentTests(
                    f"place {link.name}: {first_test} here, {other} in the other process"
                ) from None
            return False
        return True
