"""From a wish to a model: control by target, and the whole trade-off."""
