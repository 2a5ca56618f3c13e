#!/usr/bin/env python3
"""Stands for kubectl: pods.json has the pods, ports.json where each listens; a forward really forwards.

What it was asked stands in asked.log, each connection in connections.log, its process id in NAME.pid.
"""

import json
import os
import socket
import sys
import threading
from pathlib import Path

HOME = Path(os.environ["FAKE_KUBE"])


def note(file: str, line: str) -> None:
    with (HOME / file).open("a") as output:
        output.write(f"{line}\n")


def copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def forward(pod: str, local: int) -> None:
    (HOME / f"{pod}.pid").write_text(str(os.getpid()))
    ports = json.loads((HOME / "ports.json").read_text())
    if pod not in ports:
        print(f"error: unable to forward port because pod {pod} is gone", file=sys.stderr)
        sys.exit(1)
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", local))
    server.listen()
    print(f"Forwarding from 127.0.0.1:{server.getsockname()[1]} -> 9092", flush=True)
    while True:
        client, _ = server.accept()
        note("connections.log", pod)
        broker = socket.create_connection(("127.0.0.1", ports[pod]))
        for ends in ((client, broker), (broker, client)):
            threading.Thread(target=copy, args=ends, daemon=True).start()


def main(words: list[str]) -> None:
    note("asked.log", " ".join(words))
    if "get" in words:
        answer = HOME / "pods.json"
        if not answer.exists():
            print('Error from server (Forbidden): pods is forbidden: User "ada" cannot list', file=sys.stderr)
            sys.exit(1)
        print(answer.read_text())
        return
    forward(words[-2].removeprefix("pod/"), int(words[-1].partition(":")[0] or 0))


main(sys.argv[1:])
