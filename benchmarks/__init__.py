"""Speed and memory beside Kafka's own tools, on a real cluster (``make bench``); results in ``results.md``.

Whole processes are compared, in turn on one machine, as medians after a warm-up. The result of each run is checked,
so a side that does less work cannot win.
"""
