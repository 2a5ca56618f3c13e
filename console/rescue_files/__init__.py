"""What a rescue keeps on disk: directories, manifests, branches, batches, and what is restored of them."""
