"""Pane 8: brokers."""

from widgets.brokers.broker_row import BrokerHealth, BrokerRow, BrokersView
from widgets.brokers.brokers_pane import BrokersPane

__all__ = ["BrokerHealth", "BrokerRow", "BrokersPane", "BrokersView"]
