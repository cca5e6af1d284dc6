"""From factors to lists: fold-in of unseen users and exact top-k. Arrays in, arrays out."""
