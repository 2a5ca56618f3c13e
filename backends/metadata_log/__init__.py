"""Where the cluster's metadata log is read from."""
