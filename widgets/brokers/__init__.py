"""Pane 8: brokers."""

from widgets.brokers.broker_row import BrokerRow, BrokerState, BrokersView
from widgets.brokers.brokers_pane import BrokersPane

__all__ = ["BrokerRow", "BrokerState", "BrokersPane", "BrokersView"]
