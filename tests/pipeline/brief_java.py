"""The options of a Java that the tests start themselves."""

from __future__ import annotations

BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""The first compiler, with as much room for its code as both would have (with less it throws code away and compiles
it again), and the simplest collector: none of these processes has much to do.
"""
