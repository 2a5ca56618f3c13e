"""The plan from the keyboard: chosen, edited, saved, compared, confirmed, applied."""
