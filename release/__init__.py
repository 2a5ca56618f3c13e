"""How ktriage is packed: what is built from the repository, and nothing that runs in the product."""
