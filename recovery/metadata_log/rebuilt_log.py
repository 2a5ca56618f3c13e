"""Where ``quorum rebuild`` wrote in a metadata log.

A leader begins its epoch with a LeaderChange. An epoch that begins with voters was written by nobody who was
elected: a rebuild appends them, and its partitions behind them, in an epoch of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recovery.membership.voters import Voter, VoterSet
from recovery.metadata_log.control_records import ControlRecord


class RebuiltLog(NamedTuple):
    """The voters stand at ``offset``, in quorum epoch ``epoch``, and the partitions behind them, up to ``end``
    (without it). ``gone``: the voters that it and the rebuilds before it replaced, as far as the log names them.
    """

    offset: int
    end: int
    epoch: int
    gone: tuple[Voter, ...]


class RebuiltLogFinder:
    """Follows the batches of a log, in their order, those that are read again too; ``found`` is the newest rebuild,
    ``epoch`` that of the newest batch.

    ``voters`` and ``epoch``: of the snapshot that the log begins after; None: it begins without.
    """

    def __init__(self, voters: VoterSet | None = None, epoch: int | None = None) -> None:
        self.found: RebuiltLog | None = None
        self.voters = voters or VoterSet(())
        self.epoch = epoch
        self._next = -1

    def batch(self, base: int, end: int, epoch: int, controls: Sequence[ControlRecord] = ()) -> None:
        """A batch of the offsets ``base`` to ``end`` (without it). ``controls``: what it says of the quorum."""
        if base < self._next:
            return
        before, self.epoch, self._next = self.epoch, epoch, end
        sets = [record for record in controls if isinstance(record, VoterSet)]
        if before is not None and epoch > before and controls and isinstance(controls[0], VoterSet):
            earlier = () if self.found is None else self.found.gone
            known = (*earlier, *(voter for voters in (self.voters, *sets) for voter in voters.voters))
            stay = set(sets[-1].keys)
            left = {voter.key: voter for voter in known if voter.key not in stay}
            self.found = RebuiltLog(base, end, epoch, tuple(left[key] for key in sorted(left)))
        elif self.found is not None and (epoch, base) == (self.found.epoch, self.found.end):
            self.found = self.found._replace(end=end)
        if sets:
            self.voters = sets[-1]
