"""What is read of a cluster before anything is judged or changed."""
