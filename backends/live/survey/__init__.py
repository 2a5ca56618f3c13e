"""How far each replica's log goes, by its own broker, all brokers at once."""
