"""What tests of limelight, and of models built on it, are made from.

``oracles`` holds the NumPy twins of the kernels and steps, in float64 and written to be read;
``planted`` makes data whose answer is known; ``contracts`` holds tests that every model inherits.
"""
