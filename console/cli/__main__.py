"""``python -m console.cli``: ktriage by this very interpreter, as a served console starts it."""

from console.cli.main import main

main()
