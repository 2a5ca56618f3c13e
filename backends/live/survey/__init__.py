"""The survey: each replica's log end and epochs, from its own broker, all brokers at once."""
