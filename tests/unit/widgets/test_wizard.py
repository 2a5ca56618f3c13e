"""A guided change: what to run where, what is waited for, how far it is."""

from __future__ import annotations

from tests.unit.widgets.harness import Harness, text_of
from widgets import theme
from widgets.text import fold, line, plain
from widgets.wizard import Progress, Step, StepState, Wizard, WizardView, step_text

COMMAND = "kafka-storage.sh format --cluster-id MkU3OEVBNTcwNTJENDM2Qk --config /etc/kafka/c.properties"
STEPS = (
    Step("Stop controller 102", StepState.DONE),
    Step(
        "Format the new disk",
        StepState.CURRENT,
        host="kafka-c3",
        command=COMMAND,
        waits_for="102 fetches",
        wrong="a wrong id",
        back="put the old disk back",
    ),
    Step("Add voter 102", StepState.WAITING),
)


async def test_the_steps_have_their_state_in_words_and_the_command_word_for_word() -> None:
    view = WizardView()
    async with Harness(view, theme_name=theme.PLAIN).run_test(size=(80, 24)) as pilot:
        view.update(Wizard("Replace the disk of 102", STEPS, "2 of 2 voters up"))
        await pilot.pause()
        screen = text_of(pilot.app)
        for word in ("done       Stop", "NOW        Format", "not yet    Add", "Run on kafka-c3:", "2 of 2"):
            assert word in screen
    (first, *rest) = [plain(one) for one in fold(line("  " + COMMAND), 78, "    ")]
    assert " ".join([first.strip(), *(one.strip() for one in rest)]) == COMMAND


def test_catching_up_shows_how_far_and_how_long() -> None:
    step = Step("Catch up", StepState.CURRENT, progress=Progress(50, 200, "records", 125.0))
    text = "\n".join(plain(one) for one in step_text(step, 80))
    assert "25%  50 of 200 records, about 2 min left" in text
    none = Step("Catch up", StepState.CURRENT, progress=Progress(0, 0, "records"))
    assert "no estimate yet" in "\n".join(plain(one) for one in step_text(none, 80))


async def test_going_on_and_copying_are_asked_for() -> None:
    heard: list[object] = []

    class Guided(Harness):
        def on_wizard_view_go(self, message: WizardView.Go) -> None:
            heard.append(message.step.title)

        def on_wizard_view_copy_command(self, message: WizardView.CopyCommand) -> None:
            heard.append(message.command)

    view = WizardView()
    async with Guided(view).run_test(size=(80, 24)) as pilot:
        view.update(Wizard("Replace", STEPS))
        view.focus_first()
        await pilot.press("c", "enter")
        await pilot.pause()
        assert heard == [COMMAND, "Format the new disk"]
        view.update(Wizard("Replace", STEPS[:1]))
        await pilot.press("enter", "c")
        await pilot.pause()
        assert len(heard) == 2
        assert "all steps are done" in text_of(pilot.app)
