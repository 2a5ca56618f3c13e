"""Results as Markdown, each target beside its figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.measure import Side

MIB = 2**20


class RatioTarget(NamedTuple):
    """At most ``ratio`` times the other side's wall time; ``aim`` is a better value that we want to reach."""

    ratio: float
    aim: float | None = None

    def verdict(self, ratio: float) -> str:
        """One sentence with the figure, the target and whether it was met."""
        target = f"target: at most {self.ratio:g}" + (f", aim {self.aim:g}" if self.aim else "")
        if ratio > self.ratio:
            return f"Ratio **{ratio:.2f}** ({target}): **missed**."
        reached = self.aim is None or ratio <= self.aim
        return f"Ratio **{ratio:.2f}** ({target}): met" + ("." if reached else ", the aim missed.")


def ratio_of(sides: Sequence[Side]) -> float:
    """The first side's median wall time over the second's."""
    ours, theirs, *_ = sides
    return ours.figures.seconds / theirs.figures.seconds


def compared(sides: Sequence[Side], target: RatioTarget) -> Iterator[str]:
    """A table of all sides, and the sentence about the target: the first side over the second."""
    yield "| | median | fastest to slowest | CPU time | peak memory |"
    yield "|---|---:|---:|---:|---:|"
    for side in sides:
        f = side.figures
        yield (
            f"| `{side.name}` | {f.seconds:.2f} s | {f.fastest:.2f} to {f.slowest:.2f} s"
            f" | {f.cpu:.2f} s | {f.peak / MIB:.0f} MiB |"
        )
    yield ""
    yield target.verdict(ratio_of(sides))


def planned(rows: Iterable[tuple[str, int, Mapping[str, float]]]) -> Iterator[str]:
    """A table of ranking, loss and planning: shape, partitions, and seconds and bytes by name."""
    yield "| logs | partitions | decide | loss of the choice | make the plan | peak memory | surveys alone |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for shape, partitions, figures in rows:
        yield (
            f"| {shape} | {partitions:,}"
            f" | {figures['decide']:.2f} s | {figures['loss']:.2f} s | {figures['plan']:.2f} s"
            f" | {figures['peak'] / MIB:.0f} MiB | {figures['peak_of_surveys'] / MIB:.0f} MiB |"
        )


def growth(small: Mapping[str, float], large: Mapping[str, float]) -> float:
    """How many times longer the large one took, all three steps together."""

    def seconds(figures: Mapping[str, float]) -> float:
        return figures["decide"] + figures["loss"] + figures["plan"]

    return seconds(large) / seconds(small)
