"""Finds a partition by what is typed of its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod
from operator import itemgetter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.fuzzy import FuzzySearch
from textual.screen import ModalScreen
from textual.widgets import Input

from recovery.model import TopicPartition
from recovery.wording.quantity_text import counted, more, printable
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.fields import natural
from widgets.lifecycle import when_ready
from widgets.text import Line, Piece, Tone, cut, fold, line
from widgets.text_lines import Lines

SHOWN = 200
"""So many matches are listed; to see others, type more of the name."""


class PartitionNames:
    """The partitions by topic, to be searched at each key."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self._topics: dict[str, list[TopicPartition]] = {}
        for tp in partitions:
            self._topics.setdefault(tp.topic, []).append(tp)
        self.number = sum(map(len, self._topics.values()))
        self._fuzzy = FuzzySearch()

    def matching(self, text: str) -> list[TopicPartition]:
        """The partitions whose name has the letters of the text, in this order: "ord 17" is orders-17. Those that
        have the text itself come first, then the shortest way to the letters, then by name and number. A number at
        the end is that of the partition, or belongs to the topic's name.
        """
        wanted = " ".join(text.lower().split())
        split = _WITH_NUMBER.fullmatch(wanted)
        head, number = (wanted, "") if split is None else split.groups()
        found: list[tuple[_Rank, TopicPartition]] = []
        for topic, partitions in self._topics.items():
            whole, named = self._score(wanted, topic), self._score(head, topic) if number else 0.0
            if not (whole or named):
                continue
            order = natural(topic)
            for tp in partitions:
                numbered = named if str(tp.partition).startswith(number) else 0.0
                score = max(whole, numbered)
                if score:
                    exact = numbered > 0 and tp.partition == int(number)
                    literal = str(tp).lower().startswith(wanted.replace(" ", "-"))
                    found.append(
                        ((not (exact and numbered >= whole), not literal, -score, order, tp.partition), tp)
                    )
        found.sort(key=itemgetter(0))
        return [tp for _, tp in found]

    def _score(self, words: str, topic: str) -> float:
        """How well a topic's name has the letters of every word; 0 where it has not."""
        return min(
            (self._word_score(word, topic.lower()) for word in re.split(r"[ -]+", words) if word), default=1.0
        )

    def _word_score(self, word: str, topic: str) -> float:
        letters = iter(topic)
        if not all(letter in letters for letter in word):
            return 0.0
        # The matcher tries every way to have the letters: in a name of many equal letters these are too many.
        ways = prod(topic.count(letter) for letter in word)
        return self._fuzzy.match(word, topic)[0] if word in topic or ways <= MOST_WAYS else 1.0


_WITH_NUMBER = re.compile(r"(.*?)[ -]+(\d+)")
_Rank = tuple[bool, bool, float, tuple[str | int, ...], int]
MOST_WAYS = 500


class PartitionFinder(DismissOnce[TopicPartition | None], ModalScreen[TopicPartition | None]):
    """Ends with the partition that was chosen, or None. ``bookmarks`` were found earlier; they are offered before
    anything is typed.
    """

    DEFAULT_CSS = """
    PartitionFinder { align: center middle; }
    PartitionFinder > Vertical {
        width: 90%; max-width: 90; height: auto; max-height: 100%; border: round $primary; padding: 0 1;
        background: $surface;
    }
    PartitionFinder Input { height: 1; border: none; padding: 0 1; background: $panel; }
    PartitionFinder Input:focus { border: none; }
    PartitionFinder #matches { height: auto; max-height: 10; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
    ]

    def __init__(self, partitions: Sequence[TopicPartition], bookmarks: Sequence[TopicPartition]) -> None:
        super().__init__()
        self._names = PartitionNames(partitions)
        self._bookmarks = tuple(bookmarks)
        self._found: list[TopicPartition] = list(bookmarks)
        self._cursor = 0

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._head, focusable=False)
            yield Input(placeholder="letters of the topic, and a number: ord 17 is orders-17")
            yield Lines(self._matches, id="matches", focusable=False)

    @when_ready
    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        typed = event.value.strip()
        self._found = self._names.matching(typed) if typed else list(self._bookmarks)
        self._cursor = 0
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._found:
            self.dismiss(self._found[self._cursor])

    def action_move(self, step: int) -> None:
        self._cursor = min(max(self._cursor + step, 0), max(len(self._found[:SHOWN]) - 1, 0))
        self._show()

    def action_leave(self) -> None:
        self.dismiss(None)

    def _show(self) -> None:
        matches = self.query_one("#matches", Lines)
        matches.show_again()
        matches.scroll_to(y=max(self._cursor - 5, 0), animate=False, force=True)

    def _head(self, width: int) -> list[Line]:
        head = line(
            Piece("Find a partition in every pane ", Tone.STRONG), Piece("Enter: go there   Esc: cancel")
        )
        return fold(head, width)

    def _matches(self, width: int) -> list[Line]:
        typed = self.is_mounted and bool(self.query_one(Input).value.strip())
        if not self._found:
            text = (
                "no partition has that name" if typed else f"{counted(self._names.number, 'partition')} known"
            )
            return [line(Piece(cut(f"  {text}", width), Tone.WARN if typed else Tone.DIM))]
        lines = [] if typed else [line(Piece("found before:", Tone.DIM))]
        for number, tp in enumerate(self._found[:SHOWN]):
            here = number == self._cursor
            lines.append(
                line(
                    Piece(f"{'►' if here else ' '} {printable(str(tp))}", Tone.CURSOR if here else Tone.PLAIN)
                )
            )
        left = more(len(self._found) - SHOWN, "", "  ")
        return [*lines, *(line(Piece(text, Tone.DIM)) for text in left)]
