"""Every setting of the experiments, written down once more: none changes unnoticed."""

import pytest

from limelight.data.synthetic import marketplace
from limelight.lab.paper.experiments import EXPERIMENTS
from limelight.lab.paper.methods import methods_of
from limelight.lab.paper.paired import LEVELS
from limelight.lab.paper.plan import METHODS, OVER_IALS, TIMED_METHODS, ReproductionPlan, label
from limelight.lab.paper.points import FEW_POINTS, LARGE, MANY_ITEMS, MOST_POINTS, STANDARD
from limelight.lab.paper.rerankers import RERANKER_SHARES, first_settings, reranking_method
from limelight.models import IALS

EPINIONS_FILTERS = {
    "rating": "rating",
    "min_rating": 4,
    "min_user": 20,
    "min_item": 20,
    "filter_order": "together",
}
FILTERS = {
    "epinions": EPINIONS_FILTERS,
    "ml-20m": {"rating": "rating", "min_rating": 4, "min_user": 5},
    "msd": {"min_item": 200, "min_user": 20, "filter_order": "items-first"},
    "letterboxd": {"rating": "rating", "min_rating": 8, "min_user": 5},
    "gowalla": {},
}
SIZES = {
    "epinions": (6_287, 3_999, 129_574),
    "ml-20m": (136_677, 20_108, 9_990_682),
    "msd": (571_355, 41_140, 33_633_450),
    "letterboxd": (49_659, 12_809, 8_734_130),
    "gowalla": (29_858, 40_981, 1_027_370),
}
# Held-out users, factors, cutoffs of Figure 1, of Table 3.
PROTOCOLS = {
    "epinions": (500, 32, (5, 10, 20), (5, 20)),
    "ml-20m": (10_000, 256, (10, 20, 50), (10, 50)),
    "msd": (50_000, 512, (10, 20, 50), (10, 50)),
    "letterboxd": (5_000, 256, (10, 20, 50), (10, 50)),
    "gowalla": (3_000, 128, (5, 10, 20), (5, 20)),
}
# Exposure weights of Figure 2 in its order, those between them, and the range that is searched.
WEIGHTS = {
    "epinions": ((2e-4, 3e-3, 9e-2), (1e-6, 1e-5), (1e-7, 1.0)),
    "ml-20m": ((1e-10, 1e-7, 3e-6), (), (1e-10, 1e-4)),
    "msd": ((1e-12, 1e-10, 1e-3), (1e-7,), (1e-12, 1e-3)),
    "letterboxd": ((1e-10, 1e-7, 3e-6), (), (1e-10, 1e-4)),
    "gowalla": ((1e-7, 1e-5, 1e-3), (), (1e-9, 1e-1)),
}
# Weights of the loss that the search begins with, of iALS and of exADMM: a0 and lambda.
FIRST = {
    "epinions": ((0.06, 7e-4), (0.06, 2e-4)),
    "ml-20m": ((0.1, 0.003), (0.1, 0.002)),
    "msd": ((0.03, 5e-4), (0.02, 0.002)),
    "letterboxd": ((0.1, 0.003), (0.1, 0.002)),
    "gowalla": ((0.01, 0.005), (0.01, 0.005)),
}
RAW = {
    "epinions": (("user", "item", "rating"), " "),
    "msd": (("user", "item", "count"), "\t"),
}
# Table 3: seconds to train, to infer at the two lengths.
NA = None
TIMES = {
    "epinions": {
        "iALS": (0.7, 0.1, 0.1),
        "Mult-VAE": (72.6, 0.5, 0.5),
        "iALS+FairRec": (0.7, 0.3, 0.3),
        "Multi-FR": (4011.3, 0.5, 0.5),
        "exADMM": (1.7, 0.4, 0.4),
    },
    "ml-20m": {
        "iALS": (67.2, 4.2, 4.2),
        "Mult-VAE": (1872.6, 14.7, 14.7),
        "iALS+FairRec": (67.2, 23.3, 30.1),
        "Multi-FR": (NA, NA, NA),
        "exADMM": (98.0, 9.5, 9.5),
    },
    "msd": {
        "iALS": (857.6, 39.4, 39.4),
        "Mult-VAE": (22580.1, 145.2, 145.2),
        "iALS+FairRec": (857.6, NA, NA),
        "Multi-FR": (NA, NA, NA),
        "exADMM": (1533.1, 89.6, 89.6),
    },
    "letterboxd": {},
    "gowalla": {},
}


def test_every_experiment_is_written_down() -> None:
    assert list(EXPERIMENTS) == list(SIZES)
    for written in (FILTERS, PROTOCOLS, WEIGHTS, FIRST, TIMES):
        assert list(written) == list(EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_data_and_protocol(name) -> None:
    one = EXPERIMENTS[name]
    assert one.reading == FILTERS[name]
    assert one.size == SIZES[name]
    assert (one.held_out, one.factors, one.cutoffs, one.timed) == PROTOCOLS[name]
    assert (one.weights, one.between, one.weight_range) == WEIGHTS[name]
    for own, first in zip((one.ials, one.exadmm), FIRST[name], strict=True):
        assert own == {"unobserved_weight": first[0], "regularization": first[1]}
    assert one.raw == RAW.get(name)
    assert {who: (time.training, *time.inference) for who, time in one.times.items()} == TIMES[name]
    assert one.is_published == (name in ("epinions", "ml-20m", "msd"))


LOSS = {"regularization": (1e-4, 1.0, True, False), "unobserved_weight": (1e-4, 1.0, True, False)}
DROPOUT = (0.1, 0.9, False, False)
SPACES = {
    "Random": {},
    "Popularity": {},
    "iALS": LOSS,
    "iALS-settings": LOSS,
    "exADMM": LOSS,
    "exADMM-exact": LOSS,
    "EASE": {
        "regularization": (10.0, 10_000.0, True, False),
        "exposure_strength": (1e-3, 1e3, True, False),
    },
}
# Share of the time, whether evenness is searched for, the paper's epochs.
SEARCHES = {
    "Random": (0.0, False, None),
    "Popularity": (0.0, False, None),
    "iALS": (0.06, False, 50),
    "iALS-settings": (0.1, True, 50),
    "Mult-VAE": (0.3, False, 200),
    "Multi-FR": (0.5, True, 500),
    "exADMM": (0.14, True, 50),
    "exADMM-exact": (0.14, True, 50),
    "EASE": (0.05, True, None),
}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_what_is_searched(experiment) -> None:
    one = EXPERIMENTS[experiment]
    methods = methods_of(one, factors=8, epochs=None, threads=1)
    assert set(methods) | set(OVER_IALS) == set(METHODS)
    for name, method in methods.items():
        assert (method.share, method.controls, method.epochs) == SEARCHES[name]
        if name in SPACES:
            weight = {"exposure_weight": (*one.weight_range, True, False)}
            assert method.space == SPACES[name] | (weight if "exADMM" in name else {})
    for name in ("iALS", "iALS-settings"):
        assert methods[name].first == [one.ials]
    for name in ("exADMM", "exADMM-exact"):
        assert methods[name].first == [
            {**one.ials, "exposure_weight": one.weight_range[0]},
            *({**one.exadmm, "exposure_weight": weight} for weight in one.weights),
        ]
    assert [own["exposure_strength"] for own in methods["EASE"].first] == [1e-3, 0.1, 1.0, 10.0]
    assert {own["regularization"] for own in methods["EASE"].first} == {300.0}


def test_ranges_of_the_networks_that_the_paper_states() -> None:
    methods = methods_of(EXPERIMENTS["epinions"], factors=8, epochs=None, threads=1)
    fair, vae = methods["Multi-FR"].space, methods["Mult-VAE"].space
    assert fair["patience"] == (0.6, 1.0, False, False)
    assert fair["temperature"] == (1e-3, 1.0, True, False)
    assert fair["dropout"] == vae["dropout"] == DROPOUT
    assert vae["beta"] == (0.1, 1.0, False, False)


def test_fits_of_factors_end_where_the_objective_stands_still() -> None:
    methods = methods_of(EXPERIMENTS["msd"], factors=8, epochs=None, threads=3, seed=7)
    for name in ("iALS", "iALS-settings", "exADMM", "exADMM-exact"):
        config = methods[name].make(methods[name].first[0]).config
        assert (config.epochs, config.tolerance, config.factors) == (500, 1e-5, 8)
        assert (config.random_state, config.num_threads) == (7, 3)
        assert methods[name].is_kept
    assert methods["exADMM"].fixed["solver"] == "admm"
    assert methods["exADMM-exact"].fixed["solver"] == "exact"
    assert not methods["EASE"].is_kept


def test_no_method_trains_for_longer_than_asked() -> None:
    methods = methods_of(EXPERIMENTS["msd"], factors=8, epochs=3, threads=1)
    assert {method.fixed.get("epochs", 3) for method in methods.values()} == {3}


@pytest.mark.parametrize(("latent", "width"), [(None, 8), (200, 200)])
def test_all_methods_have_vectors_of_one_length(latent, width) -> None:
    methods = methods_of(EXPERIMENTS["msd"], factors=8, epochs=None, threads=1, latent=latent)
    for name in ("iALS", "iALS-settings", "exADMM", "exADMM-exact"):
        assert methods[name].fixed["factors"] == 8
    assert methods["Multi-FR"].fixed["latent"] == width
    assert {methods["Mult-VAE"].fixed[layer] for layer in ("hidden", "latent")} == {width}
    plan = ReproductionPlan(experiment=EXPERIMENTS["msd"], factors=8, latent=latent)
    assert (plan.width, plan.latent_width) == (8, width)


def test_what_is_searched_of_re_rankers(tiny_model) -> None:
    fair = reranking_method("iALS+FairRec", tiny_model, 5)
    assert fair.space == {
        "length": (5, 50, True, True),
        "scale": (0.01, 1.0, True, False),
        "forced": (0, 1, False, True),
    }
    assert fair.first == [
        {"length": 5, "scale": scale, "forced": 0} for scale in (0.01, 0.1, 0.3, 0.6, 0.8, 1.0)
    ]
    market = reranking_method("iALS+BestResponse", tiny_model, 5)
    assert market.space == {"strength": (1e-3, 10.0, True, False)}
    assert market.first == first_settings("iALS+BestResponse", 9)
    assert [own["strength"] for own in market.first] == [0.01, 0.1, 0.3, 1.0]
    assert RERANKER_SHARES == {"iALS+FairRec": 0.06, "iALS+BestResponse": 0.05}
    assert (fair.controls, market.controls) == (True, True)


@pytest.fixture
def tiny_model():
    return IALS(factors=4, epochs=1).fit(marketplace(80, 60, 900).interactions)


def test_order_of_tables_and_lines() -> None:
    assert METHODS == (
        "Random",
        "Popularity",
        "iALS",
        "iALS-settings",
        "Mult-VAE",
        "iALS+FairRec",
        "Multi-FR",
        "exADMM",
        "exADMM-exact",
        "iALS+BestResponse",
        "EASE",
    )
    assert TIMED_METHODS == (
        "iALS", "Mult-VAE", "iALS+FairRec", "Multi-FR", "exADMM", "exADMM-exact"
    )  # fmt: skip
    ours = [name for name in METHODS if "(ours, not in the paper)" in label(name)]
    assert ours == ["iALS+BestResponse", "EASE"]
    assert [label(name) for name in METHODS[3:4] + METHODS[7:9]] == [
        "iALS, settings alone", "exADMM as published", "exADMM exact"
    ]  # fmt: skip
    plan = ReproductionPlan(experiment=EXPERIMENTS["msd"], methods=("EASE", "exADMM", "iALS"))
    assert plan.order == ["iALS", "exADMM", "EASE"]


def test_what_is_measured() -> None:
    assert STANDARD == ("ndcg@100", "recall@20", "recall@50")
    assert (MOST_POINTS, FEW_POINTS, LARGE, MANY_ITEMS) == (12, 5, 100_000_000, 10_000)
    assert LEVELS == (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)
