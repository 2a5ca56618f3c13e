"""A guided change: what to run where, what is waited for, how far it is."""

from __future__ import annotations

from pathlib import Path

from console.jobs.quorum.replacement_run import LoadedReplacement
from console.jobs.quorum.wizard_screens.screen import shown
from console.jobs.quorum.wizard_screens.wizard import ReplacementProgress
from recovery.membership.replacement import (
    ReplacementHeader,
    ReplacementKind,
    ReplacementPlan,
    ReplacementRequest,
)
from recovery.membership.replacement_file import notes, steps
from recovery.membership.replacement_state import QuorumPicture, current, situation
from tests.unit.membership.quorums import CLUSTER, key, progress, quorum, voters
from tests.unit.widgets.harness import Harness, text_of
from widgets import theme
from widgets.text import Piece, fold, line, plain
from widgets.wizard import StepProgress, StepState, Wizard, WizardStep, WizardView, step_text

COMMAND = "kafka-storage.sh format --cluster-id MkU3OEVBNTcwNTJENDM2Qk --config /etc/kafka/c.properties"
STEPS = (
    WizardStep("Stop controller 102", StepState.DONE),
    WizardStep(
        "Format the new disk",
        StepState.CURRENT,
        host="kafka-c3",
        commands=(COMMAND,),
        waits_for="102 fetches",
        wrong=("a wrong id",),
        back="put the old disk back",
    ),
    WizardStep("Add voter 102", StepState.WAITING),
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


async def test_steps_are_seen_where_the_current_one_leaves_room_for_them() -> None:
    steps = (
        WizardStep("Read the old disk", StepState.CURRENT),
        *(WizardStep(f"Later {n}", StepState.WAITING) for n in range(12)),
    )
    view = WizardView()
    async with Harness(view, theme_name=theme.PLAIN).run_test(size=(80, 20)) as pilot:
        view.update(Wizard("Replace the disk", steps, "1 disk failed"))
        await pilot.pause()
        assert "Later 11" in text_of(pilot.app)
        await pilot.resize_terminal(80, 14)
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "Later 5" in screen
        assert screen.count("Read the old disk") == 2  # in the list, and in full below it


async def test_the_cluster_and_whether_it_is_armed_stay_seen_at_every_step() -> None:
    """The wizard hides the title bar, which says it elsewhere."""
    where = (Piece(" READ-ONLY "), Piece("production"))
    view = WizardView()
    async with Harness(view, theme_name=theme.PLAIN).run_test(size=(80, 24)) as pilot:
        for now in range(14):
            states = [
                StepState.DONE if n < now else StepState.CURRENT if n == now else StepState.WAITING
                for n in range(14)
            ]
            steps = tuple(
                WizardStep(f"Step {n} of the host", state, wrong=("a long text " * 60,))
                for n, state in enumerate(states)
            )
            view.update(Wizard("Replace the host", steps, where=where))
            await pilot.pause()
            screen = text_of(pilot.app)
            assert "READ-ONLY" in screen, f"at step {now}"
            assert screen.count(f"Step {now} of the host") == 2, f"in the list and in full, at step {now}"


def test_catching_up_shows_how_far_and_how_long() -> None:
    step = WizardStep("Catch up", StepState.CURRENT, progress=StepProgress(50, 200, "records", 125.0))
    text = "\n".join(plain(one) for one in step_text(step, 80))
    assert "25%  50 of 200 records, about 2 min left" in text
    none = WizardStep("Catch up", StepState.CURRENT, progress=StepProgress(0, 0, "records"))
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


def replacement() -> ReplacementPlan:
    """The disk of 3, which leads nothing."""
    wanted = ReplacementRequest(
        ReplacementKind.DISK, CLUSTER, voters(1, 2, 3).voters, (key(3),), (3,), leader=1
    )
    return ReplacementPlan(
        ReplacementHeader("id", "2026-03-01", "ada", "0.1.0"), wanted, steps(wanted), notes(wanted)
    )


def wizard_at(
    picture: QuorumPicture, *, seconds_left: float | None = None, plan: ReplacementPlan | None = None
) -> Wizard:
    """The steps of the ``plan``, else of :func:`replacement`, as the console shows them with the cluster in
    ``picture``.
    """
    plan = plan or replacement()
    step = current(plan, picture)
    seen = None if step is None else situation(plan, step, picture)
    return shown(
        LoadedReplacement.of(plan, Path("plan.json")),
        ReplacementProgress(step, seen, seconds_left),
        done=step is None,
    )


def test_a_replacement_goes_on_from_where_the_cluster_is() -> None:
    plan = replacement()
    running = wizard_at(QuorumPicture(quorum(1, 2, 3)))
    assert running.current is not None and running.current.title == plan.steps[0].title
    assert running.current.commands == plan.steps[0].commands
    stopped = wizard_at(QuorumPicture(quorum(1, 2, 3, down=(3,))))
    assert stopped.steps[0].state is StepState.DONE
    assert stopped.current is not None and stopped.current.title == plan.steps[1].title


def test_a_host_that_a_later_step_told_stands_in_the_command_that_names_it() -> None:
    wanted = ReplacementRequest(
        ReplacementKind.HOST, CLUSTER, voters(1, 2, 3).voters, (key(3),), (4,), leader=1
    )
    plan = ReplacementPlan(replacement().header, wanted, steps(wanted), notes(wanted))
    assert any("HOST-OF-4:PORT" in line for step in plan.steps for line in step.commands)
    joined = wizard_at(QuorumPicture(quorum(1, 2, 4)), plan=plan).current
    assert joined is not None and "bootstrap.servers" in joined.title
    assert "controller.quorum.bootstrap.servers=host1:9093,host2:9093,host4:9093" in joined.commands
    assert not any("HOST-OF" in text for text in (*joined.commands, *joined.wrong))


def test_catching_up_of_a_newcomer_has_a_bar_and_an_estimate() -> None:
    newcomer = key(3, "new-dir")
    seen = quorum(1, 2, observers=(newcomer,))
    behind = tuple(progress(p.key, behind=400) if p.key == newcomer else p for p in seen.progress)
    wizard = wizard_at(QuorumPicture(quorum(1, 2, progress=behind)), seconds_left=65.0)
    assert wizard.current is not None
    assert wizard.current.progress == StepProgress(100, 500, "offsets", 65.0)


def test_a_step_says_how_to_go_back_and_what_the_voters_tolerate_afterwards() -> None:
    now = wizard_at(QuorumPicture(quorum(1, 2, 3))).current
    assert now is not None
    text = "\n".join(plain(one) for one in step_text(now, 80))
    assert "To go back: " in text and "Afterwards, with all of them up: voters" in text


def test_what_would_stop_the_quorum_is_said_before_it_is_done() -> None:
    wizard = wizard_at(QuorumPicture(quorum(1, 2, 3, down=(2,))))
    assert wizard.current is not None
    text = "\n".join(plain(one) for one in step_text(wizard.current, 120))
    assert "Not yet: stopping 3 would stop the quorum" in text
