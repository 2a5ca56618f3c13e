"""Walks through commands: each command that is printed is carried out in the state in which it was printed.

A tree is walked: each command runs on a copy of the files that the command before it left, and on a cluster on
which the same changes were carried out. What a terminal would ask is agreed to.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from console.errors import Status
from tests.command_server import Ended

Run = Callable[[Sequence[str]], Ended]
"""Runs ``ktriage`` with these words, in the walk's home."""
PRINTED = re.compile(r"^(?:next: +| {2})(ktriage [^<>|\n]+)$|: (ktriage [^<>|`\n]+)$", re.MULTILINE)
"""``next: COMMAND``, the lines of a hand-over, and a command at the end of a sentence."""
NAMED_ONLY = re.compile(r"\b(?:DIR|LOG_DIR|HOST:PORT|COPY|FILE|WHY)\b| --wait\b")
"""Arguments that only the operator knows, such as paths of another host, and what waits for a host."""
UNDO = {"undo", "--undo"}
DONE = ", ended with status "
"""So goes on the line of a hand-over for a command that was carried out."""
AGREED = ("--yes", "--reason", "drill")
WAITS = (
    "check again when it is:",
    "plan again when what stands above is done:",
    "this command finishes it later:",
)
"""What is missing is done by others, on hosts or by time: only then a command may be its own next one."""
IN_VAIN = (Status.USAGE, Status.NOT_ASKED, Status.STALE)
"""How no command may end that was printed in the very state in which it is run."""


class Change(NamedTuple):
    """A command that changed the cluster, and the copy of the home directory in which it was given."""

    words: tuple[str, ...]
    home: Path


class Step(NamedTuple):
    """A command, the copy of the home directory that it runs in, the changes before it, and who printed it."""

    words: tuple[str, ...]
    home: Path
    changes: tuple[Change, ...] = ()
    printed_by: str = "the operator"


class CommandWalk:
    """``where`` names the cluster. ``begin`` makes it as it was before any command; nothing is to be made where the
    cluster's state is a file in ``home``.

    The home is always at the same path, as commands name files by it.
    """

    def __init__(
        self,
        run: Run,
        home: Path,
        copies: Path,
        where: tuple[str, ...],
        *,
        begin: Callable[[], None] | None = None,
        most: int = 150,
    ) -> None:
        self._run = run
        self._home = home
        self._copies = copies
        self._where = where
        self._begin = begin
        self._most = most
        self._copied = 0
        self._now: tuple[Change, ...] = ()
        self.steps = 0

    def troubles(self, first: Iterable[tuple[str, ...]]) -> Iterator[str]:
        """Carries out the first commands and each one that is printed; tells which could not succeed. Of the same
        changes in another order nothing is walked again.
        """
        untouched = self._copy()
        steps = deque(Step(self._at(words), untouched) for words in first)
        walked: set[tuple[str, frozenset[str]]] = set()
        while steps:
            step = steps.popleft()
            line = self._line(step.words)
            changed = [self._line(change.words) for change in step.changes]
            if (line, frozenset(changed)) in walked:
                continue
            walked.add((line, frozenset(changed)))
            after = f"{line}, printed by {step.printed_by} after {changed}"
            if len(walked) > self._most:
                yield f"{after}: printed commands lead to ever more commands"
                return
            ended, agreed = self._walk(step)
            told = f"{ended.out}\n{ended.err}"
            if ended.status in IN_VAIN and (step.printed_by != "the operator" or self._begin is None):
                yield f"{after}: ended with {ended.status}:\n{told}"
            changes = (*step.changes, Change(step.words, step.home)) if agreed else step.changes
            if agreed and UNDO & {*step.words}:
                continue  # the state is that of before, from which everything was walked
            home = self._copy()
            for words in _printed(told):
                if words == step.words and not any(wait in ended.err for wait in WAITS):
                    yield f"{after}: it is its own next command:\n{told}"
                elif changes and words == changes[-1].words:
                    yield f"{after}: it prints what was just carried out, {self._line(words)}:\n{told}"
                else:
                    steps.append(Step(words, home, changes, line))
            if agreed:
                steps += [Step(self._at((name,)), home, changes) for name in ("handover", "status")]

    def _at(self, words: tuple[str, ...]) -> tuple[str, ...]:
        named = any(word.startswith("--bootstrap-") for word in words)
        return words if named else (*words, *self._where)

    def _line(self, words: Sequence[str]) -> str:
        return shlex.join(word for word in words if word not in self._where)

    def _walk(self, step: Step) -> tuple[Ended, bool]:
        if self._now != step.changes and self._begin is not None:
            self._begin()
            for change in step.changes:
                self._back_to(change.home)
                self._given(change.words)
        self._back_to(step.home)
        ended, agreed = self._given(step.words)
        self.steps += 1
        self._now = (*step.changes, Change(step.words, step.home)) if agreed else step.changes
        return ended, agreed

    def _given(self, words: Sequence[str]) -> tuple[Ended, bool]:
        """The result, and whether it was asked and agreed to."""
        ended = self._run(words)
        if ended.status != Status.USAGE or "there is no terminal to ask on" not in ended.err:
            return ended, False
        agreed = AGREED if "--reason" in ended.err else AGREED[:1]
        return self._run((*words, *agreed)), True

    def _copy(self) -> Path:
        self._copied += 1
        return Path(shutil.copytree(self._home, self._copies / str(self._copied)))

    def _back_to(self, home: Path) -> None:
        for old in self._home.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        shutil.copytree(home, self._home, dirs_exist_ok=True)


def _printed(told: str) -> Iterator[tuple[str, ...]]:
    for line, at_the_end in PRINTED.findall(told):
        printed = line or at_the_end
        if NAMED_ONLY.search(printed) is None and (line or " --" in printed) and DONE not in printed:
            yield tuple(shlex.split(printed)[1:])
