"""Real Apache Kafka clusters on loopback, for tests, the demo and benchmarks.

::

    with KafkaCluster(ClusterSpec(brokers=3, log_dirs=2)) as cluster:      # brokers 1-3, controllers 100-102
        cluster.traffic.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
        cluster.traffic.produce("orders", 0, 1000, acks="all").acknowledged   # values, in order
        cluster.node(1).kill()                                           # SIGKILL; also stop, pause, resume, start
        cluster.observe.wait_fenced(1)                                     # conditions with a deadline
        cluster.tools("kafka-topics", "--describe").stdout                 # Java's own tools
        cluster.bootstrap(), cluster.bootstrap_controllers                 # host:port,...

It needs Java 17 and, once, the network: Kafka's jars come from Maven Central and are kept in the cache directory.
Nothing here knows the product's adapters, so that tests can compare one with the other.
"""

from backends.testbed.cluster import KafkaCluster
from backends.testbed.config import ClusterSpec
from backends.testbed.errors import NodeDied, TestbedError, TimedOut, ToolFailed
from backends.testbed.security import Listener
from backends.testbed.waits import wait_until

__all__ = [
    "ClusterSpec",
    "KafkaCluster",
    "Listener",
    "NodeDied",
    "TestbedError",
    "TimedOut",
    "ToolFailed",
    "wait_until",
]
