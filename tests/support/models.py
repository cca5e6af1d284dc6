"""One small model for each way to fit factors."""

import limelight as ll

FIXED = {"regularization": 0.003, "unobserved_weight": 0.1, "tolerance": 0.0}
"""For tests of formulas: numbers that do not depend on the data, and every epoch runs."""
_SHARED = {"factors": 12, "tolerance": 0.0, "num_threads": 1}
MODELS = {
    "ials": ll.IALS(epochs=6, **_SHARED),
    "admm": ll.ExADMM(epochs=12, solver="admm", exposure_weight=1e-4, **_SHARED),
    "exact": ll.ExADMM(epochs=8, exposure_strength=0.5, **_SHARED),
}
