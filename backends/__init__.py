"""How a cluster is reached: one protocol (``base``), and its adapters."""
