"""The picker: the profiles of the settings file, and the scenarios of the simulator."""

from __future__ import annotations

from pathlib import Path

from console.errors import InputError
from console.paths import SYSTEM_PROFILES, config_dir
from console.target import Target, resolve
from widgets.dialogs.cluster_picker import ClusterChoice, ClusterKind


def places() -> tuple[ClusterChoice, ...]:
    """What can be opened: profiles, then scenarios. A settings file that cannot be read is a line that says so. No
    cluster is contacted.
    """
    return (*_profiles(), *_scenarios())


def profiles_file() -> str:
    """Where profiles are written, as a person types it."""
    path = config_dir() / "clusters.yaml"
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def target_of(place: ClusterChoice) -> Target:
    """Raises InputError."""
    if place.kind is ClusterKind.PROFILE:
        return resolve(None, place.name, None, None)
    if place.kind is ClusterKind.ADDRESS:
        return resolve(place.name, None, None, None)
    return resolve(None, None, place.name, None)


def _profiles() -> tuple[ClusterChoice, ...]:
    from console.settings import named_profiles  # noqa: PLC0415  # pydantic and yaml are for the picker only

    path = config_dir() / "clusters.yaml"
    if not path.exists() and not SYSTEM_PROFILES.exists():
        return ()
    try:
        profiles = named_profiles()
    except InputError as error:
        # The line and the mistake first: the full path is below the list.
        problem = str(error).removeprefix(f"{path}:").strip()
        problem = f"line {problem}" if problem[:1].isdigit() else problem
        return (ClusterChoice(ClusterKind.PROFILE, path.name, f"in {path}", problem=problem),)
    return tuple(
        ClusterChoice(
            ClusterKind.PROFILE,
            one.name,
            "",
            one.profile.bootstrap or "in Kubernetes",
            one.read_only_by is not None,
        )
        for one in profiles
    )


def _scenarios() -> tuple[ClusterChoice, ...]:
    from backends.simulator.scenario.files import names, read  # noqa: PLC0415

    return tuple(ClusterChoice(ClusterKind.SCENARIO, name, read(name).title) for name in names())
