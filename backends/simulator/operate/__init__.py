"""The operator's side: asking a simulated cluster over its network, and keeping a simulation from run to run."""
