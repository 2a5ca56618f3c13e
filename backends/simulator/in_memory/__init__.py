"""A simulated cluster for the live adapter, in this process and in virtual time: nothing is sent on a network."""
