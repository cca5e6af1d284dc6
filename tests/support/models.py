"""One small model for each way to fit factors."""

import limelight as ll

MODELS = {
    "ials": ll.IALS(factors=12, epochs=6, num_threads=1),
    "admm": ll.ExADMM(factors=12, epochs=12, solver="admm", exposure_weight=1e-4, num_threads=1),
    "exact": ll.ExADMM(factors=12, epochs=8, exposure_strength=0.5, num_threads=1),
}
