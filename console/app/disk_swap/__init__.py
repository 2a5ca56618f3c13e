"""The guide through the replacement of a broker's disk."""
