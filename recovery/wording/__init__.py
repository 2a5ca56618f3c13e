"""Values in words, each wording in one place: for screens, tables of the command line, and markdown alike.

It stands in ``recovery/`` because the plan's own review and markdown need the words too. It knows no screen.
"""
