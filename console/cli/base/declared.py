"""Options that several commands share: one spelling, one help text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from console.cli.base.declaration import argument, option
from console.cli.base.run import Output, PageOutput
from console.errors import InputError
from console.paths import use_records, use_state_dir
from console.target import Target, resolve
from recovery.ranking import Ranking
from recovery.strategy import Strategy


def _profiles(incomplete: str) -> list[str]:
    """Completes --cluster from the profiles' file, without contacting a cluster."""
    from console.settings import named_profiles  # noqa: PLC0415

    try:
        names = [profile.name for profile in named_profiles()]
    except InputError:
        return []
    return [name for name in names if name.startswith(incomplete)]


STATE_DIR = option(
    "--state-dir DIR",
    "The directory of the journal and the lock. Operators of this host can share it, and other"
    " hosts on a shared mount (docs/files.md). Also set by KTRIAGE_STATE_DIR, or by state-dir in the"
    " profile.",
)
OUTPUT = option(
    "--output", "table for people; json for programs, as docs/output.md describes it.", Output.TABLE
)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Which cluster, and how it is reached."""

    bootstrap_server: str | None = option(
        "--bootstrap-server HOST:PORT[,…]",
        "Brokers to contact first. The other brokers are found through them.",
    )
    cluster: str | None = option(
        "--cluster PROFILE",
        "A profile of ~/.config/ktriage/clusters.yaml or /etc/ktriage/clusters.yaml, instead of"
        " --bootstrap-server.",
        autocompletion=_profiles,
    )
    simulate: str | None = option(
        "--simulate SCENARIO", "A simulated cluster instead of a real one (ktriage simulate list)."
    )
    seed: int | None = option("--seed N", "With --simulate: the seed of the run. Default: 1.", min=0)
    state: Path | None = option(
        "--state FILE",
        "With --simulate: the file that saves the simulation between commands. Default: a file for"
        " each scenario and seed in the state directory.",
    )
    bundle: Path | None = option(
        "--bundle FILE",
        "A file that ktriage bundle wrote, instead of a cluster: the cluster as it was. Nothing is asked.",
    )
    command_config: Path | None = option(
        "--command-config FILE",
        "A client.properties file with security.protocol, sasl.* and ssl.*, as Kafka's own tools read it.",
    )
    broker: list[str] | None = option(
        "--broker ID=HOST:PORT", "Use this address for the broker, not its advertised one. May be repeated."
    )
    controller: list[str] | None = option(
        "--controller ID=HOST:PORT",
        "Use this address for the controller, not the one that the quorum lists. May be repeated.",
    )
    state_dir: Path | None = STATE_DIR

    @property
    def named(self) -> bool:
        """Whether anything of a cluster is given."""
        values = asdict(self)
        return any(value not in (None, []) for name, value in values.items() if name != "state_dir")

    def target(self, *, controllers: bool = False, metadata_dir: Path | None = None) -> Target:
        """Raises InputError, as :func:`console.target.resolve`."""
        given = asdict(self) | {"broker": self.broker or (), "controller": self.controller or ()}
        return resolve(**given, controllers=controllers, metadata_dir=metadata_dir)

    def use_state_dir(self, target: Target | None) -> None:
        """Decides where the journal and the lock of this process lie; of a bundle, its own. Raises InputError."""
        if target is None:
            use_state_dir(self.state_dir)
        elif target.bundle is not None:
            from console.bundle_files import unpack_records  # noqa: PLC0415

            use_records(unpack_records(target.bundle))
        else:
            use_state_dir(target.state_dir, target.state)


@dataclass(frozen=True, slots=True)
class ControllerOptions(ClusterOptions):
    """Which cluster, also through its controllers alone."""

    bootstrap_controller: str | None = option(
        "--bootstrap-controller HOST:PORT[,…]",
        "Controllers to contact instead of brokers, if the brokers are down.",
    )


@dataclass(frozen=True, slots=True)
class DurationLimit:
    """--recovery-duration-ms with a unit."""

    duration: str | None = option(
        "--duration TIME",
        "How long brokers that do not answer are asked, such as 5s or 2m: --recovery-duration-ms with a unit."
        " Default: what default.api.timeout.ms says in client.properties, or 30s.",
    )


PAGE_OUTPUT = option(
    "--output", "text, markdown for a ticket, html for a page, json for programs.", PageOutput.TEXT
)


@dataclass(frozen=True, slots=True)
class OutputForm:
    """The form of the results."""

    output: Output = OUTPUT


DURATION_MS = 30_000
ATTEMPTS = 3


def own_words(reason: str | None) -> str | None:
    """What stands for the reason in a printed command is no reason. Raises BadParameter."""
    if reason is not None and reason.strip() == "WHY":
        raise typer.BadParameter("say why in your own words: WHY only stands for the reason")
    return reason


EVIDENCE_FILES = option(
    "--evidence FILE",
    "What ktriage disk scan --output json read from the disk of a broker that is down: it counts as that"
    " broker's answer, and it cannot be chosen. May be repeated.",
)
METADATA_DIR = option(
    "--metadata-dir DIR",
    "A copy of __cluster_metadata-0 from any controller or broker, or the log dir that contains it. It"
    " tells who was in sync when the active controller cannot be reached.",
)
RANKING = option(
    "--ranking",
    "Which log is the best. last-record: the log whose last record has the highest epoch, then"
    " the longest log. specification: the log whose broker knows the highest leader epoch, then the"
    " longest log.",
    Ranking.LAST_RECORD,
)
STRATEGY = option(
    "--strategy",
    "When to elect. aggressive: at once, the best of the replicas that answered. balanced: where the"
    " best of them is proved to hold every record that was acknowledged with acks=all, or nothing can prove it"
    " any more; it refuses where a high watermark contradicts the ranking, and waits otherwise. complete: only"
    " when every replica answered. none: never, report only.",
    Strategy.BALANCED,
)
ACCEPT_UNCHECKED = option(
    "--accept-unchecked",
    "With strategy balanced: elect also where no acknowledged record is lost only if conditions hold that"
    ' were not checked, or that there are signs against ("none, unchecked", "none, in doubt"), and where a'
    " broker could be brought back first. Needs --reason, which the plan and the journal keep.",
)
PATH_TO_JSON_FILE = option(
    "--path-to-json-file FILE",
    'A file with the partitions: {"partitions": [{"topic": "foo", "partitions": [0, 3]}]}.',
)
ALL_OFFLINE = option("--all-offline-partitions", "All partitions without a leader.")
RECOVERY_DURATION_MS = option(
    "--recovery-duration-ms MS",
    "The time limit for brokers to answer, in milliseconds. Later answers are ignored. The"
    " command continues as soon as all have answered.",
    DURATION_MS,
    min=1,
)
RECOVERY_ATTEMPTS = option(
    "--recovery-election-attempts N",
    "How often an election is retried after a temporary failure.",
    ATTEMPTS,
    min=0,
)
TOPICS = option(
    "--topic TOPIC", "This topic. May be repeated. With --partition: only those of its partitions."
)
PARTITIONS = option("--partition N", "A partition of the one --topic. May be repeated.", min=0)
ROWS = option("--rows N", "How many partitions the table shows, the worst first; 0: all.", 20, min=0)
ROWS_IF_MANY = option(
    "--rows N",
    "How many partitions the table shows, the worst first; 0: all. Default: all partitions that"
    " are named, else 20.",
    min=0,
)
YES = option("--yes", "Do not ask for confirmation. Needs --reason.")
REASON = option("--reason TEXT", "The reason, for the journal.", callback=own_words)
NOT_REBUILT = option(
    "--not-rebuilt",
    "Somebody has looked (quorum evidence, with brokers' logs: a voter's log does not show it) that nobody has"
    " rebuilt the quorum: brokers that were not asked, or are down and do not come back, are then no reason against"
    " replacing or removing a voter that is down. Not where no broker follows the quorum.",
)
REVIEWED_BY = option("--reviewed-by NAME", "The person who reviewed the plan. Needs --digest.")
DIGEST = option(
    "--digest SHA256",
    "The digest of the reviewed plan, as ktriage review prints it. A file with another digest is refused.",
)
KEEP_LOG_OF = option(
    "--keep-log-of BROKERS",
    "Brokers that are down, such as 3 or 2,3, or silent for each that is down and unread: take them out of"
    " the replica sets right after the elections, so that they set their logs aside when they start, and cut"
    " nothing off. Partitions where that is not possible are not elected.",
)
RATE = option(
    "--rate BYTES",
    "At most so many bytes a second from each broker, such as 50MB or 8MiB. Default: no limit.",
)
RESCUE_DIRECTORY = argument("DIR", "The rescue directory.")
RESCUED_MARKERS = option(
    "--rescue DIR",
    "A rescue of what the elections cut off: a transaction whose marker is in it is known to be committed"
    " or aborted.",
)
PLAN_FILE = argument("PLAN", "The plan file.")
