"""What the console's quorum pane says of the voters: the same as the preflight of the command."""

from __future__ import annotations

from dataclasses import replace

from console.jobs.quorum.quorum_pane import QuorumPane, VoterChangePreview, voter_changes
from console.jobs.quorum.quorum_report import sentences
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import KnownBrokers, QuorumHealth, health
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.model import Unknown, Why
from tests.unit.membership.quorums import key, progress, quorum
from tests.unit.widgets.harness import Harness, text_of


def looked_at(of: Quorum, brokers: tuple[int, ...] = ()) -> QuorumHealth:
    return health(of, LivenessLimits(), {replica.key.id for replica in of.progress} - set(brokers))


def change(of: Quorum, name: str) -> VoterChangePreview:
    return next(c for c in voter_changes(looked_at(of)) if c.name == name)


def test_a_node_is_not_offered_beside_itself_and_another_is() -> None:
    new = key(3, "new")
    offered = change(quorum(1, 2, 3, down=(3,), observers=(new,)), "add observer 3")
    assert not offered.possible
    assert "DUPLICATE_VOTER" in offered.why
    assert change(quorum(1, 2, 3, observers=(key(4),)), "add observer 4").possible


def test_a_second_directory_is_an_old_voter_or_one_that_was_removed() -> None:
    old_votes = quorum(1, 2, 3, down=(3,), observers=(key(3, "new"),))
    assert any("the old one still votes" in text for _, text in sentences(looked_at(old_votes)))
    healthy = quorum(1, 2, 3)
    ghost = progress(key(3, "old"), silent_ms=60_000)
    texts = [text for _, text in sentences(looked_at(replace(healthy, progress=(*healthy.progress, ghost))))]
    assert not any("the old one still votes" in text for text in texts)
    assert any("the old one disappears" in text for text in texts)


def test_a_controller_without_a_vote_is_named_also_where_no_voter_is_missing() -> None:
    waits = quorum(1, 2, 3, observers=(key(4), key(11)))
    told = [text for _, text in sentences(looked_at(waits, (11,)))]
    assert "controllers without a vote: 4 (quorum add gives it one)" in told
    static = [text for _, text in sentences(looked_at(replace(waits, kraft_version=0), (11,)))]
    assert "controllers without a vote: 4 (first quorum upgrade, then quorum add)" in static
    assert not any("without a vote" in text for _, text in sentences(looked_at(quorum(1, 2, 3))))


async def test_the_pane_offers_no_replacement_where_brokers_that_answer_do_not_follow() -> None:
    """As pane 1 and ``status``: a rebuild that nobody here has seen may have made the voter the only one."""
    down = looked_at(quorum(1, 2, 3, down=(3,), observers=(key(13),)), (13,))
    for brokers, offered in (((13,), True), ((11, 12, 13), False)):
        pane = QuorumPane()
        async with Harness(pane).run_test(size=(110, 30)):
            pane.update(down, brokers=KnownBrokers(frozenset(brokers)))
            shown = " ".join(piece.text.strip() for pieces in pane.summary_lines(110) for piece in pieces)
            assert ("Or replace it." in shown) == offered
            assert ("Do not replace, format or wipe 3" in shown) == (not offered)


def test_auto_join_is_not_claimed_where_it_is_not_known() -> None:
    assert (
        "if controller.quorum.auto.join.enable is on (not known)"
        in change(quorum(1, 2, 3), "remove voter 2").why
    )


def test_who_does_not_fetch_stands_above_those_that_are_well() -> None:
    """At 80 columns by 24 lines the last of ten rows is below the fold."""
    seen = quorum(1, 2, 3, down=(3,), observers=(key(11), key(12)))
    silent = progress(key(13), silent_ms=60_000)
    seen = replace(seen, progress=(*seen.progress, silent))
    members = looked_at(seen, (11, 12, 13)).silent_first
    assert [member.key.id for member in members] == [3, 13, 1, 2, 11, 12]
    assert [member.key.id for member in looked_at(quorum(1, 2, 3)).silent_first] == [1, 2, 3]


async def test_the_pane_says_who_is_behind_and_what_may_be_changed() -> None:
    pane = QuorumPane()
    async with Harness(pane).run_test(size=(140, 40)) as pilot:
        pane.update(looked_at(quorum(1, 2, 3, down=(3,), observers=(key(7),))))
        await pane.table.wait_settled()
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "tolerates no more failures: 2 of 3 voters up" in screen
        assert "voters that do not fetch: 3" in screen
        (row,) = (line for line in screen.splitlines() if line.split()[:2] == ["►", "voter"])
        assert "does not fetch" in row
        assert "possible      add observer 7" in screen
        pane.update(Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on the cluster"))
        await pane.table.wait_settled()
        await pilot.pause()
        assert "not allowed: needs DESCRIBE on the cluster" in text_of(pilot.app)


async def test_a_members_endpoint_and_directory_are_told_at_80_columns() -> None:
    pane = QuorumPane()
    async with Harness(pane).run_test(size=(80, 40)) as pilot:
        pane.update(looked_at(quorum(1, 2, 3)))
        await pane.table.wait_settled()
        await pilot.pause()
        assert "CONTROLLER://" in text_of(pilot.app)
        assert "endpoint" in text_of(pilot.app)


async def test_a_quorum_that_loses_its_leader_is_a_table_of_hosts_and_back_again() -> None:
    """The rows are of another kind, and so are their columns; what was sorted by is not kept."""
    up = VoterHost(key(1, "d"), "c1:9093", True, "", 5, 5)
    down = VoterHost(key(2, "e"), "c2:9093", False, "refused", -1, -1, stopped=True)
    pane = QuorumPane()
    async with Harness(pane).run_test(size=(140, 30)) as pilot:
        pane.update(looked_at(quorum(1, 2, 3)))
        await pane.table.wait_settled()
        pane.table.sort_by("lag")
        pane.update(QuorumWithoutLeader("c", (up, down), True, "then"))
        await pane.table.wait_settled()
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "NO LEADER" in screen and "METADATA HELD" in screen and "DOWN" in screen
        pane.update(looked_at(quorum(1, 2, 3)))
        await pane.table.wait_settled()
        await pilot.pause()
        assert "METADATA HELD" not in text_of(pilot.app) and "LAG (OFFSETS)" in text_of(pilot.app)
