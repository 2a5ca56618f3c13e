"""What a person sees: takes recovery's values, emits messages, and asks nobody for anything."""
