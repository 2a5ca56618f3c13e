"""Drills: thousands of incidents on the simulator, to compare what each recovery method loses."""
