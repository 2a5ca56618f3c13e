"""The Textual app: start, end, and which screen is shown."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.screen import Screen
from textual.widgets import Input

from backends.base.protocol import Backend
from console import backends
from console.app.main_screen.key_actions import of_pane, without_action
from console.app.main_screen.main_screen import MainScreen
from console.app.main_screen.palette import NOT_NOW, ActionCommands, Palette, Themes
from console.app.session.halt import ConsoleSupervisor
from console.app.session.safety import forbidden
from console.app.session.session import Opening, Session
from console.app.terminal import ConsoleDriver
from console.app.typed_ahead import LEAVES, KeyHasActed, Typed, TypedAhead
from console.change.registry import KEYS
from console.errors import InputError
from console.paths import state_dir, use_state_dir
from console.program import Program
from console.redaction import redact
from console.signals import LIMIT_SECONDS, StopRequest, status_of_signal
from console.target import Target
from widgets import theme
from widgets.bars.message_bars import MessageBar
from widgets.text import Tone

if TYPE_CHECKING:
    from backends.metadata_log.copied_log import CopiedMetadataLog
    from widgets.dialogs.cluster_picker import ClusterChoice

HINT = "New here? ? shows every key, : the commands, W the words, f finds a partition."


def is_first_run(state: Path) -> bool:
    """Whether no console has been open with that state directory; from now on one has. False if that cannot be
    written down: a hint at every start helps nobody.
    """
    mark = state / "console-opened"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    return True


def remembered_theme(state: Path) -> str:
    """The theme that was chosen last on this machine; "" where none was, or it cannot be read."""
    try:
        return (state / "theme").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def remember_theme(state: Path, name: str) -> bool:
    """Whether the next console will have it."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        (state / "theme").write_text(f"{name}\n", encoding="utf-8")
    except OSError:
        return False
    return True


TOO_EARLY = "keys that came before the question did nothing: nobody had read it"

LOOKS_SECONDS = 0.02
"""How often is looked whether the field is there that keys wait for."""

_EPOCH = time.time() - time.monotonic()


def steady_clock() -> float:
    """Seconds since the epoch, by a clock that never goes back."""
    return _EPOCH + time.monotonic()


@dataclass(frozen=True, slots=True)
class Options:
    """How the console is opened. ``make`` creates the backend of a target; ``clock`` returns monotonic
    seconds; ``beats``: simulated time moves by itself. ``hush``: after a cancelled confirmation, keys are
    ignored until there was a pause of this many seconds, because they were meant for the confirmation. ``hints``:
    the first console on this machine says where help is. ``copy`` is a copied metadata log of the target.
    """

    read_only: bool = False
    served: bool = False
    guide: bool = False
    hints: bool = False
    beats: bool = True
    hush: float = 0.5
    clock: Callable[[], float] = steady_clock
    copy: CopiedMetadataLog | None = None
    make: Callable[[Target, Callable[[str], None]], Backend] = field(default=backends.backend)


class Console(App[int], inherit_bindings=False):
    """One terminal, at most one cluster. ``target`` None opens the picker, because no cluster is remembered."""

    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "colon"
    COMMANDS: ClassVar[Any] = {ActionCommands}
    TITLE = "ktriage"
    CSS_PATH: ClassVar[Any] = Path(__file__).with_name("console.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(act.key, f"act('{act.name}')", act.label, show=False)
            for act in KEYS
            if act.name != "palette"
        ),
        Binding("ctrl+c", "say_quit", show=False, priority=True),
    ]

    def __init__(self, program: Program, target: Target | None, options: Options) -> None:
        no_color = bool(os.environ.get("NO_COLOR"))
        driver = None if options.served else ConsoleDriver
        # None: as the theme has it.
        super().__init__(driver_class=driver, ansi_color=no_color or None)
        theme.install(self, no_color)
        self._keeps_theme = not (no_color or options.served)
        self.animation_level = "none"
        self.program = program
        self.options = options
        self.session: Session | None = None
        self.warnings: list[str] = []
        self.last_line = ""
        self._first = target
        self._typed: tuple[float, bool] = (float("-inf"), False)
        self._ahead = TypedAhead()
        self._handing_on = False
        self._leaving: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._letting_go = False

    @property
    def stop(self) -> StopRequest:
        return self.program.supervisor.stop

    @property
    def desk(self) -> MainScreen | None:
        return next((screen for screen in self.screen_stack if isinstance(screen, MainScreen)), None)

    async def on_mount(self) -> None:
        self._choose_theme()
        supervisor = self.program.supervisor
        if isinstance(supervisor, ConsoleSupervisor):
            supervisor.asked = self.leave
        if self._first is not None:
            await self.open(self._first)
        else:
            self.pick()

    def _choose_theme(self) -> None:
        """The remembered one, else one that the terminal has the colours for."""
        if not self._keeps_theme:
            return
        wanted = remembered_theme(state_dir())
        if wanted in self.available_themes:
            self.theme = wanted
        elif self.console.color_system == "standard" and not self.is_headless:
            self.theme = theme.SIXTEEN

    def action_change_theme(self) -> None:
        """Every theme by its name; the one that is chosen is remembered."""
        themes = Palette(providers=[Themes], placeholder="how the console looks: type a name, Enter takes it")
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(themes)

    def use_theme(self, name: str) -> None:
        """From now on, and in the next console."""
        self.theme = name
        remembered = self._keeps_theme and remember_theme(state_dir(), name)
        if self.desk is not None:
            self.desk.say(
                f"theme {name}" if remembered else f"theme {name}, for this console only", Tone.INFO
            )

    async def open(self, target: Target) -> None:
        """Opens that cluster instead of the current one."""
        async with self._opening:
            await self.close_session()
            await self._open(target)

    async def _open(self, target: Target) -> None:
        why = forbidden(
            read_only_option=self.options.read_only, profile=target.read_only, served=self.options.served
        )
        say = self.warnings.append
        make = self.options.make
        copy = self.options.copy if target is self._first else None
        opening = Opening(
            target, lambda: make(target, say), self.options.clock, why, self.options.beats, copy
        )
        hinted = self.options.hints and not self.options.guide and is_first_run(state_dir())
        desk = MainScreen(self, opening, guide=self.options.guide, hint=HINT if hinted else "")
        session = self.session = desk.session
        await self.push_screen(desk)
        session.start()

    async def close_session(self) -> None:
        if self.session is None:
            return
        session = self.session
        self._letting_go = True
        try:
            await session.landed(lambda: self.stop.flights, LIMIT_SECONDS)
            session.silence()
            self.session = None
            while len(self.screen_stack) > 1:
                await self.pop_screen()
            await session.close()
        finally:
            self._letting_go = False

    def pick(self, note: str = "", address: str = "") -> None:
        """Shows the picker. If the console has no cluster it is the only screen, and leaving it ends the
        console.
        """
        from console.app.picker import places, profiles_file  # noqa: PLC0415  # not if a cluster is given
        from widgets.dialogs.cluster_picker import ClusterPicker  # noqa: PLC0415

        picker = ClusterPicker(places(), note, profiles=profiles_file(), address=address)
        self.push_screen(picker, self._picked)

    def _picked(self, place: ClusterChoice | None) -> None:
        if place is None:
            if self.session is None:
                self.exit(0)
            return
        from console.app.picker import target_of  # noqa: PLC0415  # as above
        from widgets.dialogs.cluster_picker import ClusterKind  # noqa: PLC0415

        try:
            target = target_of(place)
            use_state_dir(target.state_dir, target.state)
        except InputError as error:
            self.pick(str(error), place.name if place.kind is ClusterKind.ADDRESS else "")
            return
        self.run_worker(self.open(target), name="open")

    def leave(self, status: int = 0) -> None:
        """Ends in order: what is in flight is finished or undone first, within the time limit."""
        if self._leaving is None:
            self._say_what_is_waited_for()
            self._leaving = asyncio.create_task(self._leave(status), name="leave")

    def take_warnings(self) -> list[str]:
        """The warnings from opening the cluster that were not shown yet."""
        warnings, self.warnings = self.warnings, []
        return warnings

    def is_leaving(self) -> bool:
        """From now on no operation that sends may start."""
        return self._letting_go or self._leaving is not None

    def _say_what_is_waited_for(self) -> None:
        if self.stop.flights and self.desk is not None:
            signum = self.stop.signum
            why = f"{signal.Signals(signum).name}: " if signum is not None else ""
            self.desk.say(f"{why}what is in flight is finished first, then the console ends", Tone.WARN)

    async def _leave(self, status: int) -> None:
        session = self.session
        if session is not None and not await session.landed(lambda: self.stop.flights, LIMIT_SECONDS):
            resume = f": {self.program.resume}" if self.program.resume else ""
            self.last_line = f"{self.program.name}: what was in flight may be unfinished{resume}"
            status = 1
        if session is not None:
            await session.close()
        signum = self.stop.signum
        self.exit(status if signum is None else status_of_signal(signum))

    def terminal_lost(self) -> None:
        """The terminal is gone without a signal: handled like SIGHUP."""
        self.leave(1)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and not self.screen_stack:
            return  # the last keys, while the last screen closes
        if isinstance(event, events.Key | events.MouseDown):
            self._somebody_is_there()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._typed_one(event)
        else:
            await super().on_event(event)

    async def _typed_one(self, event: Typed) -> None:
        """Hands it on, or keeps it until the key before it has acted."""
        if self._ahead or self._ahead.must_wait(self.desk, self.screen):
            self._ahead.add(event, self.screen)
            self._hand_on_later()
        else:
            await self._hand_on(event)

    def _hand_on_later(self) -> None:
        if not self._handing_on:
            self._handing_on = True
            self.set_timer(LOOKS_SECONDS, self._hand_on_what_waits, name="keys")

    async def _hand_on_what_waits(self) -> None:
        self._handing_on = False
        while self._ahead and self.screen_stack and not self._ahead.must_wait(self.desk, self.screen):
            event = self._ahead.take(self.screen)
            if event is not None:
                await self._hand_on(event)
            elif self.desk is not None:
                self.desk.say(TOO_EARLY, Tone.WARN)
        if self._ahead:
            self._hand_on_later()

    async def _hand_on(self, event: Typed) -> None:
        if isinstance(event, events.Key) and self._meant_elsewhere(event):
            return
        handed_to = self.focused or self.screen
        command = self._ahead.is_command(event, self.desk, self.screen)
        await super().on_event(event)
        if command:
            self._ahead.acts(handed_to)

    @on(KeyHasActed)
    def _key_has_acted(self, marker: KeyHasActed) -> None:
        self._ahead.acted(marker)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A field that opened takes the keys now."""
        self._ahead.focused(event.widget)

    def _meant_elsewhere(self, event: events.Key) -> bool:
        return self._meant_for_what_closed(event) or self._meant_for_what_opens(event)

    def _meant_for_what_closed(self, event: events.Key) -> bool:
        """Whether a person may still be typing into a confirmation that was closed; a pause ends this. A
        person who pressed Apply has finished typing.
        """
        from widgets.dialogs.confirmation import Confirmation  # noqa: PLC0415  # after the first frame

        at, there = self._typed
        here = isinstance(self.screen, Confirmation) and not self.screen.on_apply
        meant = there and self.screen is self.desk and event.time - at < self.options.hush
        self._typed = (event.time, here or meant)
        if meant and self.desk is not None:
            self.desk.say("a key so soon after a question does nothing: press it again", Tone.WARN)
        return meant

    def _meant_for_what_opens(self, event: events.Key) -> bool:
        """Whether the key came while the main screen still shows and a question is about to open: nobody has read
        that question, so the key does not answer it either.
        """
        desk = self.desk
        if desk is None or self.screen is not desk or event.key in LEAVES:
            return False
        return desk.tasks.withholds()

    def _somebody_is_there(self) -> None:
        """An armed console stays armed. A blinking cursor would send data over ssh twice a second for
        nothing, so it does not blink.
        """
        if self.session is not None:
            self.session.touch()
        if isinstance(self.focused, Input):
            self.focused.cursor_blink = False

    async def action_act(self, name: str) -> None:
        """A key of the registry: several panes may have an action of their own for it."""
        desk = self.desk
        if desk is not None and self.screen is desk:
            desk.act(of_pane(name, desk.pane))

    def on_key(self, event: events.Key) -> None:
        """A key that nobody took and no binding has is answered: silence looks like a console that hangs."""
        desk, shown = self.desk, self.screen
        typed = desk is None or shown is not desk or isinstance(self.focused, Input)
        if desk is not None and not typed and event.key not in shown.active_bindings:
            desk.say(without_action(event.key, event.character or ""), Tone.WARN)

    def action_say_quit(self) -> None:
        """The screen that shows messages: a screen with its own message line covers that of the main screen."""
        lines = self.screen.query(MessageBar)
        if self.screen is not self.desk and lines:
            lines.first().say("Esc leaves this")
        elif self.desk is not None:
            self.desk.say("q quits" if self.screen is self.desk else "Esc leaves this")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A colon is a character where something is typed, as in an address; elsewhere it opens the palette."""
        if action == "command_palette" and (self.screen is not self.desk or isinstance(self.focused, Input)):
            return False
        return super().check_action(action, parameters)

    def action_command_palette(self) -> None:
        """As Textual's, but without an id: the closing one may still be there when the next is opened."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette())

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: the registry's actions in their order; disabled ones with the reason."""
        desk = self.desk
        if desk is None or screen is not desk:
            return
        for action, why in desk.actions():
            about = f"{NOT_NOW}{why}" if why else ""
            yield SystemCommand(action.title, about, lambda name=action.name: desk.act(name))

    def _fatal_error(self) -> None:
        """Prints one line and writes a redacted file: Textual would print a traceback with locals, which
        contain credentials.
        """
        error = self._exception
        assert error is not None
        self.last_line = self.report(error)
        if self.session is not None:
            self.session.silence()  # a refresh that ends now has no screen any more
        self._close_messages_no_wait()

    def report(self, error: BaseException) -> str:
        """Writes the crash file and returns the line that says where it is."""
        from console.crash import write_crash  # noqa: PLC0415  # only a crash needs it

        what = f"internal error ({type(error).__name__})"
        try:
            path = write_crash(error, self.program.argv, state_dir() / "crashes", datetime.now(UTC))
        except OSError as failed:
            return redact(f"{self.program.name}: {what}; its report could not be written ({failed.strerror})")
        return f"{self.program.name}: {what}; its report is in {path}"
