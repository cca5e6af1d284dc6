import json

import pytest

import limelight as ll

DATA = ll.marketplace(600, 100, 9000).interactions
SPLIT = ll.split_users(DATA, validation=60, test=60)


def test_one_table_of_models_fitted_or_not():
    fitted = ll.IALS(factors=8, epochs=3).fit(SPLIT.train)
    fresh = ll.IALS(factors=4, epochs=3)
    fair = ll.BestResponse(strength=0.3).over(fitted)
    found = ll.compare([ll.Popularity(), fitted, fresh, fair, ll.Popularity()], SPLIT, k=10)
    assert [row.name for row in found.rows] == [
        "Popularity()",
        "IALS(factors=8, epochs=3)",
        "IALS(factors=4, epochs=3)",
        "BestResponse(strength=0.3) over IALS(factors=8, epochs=3)",
        "Popularity() (2)",
    ]
    assert fresh.is_fitted
    for row, model in zip(found.rows[1:4], (fitted, fresh, fair), strict=True):
        assert dict(row.metrics) == dict(ll.evaluate(model, SPLIT.validation, k=10))
        assert row.seconds >= 0
    assert found.notes == []
    assert json.loads(json.dumps(found.to_dict()))["models"][2]["part"] == "validation"


def test_it_shows_itself():
    models = {"mine": ll.Popularity(), "theirs": ll.Random()}
    found = ll.compare(models, SPLIT, k=10, on="both")
    text = str(found)
    assert text.startswith("2 models, lists of 10\n\nvalidation users")
    assert "test users" in text
    assert "[0." in text
    assert "Over 60 users of the test part." in text
    assert "<table>" in found._repr_html_()
    assert [row.part for row in found.rows] == ["validation", "test"] * 2


def test_a_model_of_other_data_is_named():
    model = ll.IALS(factors=4, epochs=2).fit(SPLIT.everybody())
    [note] = ll.compare({"all": model}, SPLIT, on="test").notes
    assert note.startswith("all was not fitted to the training part of this split.")


@pytest.mark.parametrize(
    ("models", "split", "more", "message"),
    [
        ([], SPLIT, {}, "no models to compare: 0"),
        ([3], SPLIT, {}, "only models can be compared, not int"),
        ([ll.Popularity()], DATA, {}, "compared on a split, not on Interactions"),
        ([ll.Popularity()], SPLIT, {"on": "train"}, "on is not a known choice: 'train'"),
        ([ll.Popularity()], SPLIT, {"k": 0}, "k must be at least 1: 0"),
        (
            [ll.Popularity()],
            ll.split_users(DATA, validation=0, test=9),
            {},
            "validation users of the split have no held-out items to find",
        ),
    ],
)
def test_what_cannot_be_compared(models, split, more, message):
    with pytest.raises(ll.LimelightError, match=message):
        ll.compare(models, split, **more)


def test_one_model_needs_no_list():
    assert len(ll.compare(ll.Popularity(), SPLIT).rows) == 1
