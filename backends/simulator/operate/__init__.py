"""The operator of a simulated cluster: asks over its network, and saves the session between commands."""
