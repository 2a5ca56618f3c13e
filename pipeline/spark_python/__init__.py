"""On the path of every Python process that Spark starts for a local session, which runs its ``sitecustomize``."""
