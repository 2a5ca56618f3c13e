"""The main screen: the panes, what surrounds them, and what can be done with any of them."""
