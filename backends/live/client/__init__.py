"""Client settings: bootstrap servers, TLS, SASL and timeouts, from a client.properties file or without one."""
