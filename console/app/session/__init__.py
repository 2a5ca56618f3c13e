"""One cluster in the console: when it is read, the current view, the plan, and whether it may be changed."""
