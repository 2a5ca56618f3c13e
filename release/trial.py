"""``python -m release.trial DIST``: what a release has, tried as a stranger would on a locked-down host.

The wheelhouse is installed into an empty environment, and the one file is run, with each Python of this machine:
each serves a simulated cluster, checks it and recovers it as a user without a home, on a file system that is
read-only but for /tmp, and without a network but loopback. The source archive must give the released wheel, to the
byte.

It needs root on Linux: for the namespaces, which end with it. Status 1 if anything failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
NOBODY = "65534"
LOCKED_DOWN = r"""
set -eu
ip link set lo up
mount --make-rprivate /
mkdir -p "$TRIAL/python"
mount --bind "$PREFIX" "$TRIAL/python"
PYTHON="$TRIAL/python/bin/$NAME"
if [ -n "$WHEELHOUSE" ]; then
    "$PYTHON" -m venv "$TRIAL/venv"
    "$TRIAL/venv/bin/python" -m pip install --quiet --no-index --find-links "$WHEELHOUSE" \
        'ktriage[jwt,metrics,notify,pkcs12,serve]'
    set -- "$TRIAL/venv/bin/ktriage"
else
    set -- "$PYTHON" "$DIST/ktriage.pyz"
fi
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -o remount,ro,bind /
cd /tmp
exec setpriv --reuid NOBODY --regid NOBODY --clear-groups --no-new-privs \
    env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH="$TRIAL/python/lib" XDG_STATE_HOME=/tmp/state \
    "$PYTHON" "$TRIAL/story.py" "$@"
""".replace("NOBODY", NOBODY)
STORY = """
import os, subprocess, sys
program = sys.argv[1:]
def ktriage(*words, expected):
    ended = subprocess.run([*program, *words], capture_output=True, text=True, timeout=120)
    assert ended.returncode in expected, (words, ended.returncode, ended.stdout, ended.stderr)
    return ended.stdout
assert os.getuid() != 0 and "HOME" not in os.environ
try:
    open("/usr/written", "w")
except OSError:
    pass
else:
    sys.exit("the file system is not read-only")
print(ktriage("--version", expected=(0,)).strip(), "on", sys.version.split()[0])
served = subprocess.Popen([*program, "simulate", "serve", "stale-long-tail"], stdout=subprocess.PIPE, text=True)
try:
    while "ready" not in (line := served.stdout.readline()):
        assert line, "the simulator ended"
    cluster = ("--bootstrap-server", "127.0.0.1:19092")
    ktriage("check", *cluster, expected=(0, 1))
    strategy = ("--strategy", "aggressive")
    ktriage("plan", "--all-offline-partitions", "plan.json", *strategy, *cluster, expected=(0,))
    told = ktriage("apply", "plan.json", *cluster, "--yes", "--reason", "trial", expected=(0,))
    assert "elected" in told, told
finally:
    served.terminate()
    served.wait(60)
"""


def main(dist: Path) -> int:
    """Tries all of it; prints a line for each trial."""
    failed = 0
    with TemporaryDirectory(dir="/var/tmp", prefix="ktriage-trial-") as folder:  # /tmp is hidden later
        scratch = Path(folder)
        scratch.chmod(0o755)
        shutil.copytree(dist, scratch / "dist")
        (house,) = (scratch / "dist").glob("*-wheelhouse.tar")
        shutil.unpack_archive(house, scratch, filter="data")
        wheels = scratch / house.stem
        failed += _tell("the source archive gives the same wheel", _same_wheel(scratch))
        for number, python in enumerate(pythons()):
            for wheelhouse in (None, wheels):
                what = "ktriage.pyz" if wheelhouse is None else "the wheelhouse"
                trial = scratch / f"{number}-{'file' if wheelhouse is None else 'wheels'}"
                failed += _tell(f"{what} with {python}", _tried(trial, python, scratch / "dist", wheelhouse))
    return min(failed, 1)


def pythons() -> Iterator[Path]:
    """The real paths of the supported Pythons that this machine has, one of each version."""
    for name in PYTHONS:
        for place in (shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))):
            if place is not None and (prefix := _prefix(Path(place))):
                yield Path(prefix, "bin", name)
                break
        else:
            print(f"{name}: not on this machine, not tried")


def _prefix(python: Path) -> str:
    """Where this Python is installed; "" if it does not run."""
    ask = [str(python), "-c", "import sys; print(sys.base_prefix)"]
    ended = subprocess.run(ask, capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else ""


def _same_wheel(scratch: Path) -> str:
    (source,) = (scratch / "dist").glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(scratch / "again"), str(source))
    ended = subprocess.run([*pip, *build], capture_output=True, text=True, check=False)
    if ended.returncode:
        return ended.stderr
    (again,) = (scratch / "again").iterdir()
    return "" if again.read_bytes() == (scratch / "dist" / again.name).read_bytes() else "it is another"


def _tried(trial: Path, python: Path, dist: Path, wheelhouse: Path | None) -> str:
    """What went wrong, "" if nothing."""
    trial.mkdir()
    (trial / "story.py").write_text(STORY, "utf-8")
    environment = os.environ | {
        "TRIAL": str(trial),
        "PREFIX": str(python.parents[1]),
        "NAME": python.name,
        "DIST": str(dist),
        "WHEELHOUSE": "" if wheelhouse is None else str(wheelhouse),
    }
    for name in ("PYTHONPATH", "PIP_FIND_LINKS"):
        environment.pop(name, None)
    ended = subprocess.run(
        [shutil.which("unshare") or "unshare", "--net", "--mount", "sh", "-c", LOCKED_DOWN],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(ended.stdout, end="")
    return "" if ended.returncode == 0 else ended.stderr or f"status {ended.returncode}"


def _tell(what: str, wrong: str) -> int:
    print(f"{what}: {'FAILED' if wrong else 'ok'}", *([wrong] if wrong else []), flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
