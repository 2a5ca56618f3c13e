"""Without the libraries of the extras everything works but what needs them, and that says how to get them."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXTRAS = (
    "numpy",
    "pyarrow",
    "deltalake",
    "pyspark",
    "cryptography",
    "gssapi",
    "textual_serve",
    "aiohttp",
    "prometheus_client",
    "apprise",
)


def without_extras(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command where Python finds none of these libraries."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"
        f"sys.argv = ['ktriage', *{words}]\n"
        "from console.cli.entry import ktriage; ktriage()"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=home,
        env={"PYTHONPATH": str(ROOT), "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("snapshot --simulate kills --out lake", "a snapshot needs pyarrow: pip install 'ktriage[large]'"),
        ("pipeline plan --in lake --out results", "the pipeline needs pyarrow: pip install 'ktriage[spark]'"),
        (
            "watch --bootstrap-server 127.0.0.1:1 --metrics-port 0",
            "--metrics-port and --metrics-file need prometheus-client: pip install 'ktriage[metrics]'",
        ),
        (
            "watch --bootstrap-server 127.0.0.1:1 --notify-urls client.properties",
            "--notify-urls needs apprise: pip install 'ktriage[notify]'",
        ),
        ("--simulate kills --serve", "--serve needs textual-serve: pip install 'ktriage[serve]'"),
        (
            "status --bootstrap-server 127.0.0.1:1 --command-config client.properties",
            "a PKCS12 store needs cryptography: pip install 'ktriage[pkcs12]' (a PEM file needs nothing)",
        ),
        (
            "status --bootstrap-server 127.0.0.1:1 --command-config kerberos.properties",
            "means GSSAPI: GSSAPI (Kerberos) needs gssapi: pip install 'ktriage[kerberos]'",
        ),
        (
            "status --bootstrap-server 127.0.0.1:1 --command-config jwt.properties",
            "to sign a JWT needs cryptography: pip install 'ktriage[jwt]'",
        ),
    ],
)
def test_what_needs_an_extra_names_it_and_its_command(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "store.p12").write_bytes(b"\x30\x82")
    (tmp_path / "client.properties").write_text(
        "security.protocol=SSL\nssl.truststore.location=store.p12\nssl.truststore.password=x\n"
    )
    (tmp_path / "kerberos.properties").write_text("security.protocol=SASL_SSL\n")
    (tmp_path / "jwt.properties").write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever\n"
        "sasl.oauthbearer.token.endpoint.url=https://idp.example/token\n"
        "sasl.oauthbearer.assertion.private.key.file=store.p12\n"
    )
    ended = without_extras(tmp_path, *line.split())
    assert ended.returncode == 2 and ended.stderr.splitlines()[-1].endswith(said), ended.stderr


def test_a_recovery_needs_no_extra(tmp_path: Path) -> None:
    cluster = ("--simulate", "stale-long-tail", "--state", "state.json")
    assert "OFFLINE" in without_extras(tmp_path, "status", *cluster).stdout.upper()
    strategy = ("--strategy", "aggressive")
    planned = without_extras(tmp_path, "plan", "--all-offline-partitions", "plan.json", *strategy, *cluster)
    assert planned.returncode == 0, planned.stderr
    applied = without_extras(tmp_path, "apply", "plan.json", *cluster, "--yes", "--reason", "test")
    assert applied.returncode == 0 and "elected" in applied.stdout, applied.stderr


def test_each_extra_that_is_named_is_there() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = set(settings["project"]["optional-dependencies"])
    named = {
        word.value
        for folder in ("backends", "console", "pipeline")
        for path in (ROOT / folder).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "missing_extra"
        for word in call.args[2:]
        if isinstance(word, ast.Constant)
    }
    assert named and named <= extras
