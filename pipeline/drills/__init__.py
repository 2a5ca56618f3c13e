"""Drills: thousands of incidents on the simulator, to compare what each way of recovering them costs."""
