"""``python -m console.cli``: ktriage with the running Python interpreter. A served console is started like
this.
"""

from console.cli.entry import ktriage

ktriage()
