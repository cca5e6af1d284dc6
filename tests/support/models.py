"""One small model for each way to fit factors."""

import limelight as ll

FIXED = {"regularization": 0.003, "unobserved_weight": 0.1, "tolerance": 0.0}
"""For tests of formulas: numbers that do not depend on the data, and every epoch runs."""
MODELS = {
    "ials": ll.IALS(factors=12, epochs=6, num_threads=1),
    "admm": ll.ExADMM(factors=12, epochs=12, solver="admm", exposure_weight=1e-4, num_threads=1),
    "exact": ll.ExADMM(factors=12, epochs=8, exposure_strength=0.5, num_threads=1),
}
