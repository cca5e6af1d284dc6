"""What the service is made of: what goes over the wire, limits, batches, arms and figures."""
