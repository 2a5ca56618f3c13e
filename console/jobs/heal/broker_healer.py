"""Gives partitions new replicas in place of the broker under the cursor: read, ask, move, report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from console.app.base.confirmed_change import asked_on_screen
from console.app.base.key_desk import KeyDesk
from console.app.base.screen_calls import Handlers
from recovery.wording.quantity_text import brokers_are, counted, human_bytes, ids, more
from widgets.dialogs.confirmation import ConfirmAnswer, ConfirmOption, ConfirmRequest
from widgets.text import Tone

if TYPE_CHECKING:
    # Imported where replicas are moved: they are not needed for the first frame.
    from console.jobs.heal.heal_replicas import HealReplicas, PreparedHeal

SHOWN = 4
"""Partitions that the question names."""
BATCH = 100
RATES = (50_000_000, 10_000_000, None)
"""Bytes a second of each broker to choose from; None: no throttle."""


class BrokerHealer:
    """What the key of a heal does, for the broker under the cursor."""

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk

    def handlers(self) -> Handlers:
        undo = "taking back the last heal"
        return {
            "heal": self._begin,
            "undo_heal": lambda: self._desk.tasks.begin(undo, self._heal(frozenset(), undo=True)),
        }

    def _begin(self) -> None:
        broker = self._desk.table().cursor_key
        if not isinstance(broker, int):
            self._desk.say("put the cursor on the broker that does not come back", Tone.WARN)
            return
        what = f"new replicas in place of broker {broker}"
        self._desk.tasks.begin(what, self._heal(frozenset((broker,)), undo=False))

    async def _heal(self, brokers: frozenset[int], *, undo: bool) -> None:
        from console.jobs.heal.heal_replicas import HealLimits, HealReplicas  # noqa: PLC0415  # see above
        from console.jobs.heal.heal_survey import HealSelection  # noqa: PLC0415  # see above

        self._desk.say("")
        session, cluster_id = self._desk.session, self._desk.session.view.cluster_id
        selection = HealSelection() if undo else HealSelection(brokers, confirmed=True)
        change = HealReplicas(selection, session.target.title, "", HealLimits(None, BATCH), undo=undo)
        prepared = await self._desk.prepared(change, cluster_id, "reading who has room")
        if not prepared.moves and not prepared.cancelled:
            left = prepared.left
            none = (
                "the last heal is taken back"
                if undo
                else f"no partition has a replica on broker {ids(brokers)}"
            )
            why = f"{left[0].tp}: {left[0].why}" if left else none
            self._desk.say(f"there is nothing to move: {why}", Tone.WARN)
            return

        def agreed(answer: ConfirmAnswer) -> HealReplicas:
            limits = HealLimits(None if prepared.simulated else RATES[answer.option], BATCH)
            return replace(change, reason=answer.reason, limits=limits, compared=prepared)

        sent = await self._desk.change(
            _request(change, prepared, ids(brokers), session.target.marked_title),
            agreed,
            cluster_id,
            "moving replicas back" if undo else "copying to new replicas",
        )
        if sent is None:
            return
        from console.jobs.heal.heal_report import HEALED  # noqa: PLC0415  # see above

        session.poller.ask()
        healed = sent.result
        only_then = brokers_are(sorted(prepared.gone), "up")
        whole = not (healed.open or healed.prepared.left)
        self._desk.tell(
            sent, HEALED, whole=whole, undo="" if undo else f"U takes it back once {only_then} again"
        )


def _request(change: HealReplicas, prepared: PreparedHeal, broker: str, title: str) -> ConfirmRequest:
    """The number of partitions is typed, and a reason is given."""
    from console.jobs.heal.heal_report import heal_summary_lines  # noqa: PLC0415  # see above

    number = len(prepared.moves) + len(prepared.cancelled)
    reported = [] if prepared.reading is None else list(heal_summary_lines(prepared.reading))
    reported += [
        f"{move.tp}: replicas {ids(move.before)} become {ids(move.after)}" for move in prepared.moves[:SHOWN]
    ]
    reported += more(len(prepared.moves) - SHOWN, " (ktriage heal show lists them)")
    reported += [
        f"{move.tp}: its reassignment is cancelled, the replicas are {ids(move.before)} again"
        for move in prepared.cancelled[:SHOWN]
    ]
    partitions = counted(number, "partition")
    if prepared.simulated:
        reported.append("No throttle: a simulated cluster copies at once.")
    asked = f"New replicas for {partitions} in place of broker {broker}?"
    return asked_on_screen(
        change.question(prepared),
        f"Take the last heal back, for {partitions}?" if change.undo else asked,
        (f"{title}, cluster {prepared.cluster_id}", *reported),
        label="Move",
        opened_by="U" if change.undo else "N",
        options=() if prepared.simulated else tuple(map(_option, RATES)),
        option_label="Throttle",
    )


def _option(rate: int | None) -> ConfirmOption:
    if rate is None:
        return ConfirmOption("no throttle", "No throttle: clients may become slow.", Tone.WARN)
    speed = f"{human_bytes(rate)}/s"
    text = (
        f"Copies at {speed} at most, per broker and direction. If producers write more, the copy never ends."
    )
    return ConfirmOption(speed, text)
