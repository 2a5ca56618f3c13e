"""One module a question or an order: what is sent, what the answer says, what can be wrong with it."""
