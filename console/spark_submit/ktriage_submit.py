"""The script for spark-submit: ``ktriage`` with the words that follow it.

    spark-submit --py-files ktriage-VERSION-py3-none-any.whl ktriage_submit.py pipeline plan --in LAKE --out RESULTS

It is alone in its directory, which Python puts in front of the wheel.
"""

import sys

try:
    from console.cli.entry import ktriage

    ktriage()
except ModuleNotFoundError as missing:
    sys.exit(
        f"ktriage: no module {missing.name} for the driver, {sys.executable}: name ktriage's wheel by --py-files,"
        " and install what it needs (its extra spark) for that Python"
    )
