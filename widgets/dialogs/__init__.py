"""Screens that ask: confirmation, help, the picker of profiles and scenarios."""
