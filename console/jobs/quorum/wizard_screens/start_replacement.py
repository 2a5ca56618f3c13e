"""Starts a controller replacement from the quorum pane: its kind, the voters that leave, the nodes that join."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from console.app.base.question_dialogs import AnswerOption, ChoiceQuestion, TextQuestion
from console.app.base.record_screen import RecordScreen
from console.app.base.screen_calls import Ask, OpenScreen
from console.app.session.session import Session
from console.errors import NotDone
from console.jobs.quorum.replacement_plan import ReplacementChoice
from console.jobs.quorum.replacement_run import LoadedReplacement
from console.jobs.quorum.wizard_screens import wizard
from console.jobs.quorum.wizard_screens.screen import WizardScreen
from recovery.membership.possible_only_voter import BrokersFollowing
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import MemberRole, MemberState, QuorumHealth
from recovery.membership.replacement import ReplacementKind
from recovery.wording.quantity_text import both

_STATIC_KIND = ReplacementKind.DISK
"""The one kind that changes no voter set."""
_UPGRADE = "upgrade kraft.version first"
_MADE = "made before"


class StartReplacement:
    """The quorum pane's key for a replacement: asks what to replace, makes the plan, and opens the wizard."""

    def __init__(
        self,
        session: Session,
        ask: Ask,
        *,
        cursor_key: Callable[[], Hashable | None],
        wizard_screen: Callable[[LoadedReplacement, bool], WizardScreen],
        open_screen: OpenScreen,
    ) -> None:
        self._session = session
        self._ask = ask
        self._cursor_key = cursor_key
        self._wizard_screen = wizard_screen
        self._open_screen = open_screen
        self._last: WizardScreen | None = None

    async def replace(self) -> None:
        """Continues a replacement that is half done, or plans one."""
        session = self._session
        planned = await asyncio.to_thread(
            wizard.half_done, session.view.cluster_id, session.view.cluster_marks
        )
        half_done = planned is not None
        made = self._unbegun(session.view.cluster_id)
        if planned is None and made is not None and made.waits_for_arming:
            planned = made.planned
        if planned is None:
            choice = await self._choice(None if made is None else made.planned)
            if choice is None:
                return
            if isinstance(choice, LoadedReplacement):
                planned = choice
            else:
                try:
                    planned = await session.run(lambda backend: wizard.planned(backend, choice))
                except NotDone as error:
                    await self._not_replaced(str(error))
                    return
        await self._open(planned, half_done)

    async def _open(self, planned: LoadedReplacement, half_done: bool) -> None:
        self._last = self._wizard_screen(planned, half_done)
        await self._open_screen(self._last)

    def _unbegun(self, cluster_id: str) -> WizardScreen | None:
        """The screen that the person left before the end, where its plan is for the row under the cursor."""
        last = self._last
        if last is None or last.done or last.planned.cluster_id != cluster_id:
            return None
        key = self._cursor_key()
        leaving = [key.id for key in last.planned.plan.wanted.leaving]
        meant = isinstance(key, tuple) and (not leaving or key[0] in leaving)
        return last if meant else None

    async def _choice(self, made: LoadedReplacement | None) -> ReplacementChoice | LoadedReplacement | None:
        """What is to be replaced, or ``made``, the plan that was made before; None after Esc."""
        key = self._cursor_key()
        if not isinstance(key, tuple) or not isinstance(key[0], int):
            raise NotDone("put the cursor on a voter")
        node, directory = key[0], str(key[1])
        quorum = self._session.view.quorum
        static = False
        if isinstance(quorum, Quorum) and quorum.kraft_version < 1:
            # A static voter is identified by its node id alone.
            static, directory = True, ""
            if not quorum.voters.has_id(node):
                raise NotDone(self._upgrade_first())
        if refused := self._refusal(node):
            await self._not_replaced(refused)
            return None
        proposed, newcomers = self._proposed_kind(node)
        answer = await self._ask(
            ChoiceQuestion(
                f"Why is controller {node} replaced?" + (f"\n{self._upgrade_first()}" if static else ""),
                _answers(made, proposed, static=static),
            )
        )
        if answer is None or answer == _MADE:
            return None if answer is None else made
        kind = ReplacementKind(answer)
        leaving = () if kind is ReplacementKind.GROW else (node,)
        joining: tuple[int, ...] = ()
        if kind in (ReplacementKind.HOST, ReplacementKind.PLANNED, ReplacementKind.GROW):
            only = str(newcomers[0]) if len(newcomers) == 1 else ""
            newcomer = await self._ask(TextQuestion("The node id of the new controller:", only))
            if newcomer is None:
                return None
            if not newcomer.isdecimal():
                raise NotDone(f"{newcomer!r} is not a node id")
            joining = (int(newcomer),)
        return ReplacementChoice(kind, leaving, joining, directory or None if leaving else None)

    async def _not_replaced(self, refused: str) -> None:
        """A refusal says at its end how the way is cleared: it is a page, not a line that is cut off."""
        sentences = refused.replace(". ", ".\n").splitlines()
        await self._open_screen(RecordScreen("Not replaced", sentences))

    def _refusal(self, node: int) -> str:
        """Why the voter may not be replaced as the quorum was read, before anything is asked; "" if it may be."""
        reading = self._session.view.reading
        found = None if reading is None else reading.members_health
        if reading is None or not isinstance(found, QuorumHealth):
            return ""
        return BrokersFollowing(found, reading.known_brokers).refusal((node,))

    def _proposed_kind(self, node: int) -> tuple[tuple[ReplacementKind, str] | None, tuple[int, ...]]:
        """The kind of replacement that the quorum as it was read speaks for, and why; None: for no one. Then the
        controllers that run and are no voters: one of them may be the new one.
        """
        reading = self._session.view.reading
        found = None if reading is None else reading.members_health
        if not isinstance(found, QuorumHealth):
            return None, ()
        voters = {key.id for key in found.quorum.voters.keys}
        newcomers = tuple(
            member.key.id
            for member in found.members
            if member.role is MemberRole.CONTROLLER
            and member.state is not MemberState.GHOST
            and member.key.id not in voters
        )
        if node in found.new_disks:
            return (ReplacementKind.DISK, "seen: new disk"), newcomers
        down = any(member.key.id == node for member in found.dead_voters)
        if down and newcomers:
            return (ReplacementKind.HOST, f"seen: {both(newcomers)} without a vote"), newcomers
        return None, newcomers

    def _upgrade_first(self) -> str:
        """What a cluster with static voters needs before its voters can be changed."""
        command = self._session.target.command("quorum", "upgrade")
        return (
            "The voters are static (kraft.version 0): only the disk of a voter can be replaced. For anything else"
            f" upgrade the feature kraft.version first: {command}"
        )


def _answers(
    made: LoadedReplacement | None, proposed: tuple[ReplacementKind, str] | None, *, static: bool
) -> list[AnswerOption]:
    """The kinds of replacement, after the plan that was ``made`` before; first the kind that is ``proposed``,
    with the reason.
    """
    before = []
    if made is not None:
        header, wanted = made.plan.header, made.plan.wanted
        text = f"continue plan {header.plan_id[:8]} ({wanted.kind}), the plan made before"
        before.append(AnswerOption(_MADE, text))
    first, why = (None, "") if proposed is None else proposed
    kinds = sorted(wizard.KINDS, key=lambda kind: kind is not first)
    return before + [
        AnswerOption(
            str(kind),
            wizard.reason_for(kind) + (f" ({why})" if kind is first else ""),
            _UPGRADE if static and kind is not _STATIC_KIND else "",
        )
        for kind in kinds
    ]
