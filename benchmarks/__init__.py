"""Speed and memory beside Kafka's own tools, on a real cluster (``make bench``); results in ``results.md``.

Whole processes are compared: interleaved in one run on one machine, medians after a warm-up. What is asked and
sent is checked after each run, so that a side which does less cannot win.
"""
