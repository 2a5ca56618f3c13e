"""What the console's quorum pane says of the voters: the same as the preflight of the command."""

from __future__ import annotations

from dataclasses import replace

from console.app.main_screen.pane_views import quorum_view
from recovery.membership.quorum import Quorum
from tests.unit.membership.quorums import key, progress, quorum
from widgets.quorum_pane import VoterChangePreview


def change(of: Quorum, name: str) -> VoterChangePreview:
    return next(c for c in quorum_view(of, ()).changes if c.name == name)


def test_a_node_is_not_offered_beside_itself_and_another_is() -> None:
    new = key(3, "new")
    offered = change(quorum(1, 2, 3, down=(3,), observers=(new,)), "add observer 3")
    assert not offered.possible
    assert "DUPLICATE_VOTER" in offered.why
    assert change(quorum(1, 2, 3, observers=(key(4),)), "add observer 4").possible


def test_a_second_directory_is_an_old_voter_or_one_that_was_removed() -> None:
    old_votes = quorum(1, 2, 3, down=(3,), observers=(key(3, "new"),))
    assert any("still a voter" in note for note in quorum_view(old_votes, ()).notes)
    healthy = quorum(1, 2, 3)
    ghost = progress(key(3, "old"), silent_ms=60_000)
    notes = quorum_view(replace(healthy, progress=(*healthy.progress, ghost)), ()).notes
    assert not any("still a voter" in note for note in notes)
    assert any("the old one disappears" in note for note in notes)


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
    members = quorum_view(seen, (11, 12, 13)).members
    assert [member.id for member in members] == [3, 13, 1, 2, 11, 12]
    assert [member.id for member in quorum_view(quorum(1, 2, 3), ()).members] == [1, 2, 3]
