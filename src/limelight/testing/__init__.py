"""What tests of models built on limelight are made from.

``contracts`` holds tests that every model inherits; ``planted`` makes data whose answer is known.
"""
