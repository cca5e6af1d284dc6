"""Arrays, tables and model folders on disk, written whole or not at all; knows no model."""
