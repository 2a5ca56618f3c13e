"""The nodes of one cluster: brokers and controllers, whom to ask, and whether they are who they should be."""
