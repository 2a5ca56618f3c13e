"""The main screen: the panes, the bars around them, and the actions for all panes."""
