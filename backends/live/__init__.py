"""The live adapter: a running Kafka cluster behind the protocol of backends/base."""

from __future__ import annotations

import sys


def _import_kio_alone() -> None:
    """kio offers strategies to hypothesis wherever it is installed; importing it takes as long as all else."""
    if "hypothesis" in sys.modules or "kio.static._phantom" in sys.modules:
        return
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # Python then finds no such module
    try:
        import kio.static._phantom  # noqa: F401  # for its effect
    finally:
        del sys.modules["hypothesis"]


_import_kio_alone()
