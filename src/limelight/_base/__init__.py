"""What every room stands on; nothing here knows of recommenders."""
