"""Real Apache Kafka clusters on loopback, for tests, the demo and benchmarks.

::

    with KafkaCluster(ClusterSpec(brokers=3, log_dirs=2)) as cluster:      # brokers 1-3, controller 100
        cluster.client.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
        cluster.client.produce("orders", 0, 1000, acks="all").acknowledged   # values, in order
        cluster.node(1).kill()                                           # SIGKILL; also stop, pause, resume, start
        cluster.metadata.wait_fenced(1)                                  # conditions with a deadline
        cluster.tools("kafka-topics", "--describe").stdout                 # Java's own tools
        cluster.bootstrap(), cluster.bootstrap_controllers                 # host:port,...

``KafkaCluster(spec, directory=None, say=None, run_tools=...)``: ``start``, ``stop``, ``node(id)``, ``brokers``,
``controllers``, ``bootstrap(listener)``, ``bootstrap_controllers``, ``cluster_id``, ``bring_all_up()``,
``format_again(id)`` (an empty node that joins), and

- ``metadata`` (cluster_metadata.py): ``live_brokers``, ``partition``, ``partitions`` (with ELR, leader epoch);
  waits: ``wait_live``, ``wait_fenced``, ``wait_leader``, ``wait_offline``, ``wait_isr``, ``wait_partition``,
  ``wait_topic``, ``wait_on_disk``, ``wait_caught_up``
- ``client`` (client.py): ``create_topic``, ``produce``, ``produce_each`` (thousands of partitions), ``consume``
- ``tools`` (java_tools.py): Kafka's Java tools by the names that an operator types
- ``client_configs`` (client_config.py): ``client_properties`` for Java's tools
- ``links`` (links.py), with ``ClusterSpec(cuttable_links=True)``: ``cut(node, node)``, ``mend``
- ``access_control`` (access_control.py): ``allow``, ``deny``, ``set_scram_password``

``Node`` (node.py): ``start(jvm)``, ``stop``, ``kill``, ``pause``, ``resume``, ``restart``, ``is_running``,
``log_tail``, ``wipe_log_dir``, ``remove_log_dir``. ``incidents``: ``stale_long_tail``, ``isr_dead``,
``failed_disk``. ``log_files.read_log``: a replica's log, read from its files.

It needs Java 17 and, once, the network: Kafka's jars come from Maven Central and stay in the cache directory.
This package does not import the product's adapters, so tests can compare the two. All calls block; from a
coroutine, call them in a thread.
"""

from testbed.kafka.cluster import KafkaCluster
from testbed.kafka.config import ClusterSpec
from testbed.kafka.errors import NodeDied, TestbedError, TimedOut, ToolFailed
from testbed.kafka.listeners import ClientListener
from testbed.kafka.wait import wait_until

__all__ = [
    "ClientListener",
    "ClusterSpec",
    "KafkaCluster",
    "NodeDied",
    "TestbedError",
    "TimedOut",
    "ToolFailed",
    "wait_until",
]
