"""What a request costs is measured, and random searches are compared."""

import json

import pytest

from limelight._native import kernels, use_variant
from limelight.lab.bench import serve_engine


@pytest.mark.parametrize("variant", kernels.variants())
def test_random_searches_find_the_same_with_a_first_pass(variant):
    with use_variant(variant):
        found = serve_engine.count_differences(400, users_a_catalogue=20, seed=7)
    assert found.requests == 400
    assert found.different == 0
    assert found.by_first_pass > 200


def test_the_command_prints_a_record(capsys, monkeypatch):
    monkeypatch.setattr(serve_engine, "CATALOGUES", (600, 700))
    asked = ["--items", "5000", "--factors", "8", "--rounds", "1", "--requests", "20"]
    assert serve_engine.main(asked) == 0
    record = json.loads(capsys.readouterr().out)
    plain, controlled = record["requests"]
    assert (plain["candidates"], controlled["candidates"]) == (0, 1000)
    assert set(plain["times_the_product"]) == {"without first pass", "with first pass"}
    assert record["control"]["large_over_small"] > 0
    assert {one["different"] for one in record["exactness"].values()} == {0}
