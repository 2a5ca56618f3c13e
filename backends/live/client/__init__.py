"""Who we are to a cluster and where it is: a client.properties file, or its absence."""
