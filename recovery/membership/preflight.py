"""Checks before a voter change is sent: what the leader will answer, and whether the quorum survives the change.

Kafka lets an operator remove a voter that the majority needs, and add one at an address that nobody can reach. The
quorum then cannot commit, and the change cannot be undone. These checks refuse such a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recovery.membership.quorum import (
    MembershipRules,
    Quorum,
    TimeoutCause,
    VoterChangeRefusal,
    caught_up,
)
from recovery.membership.voter_changes import (
    AddVoter,
    RemoveRaftVoter,
    VersionsProbe,
    add_voter,
    remove_voter,
)
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from recovery.model import Unknown
from recovery.wording.quantity_text import counted

STATIC = (
    "UNSUPPORTED_VERSION: kraft.version is 0: the voters are the setting controller.quorum.voters of every node,"
    " and no request changes them"
)


REMOVES_ITSELF = (
    "it is the leader: it commits its own removal without its own vote and resigns. If that takes over 2 s it does"
    " not resign, and brokers are fenced: restart it first, and another leads"
)
"""The risk of removing the leader. 2 s are Kafka's controller.quorum.request.timeout.ms."""

BETWEEN_READINGS_MS = 2000


class LivenessLimits(NamedTuple):
    """What counts as alive: fetched within ``fetch_age_ms`` (Kafka's controller.quorum.fetch.timeout.ms is
    2000), and at most ``lag`` offsets behind the leader's log end.
    """

    fetch_age_ms: int = 2000
    lag: int = 1000


class NodeIdentity(NamedTuple):
    """The node that answers at an endpoint, from ApiVersions and DescribeCluster."""

    cluster_id: str
    node_id: int
    kraft_versions: tuple[int, int] | None


class EndpointProbe(NamedTuple):
    """One endpoint of a new voter, and who answered there."""

    endpoint: VoterEndpoint
    answer: NodeIdentity | Unknown


class VoterSetStrength(NamedTuple):
    """A voter set with the voters that are up. ``spare`` is how many more failures it tolerates now: below 0 it
    cannot commit.
    """

    voters: VoterSet
    up: tuple[ReplicaKey, ...]
    down: tuple[ReplicaKey, ...]

    @property
    def spare(self) -> int:
        return len(self.up) - self.voters.majority

    @property
    def commits(self) -> bool:
        return self.spare >= 0

    def __str__(self) -> str:
        """``tolerates 1 more failure: 3 of 3 voters up, majority 2``."""
        if not self.commits:
            return f"CANNOT COMMIT: {self.votes}"
        more = counted(self.spare, "more failure") if self.spare else "no more failures"
        return f"tolerates {more}: {self.votes}"

    @property
    def votes(self) -> str:
        """``1 of 3 voters up, majority 2; down: 100, 101``; who is down only where that stops the set."""
        up = f"{len(self.up)} of {counted(len(self.voters.voters), 'voter')} up, majority {self.voters.majority}"
        return up if self.commits else f"{up}; down: {', '.join(map(str, self.down))}"


class PreflightResult(NamedTuple):
    """``refused`` holds every reason against the change, the leader's own answer first; ``warnings`` are for
    the operator; ``after`` is None if the leader would refuse.
    """

    refused: tuple[str, ...]
    warnings: tuple[str, ...]
    before: VoterSetStrength
    after: VoterSetStrength | None

    @property
    def allowed(self) -> bool:
        return not self.refused


def strength(quorum: Quorum, voters: VoterSet, limits: LivenessLimits) -> VoterSetStrength:
    """Which of ``voters`` are alive and close to the log end. The leader is: it answered."""
    up = tuple(key for key in voters.keys if _alive(quorum, key, limits))
    return VoterSetStrength(voters, up, tuple(key for key in voters.keys if key not in up))


def before_adding(
    quorum: Quorum,
    voter: Voter,
    probes: Iterable[EndpointProbe],
    rules: MembershipRules,
    limits: LivenessLimits,
) -> PreflightResult:
    """The preflight result for adding ``voter``. Every endpoint must have been asked, and must be that node
    of this cluster: an endpoint that cannot be reached would be persisted in the VotersRecord.
    """
    asked = tuple(probes)
    outcome = add_voter(quorum, AddVoter(voter, quorum.cluster_id), _versions(quorum, asked), rules)
    return _verdict(quorum, outcome, limits, tuple(_endpoint_faults(quorum, voter, asked)))


def before_removing(
    quorum: Quorum, key: ReplicaKey, limits: LivenessLimits, *, auto_join: bool | None = None
) -> PreflightResult:
    """The preflight result for removing ``key``. ``auto_join`` is that controller's setting; None: not known."""
    outcome = remove_voter(quorum, RemoveRaftVoter(key, quorum.cluster_id))
    verdict = _verdict(quorum, outcome, limits, ())
    if quorum.voters.keys == (key,) and quorum.kraft_version >= 1:
        # Kafka answers VOTER_NOT_FOUND (VoterSet.removeVoter gives no empty set).
        return verdict._replace(refused=(f"{key} is the only voter: add another one first",))
    warnings = list(verdict.warnings)
    if key == quorum.leader:
        warnings.append(REMOVES_ITSELF)
    if key not in verdict.before.up or auto_join is False:
        return verdict._replace(warnings=tuple(warnings))
    comes_back = "it is running with controller.quorum.auto.join.enable: it adds itself again, stop it first"
    if auto_join:
        return verdict._replace(refused=(*verdict.refused, comes_back), warnings=tuple(warnings))
    perhaps = "it is running: if controller.quorum.auto.join.enable is on (not known), it adds itself again"
    return verdict._replace(warnings=(*warnings, perhaps))


def explain_timeout(after: Quorum, key: ReplicaKey, *, adding: bool, reachable: bool = True) -> TimeoutCause:
    """The cause of a REQUEST_TIMED_OUT, from the quorum as it is described afterwards.

    NOT_COMMITTED: the change is in the log. It takes effect as soon as a majority of the new set is up; do
    not send it again. PASSED: the cause is gone. Another change was in progress at that moment, or a request
    of the leader to the new voter (AddVoterHandler then answers at once).
    """
    if after.high_watermark is None:
        return TimeoutCause.NO_HIGH_WATERMARK
    if (key in after.voters.keys) == adding:
        return TimeoutCause.NOT_COMMITTED
    if adding and not reachable:
        return TimeoutCause.UNREACHABLE
    if adding and key == after.leader:
        return TimeoutCause.LEADS
    if adding and not caught_up(after.progress_of(key), after.now_ms):
        return TimeoutCause.LAGGING
    return TimeoutCause.PASSED if after.change_pending is False else TimeoutCause.CHANGE_PENDING


def wedged(earlier: Quorum, later: Quorum) -> bool | None:
    """Whether the high watermark did not move, though an idle leader appends every 500 ms. None where the two
    readings are too close together, or the leader changed.
    """
    if later.leader_epoch != earlier.leader_epoch or later.now_ms - earlier.now_ms < BETWEEN_READINGS_MS:
        return None
    return later.high_watermark is None or later.high_watermark == earlier.high_watermark


def _verdict(
    quorum: Quorum, outcome: VoterSet | VoterChangeRefusal, limits: LivenessLimits, faults: tuple[str, ...]
) -> PreflightResult:
    before = strength(quorum, quorum.voters, limits)
    if isinstance(outcome, VoterChangeRefusal):
        if quorum.kraft_version < 1:
            # The leader may answer something else first; this is the cause.
            return PreflightResult((STATIC,), (), before, None)
        return PreflightResult((str(outcome), *faults), (), before, None)
    after = strength(quorum, outcome, limits)
    refused = list(faults)
    if not after.commits:
        refused.append(f"the new set could not commit: {after.votes}")
    return PreflightResult(tuple(refused), tuple(_warnings(after)), before, after)


def _warnings(after: VoterSetStrength) -> Iterable[str]:
    if after.spare == 0:
        yield "the next failure stops the quorum"
    size = len(after.voters.voters)
    if size % 2 == 0:
        yield f"{size} voters tolerate no more failures than {size - 1}"


def _versions(quorum: Quorum, probes: tuple[EndpointProbe, ...]) -> VersionsProbe:
    """What the leader would learn: it asks at the endpoint of its own listener."""
    for probe in probes:
        if probe.endpoint.listener == quorum.default_listener and isinstance(probe.answer, NodeIdentity):
            return VersionsProbe(answered=True, kraft_versions=probe.answer.kraft_versions)
    return VersionsProbe(answered=False)


def _endpoint_faults(quorum: Quorum, voter: Voter, probes: tuple[EndpointProbe, ...]) -> Iterable[str]:
    answered = {probe.endpoint: probe.answer for probe in probes}
    if not voter.endpoints:
        yield (
            f"no controller lists node {voter.key.id} as one: a broker cannot vote; a controller that has just"
            " started is listed within some seconds, or is told by --endpoint"
        )
    for endpoint in voter.endpoints:
        answer = answered.get(endpoint)
        if answer is None:
            yield f"{endpoint} was not asked"
        elif isinstance(answer, Unknown):
            yield f"{endpoint} does not answer ({answer})"
        elif answer.cluster_id != quorum.cluster_id:
            yield f"{endpoint} belongs to cluster {answer.cluster_id}"
        elif answer.node_id != voter.key.id:
            yield f"{endpoint} is node {answer.node_id}, not {voter.key.id}"


def _alive(quorum: Quorum, key: ReplicaKey, limits: LivenessLimits) -> bool:
    if key == quorum.leader or (not key.directory_id and key.id == quorum.leader.id):
        return True
    replica = quorum.progress_of(key)
    if replica is None or replica.last_fetch_ms <= 0:
        return False
    fresh = quorum.now_ms - replica.last_fetch_ms <= limits.fetch_age_ms
    return fresh and quorum.log_end_offset - replica.log_end_offset <= limits.lag
