"""How fast ``ktriage disk scan`` reads log dirs, against reading all bytes of their segments."""
