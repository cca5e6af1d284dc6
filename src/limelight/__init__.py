"""limelight: decide how evenly a catalogue shares the limelight, and see what that costs."""
