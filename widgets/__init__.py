"""The console's widgets: they show values of recovery/ and post messages, and never call a cluster."""
