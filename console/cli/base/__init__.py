"""What every command uses: the run, its exit status, the operator at the terminal, options for partitions."""
