"""Random keys at a console whose cluster comes and goes.

``python -m benchmarks.console.random_keys [SEEDS [FIRST]]``. Keys come in bursts and wait for nothing; brokers hang
and come back; the terminal changes its size; the console changes to another cluster. With every seed the console
must not end, its main screen must stay, and no defect may be reported.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual import events

from backends.simulator.network import OPERATOR, broker
from console.app.app import Console, Options
from console.change.registry import KEYS
from console.output.screen import Screen
from console.program import Program
from console.signals import Supervisor
from console.target import resolve

SCENARIOS = ("last-replica-standing", "zone-power-loss", "controller-disk-failure", "disk-failure")
TURNS = 60
KEYS_OF_DIALOGS = (
    "escape",
    "enter",
    "enter",
    "down",
    "up",
    "tab",
    "space",
    "x",
    "1",
    "M",
    "A",
    "X",
    "c",
    "6",
)
ALL_KEYS = (*(action.key for action in KEYS if action.name != "quit"), *KEYS_OF_DIALOGS)
SIZES = ((80, 24), (1, 1), (20, 5), (200, 50), (120, 40))


class RandomKeys:
    """The run of one seed. ``wrong`` are the defects found."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  # no secrets here
        self.wrong: list[str] = []
        self.pressed: list[str] = []

    async def play(self) -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._loop_failed)
        target = resolve(None, None, self.random.choice(SCENARIOS), None)
        program = Program("ktriage", ("ktriage",), Screen(loop.time), Supervisor(lambda _signum: ""))
        app = _WatchedConsole(self, program, target, Options(beats=self.random.random() < 0.5, hush=0.0))
        try:
            async with app.run_test(size=(100, 30)) as pilot:
                for _ in range(TURNS):
                    await self._turn(app, pilot)
                    if app._exception is not None or app.return_code is not None:
                        break
                await asyncio.sleep(0)
                if app.return_code is not None:
                    self.wrong.append(f"it ended with {app.return_code}")
                elif not app.wrong and app.desk is None and app.session is not None:
                    self.wrong.append(f"the desk is gone: {app.screen_stack}")
                await app.close_session()
        except BaseException as error:  # reported with the seed
            self.wrong.append("".join(traceback.format_exception(error)))
        return self.wrong

    def _loop_failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if error is not None else str(context)
        self.wrong.append(f"in the loop: {context.get('message')}: {text}")

    async def _turn(self, app: Console, pilot: Any) -> None:
        chance = self.random.random()
        if chance < 0.75:
            for _ in range(self.random.randint(1, 6)):
                self._press(app, self.random.choice(ALL_KEYS))
        elif chance < 0.85:
            await self._cluster(app)
        elif chance < 0.9:
            await pilot.resize_terminal(*self.random.choice(SIZES))
        elif chance < 0.95 and app.session is not None:
            app.session.poller.ask()
        elif chance < 0.97:
            app.run_worker(app.open(resolve(None, None, self.random.choice(SCENARIOS), None)))
        await asyncio.sleep(self.random.choice((0, 0, 0, 0.01, 0.05, 0.3)))

    def _press(self, app: Console, key: str) -> None:
        character = {"slash": "/", "colon": ":", "question_mark": "?", "space": " "}.get(key)
        if character is None and len(key) == 1:
            character = key
        self.pressed.append(key)
        app.post_message(events.Key(key, character))

    async def _cluster(self, app: Console) -> None:
        session = app.session
        if session is None or session.view.cluster is None:
            return
        nodes = [broker(one.id) for one in session.view.cluster.brokers]
        cut = self.random.random() < 0.5

        async def job(backend: Any) -> None:
            network = backend.simulation.world.network
            (network.cut if cut else network.heal)([OPERATOR], nodes)

        try:
            await session._elsewhere.run(job)
        except Exception as error:  # the session may be closed by now
            self.pressed.append(f"({type(error).__name__})")


class _WatchedConsole(Console):
    """Collects every defect that would be written to a crash file."""

    def __init__(self, run: RandomKeys, *given: Any) -> None:
        super().__init__(*given)
        self.wrong = run.wrong

    def report(self, error: BaseException) -> str:
        self.wrong.append("".join(traceback.format_exception(error)))
        return super().report(error)


def main(words: Sequence[str]) -> int:
    seeds = int(words[0]) if words else 20
    first = int(words[1]) if len(words) > 1 else 1
    broken = 0
    for seed in range(first, first + seeds):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            os.environ |= {"XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
            os.chdir(home)
            run = RandomKeys(seed)
            wrong = asyncio.run(run.play())
            if wrong:
                broken += 1
                print(f"seed {seed}: {' '.join(run.pressed[-40:])}\n{wrong[0][-3000:]}", flush=True)
            os.chdir("/")
    print(f"{seeds} seeds from {first}: {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.exit(main(sys.argv[1:]))
