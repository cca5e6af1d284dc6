"""Commands with a target: for whom it is, who is served, and what is said of it."""

import json
import re

import pyarrow.parquet as pq
import pytest

import limelight as ll

FAILED, WRONG_USE = 1, 2
N_USERS, N_ITEMS = 300, 60
FIT = ("--model", "popularity", "--at", 10)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Interactions of users u0 to u299, and tables of users."""
    folder = tmp_path_factory.mktemp("commands")
    data = ll.marketplace(N_USERS, N_ITEMS, 5000, seed=1).interactions.matrix
    rows = [f"u{user},i{item}" for user, item in zip(*data.nonzero(), strict=True)]
    strangers = [f"n{n},i{item}" for n in range(30) for item in range(n % 7, N_ITEMS, 11)]
    tables = {
        "ratings": ["user_id,item_id", *rows],
        "unseen": ["user_id,item_id", *strangers],
        "some": ["user_id", *(f"u{n}" for n in range(200))],
        "few": ["user_id,more", *(f"u{n},{n}" for n in (7, 3, 7, 250))],
        "unknown": ["user_id", "u1", "nobody"],
        "unnamed": ["who", "u1"],
        "empty": ["user_id"],
    }
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def models(place):
    """Model folders by what was asked."""
    data = ll.read(place / "ratings.csv")
    asked = {
        "gini": {"gini": 0.55},
        "stream": {"gini": 0.55, "serve": "stream"},
        "coverage": {"min_coverage": 0.9},
        "loss": {"max_ndcg_loss": 0.05},
    }
    for name, wish in asked.items():
        ll.fit_to(data, at=10, model=ll.Popularity(), **wish).model.save(place / name)
    return {name: place / name for name in asked}


FOR = [  # flags, the population in words, and how many users are served
    ((), "300 users' lists", 300),
    (("--for", "everyone"), "300 users' lists", 300),
    (("--for", "100"), "100 users' lists", 100),
    (("--for", "5000"), "5,000 lists of 300 users", 300),
    (("--for", "some.csv"), "200 users' lists", 200),
    (("--for", "held-out"), "30 held-out users' lists", 240),
]


@pytest.mark.parametrize("case", FOR, ids=lambda case: " ".join(case[0]))
def test_whom_a_target_is_for(limelight, place, tmp_path, monkeypatch, case):
    flags, population, n_users = case
    monkeypatch.chdir(place)
    arguments = ("fit", "ratings.csv", *FIT, "--gini", 0.55, *flags)
    ended = limelight(*arguments, "--json", "-o", tmp_path / "model")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["population"] == population
    assert found["served"]["users"] == n_users
    if population.startswith("30 held-out"):
        assert found["test"]["gini@10"] == pytest.approx(0.55, abs=0.1)
    else:
        assert found["served"]["gini@10"] == pytest.approx(0.55, abs=0.01)
    kept = json.loads((tmp_path / "model" / "target.json").read_text())
    assert kept == {name: found[name] for name in kept}
    assert len(ll.load(tmp_path / "model").user_ids) == (240 if n_users == 240 else N_USERS)


REFUSED = [
    ("0", WRONG_USE, "a population needs at least 1 user: 0"),
    ("-5", WRONG_USE, "a population needs at least 1 user: -5"),
    ("none.csv", FAILED, "no such file or folder: none.csv"),
    ("unnamed.csv", FAILED, "column not found in unnamed.csv: 'user_id'"),
    ("unknown.csv", FAILED, "the population has a user who is not in the data: 'nobody'"),
    ("empty.csv", FAILED, "no rows in empty.csv"),
    ("1.5", None, "1.5"),
    ("", None, "--for"),
]


@pytest.mark.parametrize("verb", ["fit", "frontier"])
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_for_nobody_who_is_known(limelight, place, tmp_path, monkeypatch, verb, case):
    value, code, message = case
    monkeypatch.chdir(place)
    flags = (*FIT, "--gini", 0.55) if verb == "fit" else ("--factors", 4, "--epochs", 1)
    ended = limelight(verb, "ratings.csv", *flags, "--for", value, "-o", tmp_path / "model")
    assert ended.code == (code or ended.code) != 0, ended.err
    assert message in ended.err
    assert "hint: " in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "model").exists()


def test_a_fit_says_what_was_got_and_what_it_cost(limelight, place, tmp_path):
    ended = limelight("fit", place / "ratings.csv", *FIT, "--gini", 0.55, "-o", tmp_path / "model")
    first, second, third, fourth, fifth = ended.out.splitlines()[:5]
    assert first.startswith(
        "The target is met: over 300 users' lists and 60 items, the Gini@10 of "
    )
    assert re.search(r"exposure falls from 0.677 to 0.5(5\d|49), and the share", first)
    assert first.endswith("of the items shown rises from 60.0 % to 100.0 %.")
    assert second.startswith("It costs ")
    assert second.endswith("for 30 test users served among them.")
    assert third.startswith("With a little less control: nDCG -")
    assert fourth == "target: a Gini index of 0.55, lists of 10, over 300 users' lists"
    assert fifth.startswith("met by: best response")


def test_the_nearest_is_kept_where_that_is_wished(limelight, place, tmp_path):
    flags = (*FIT, "--gini", 0.1, "--max-ndcg-loss", "1%")
    ended = limelight("fit", place / "ratings.csv", *flags, "-o", tmp_path / "model")
    assert ended.code == FAILED
    assert "out of reach: a Gini index of 0.1 and a loss of nDCG of 1 % over 300" in ended.err
    assert "--nearest" in ended.err
    assert not (tmp_path / "model").exists()
    ended = limelight(
        "fit", place / "ratings.csv", *flags, "--nearest", "--json", "-o", tmp_path / "model"
    )
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["met"] is False
    assert "stands in the way" in found["notes"][0]
    assert json.loads((tmp_path / "model" / "target.json").read_text())["met"] is False


def test_held_out_users_may_stay_out(limelight, place, tmp_path):
    flags = (*FIT, "--gini", 0.55, "--keep-held-out", "-o", tmp_path / "model")
    assert limelight("fit", place / "ratings.csv", *flags).code == 0
    assert len(ll.load(tmp_path / "model").user_ids) == 240


class TestRecommend:
    def run(self, limelight, model, tmp_path, *flags):
        ended = limelight("recommend", model, "-k", 10, *flags, "-o", tmp_path / "lists.parquet")
        assert ended.code == 0, ended.err
        return ended

    def test_everybody(self, limelight, models, tmp_path):
        ended = self.run(limelight, models["gini"], tmp_path)
        measured = ll.load(models["gini"]).promise["served"]["gini@10"]
        assert ended.out.startswith("Lists of 10 for 300 users were made in ")
        assert f"the Gini@10 of exposure is {measured:.3f}, and " in ended.out
        asked = (
            "Asked for: a Gini index of 0.55, lists of 10, over 300 users' lists; measured: Gini"
        )
        assert f"{asked} {measured:.3f}" in ended.out
        assert pq.read_table(tmp_path / "lists.parquet").num_rows == N_USERS * 10

    def test_json(self, limelight, models, tmp_path):
        ended = self.run(limelight, models["gini"], tmp_path, "--json")
        found = json.loads(ended.out)
        assert found["target"] == {"gini": 0.55, "at": 10, "population": "300 users' lists"}
        assert (found["users"], found["items"], found["k"]) == (N_USERS, N_ITEMS, 10)
        assert found["gini@10"] == pytest.approx(0.55, abs=0.01)
        assert "promise" not in found

    def test_a_part(self, limelight, models, place, tmp_path):
        ended = self.run(limelight, models["gini"], tmp_path, "--users", place / "few.csv")
        assert "Lists of 10 for 3 users" in ended.out
        assert "these are 3 of 300; the lists of all 300 have a Gini@10 of 0.5" in ended.out
        table = pq.read_table(tmp_path / "lists.parquet")
        assert table.column("user_id")[::10].to_pylist() == ["u7", "u3", "u250"]

    def test_a_part_has_the_lists_that_everybody_has(self, limelight, models, place, tmp_path):
        self.run(limelight, models["gini"], tmp_path)
        rows = pq.read_table(tmp_path / "lists.parquet").to_pandas()
        self.run(limelight, models["gini"], tmp_path, "--users", place / "few.csv")
        few = pq.read_table(tmp_path / "lists.parquet").to_pandas()
        for user in ("u7", "u3", "u250"):
            assert few[few.user_id == user].item_id.tolist() == (
                rows[rows.user_id == user].item_id.tolist()
            )
        ended = limelight("recommend", models["gini"], "-k", 10, "--user-id", "u7")
        assert ended.out.count("\n") == 11
        assert f'"u7","{few.item_id[0]}",1,' in ended.out

    def test_unseen_users_are_not_of_those_who_were_promised(
        self, limelight, models, place, tmp_path
    ):
        ended = self.run(limelight, models["gini"], tmp_path, "--history", place / "unseen.csv")
        assert "Lists of 10 for 30 users" in ended.out
        assert "these are further users; the lists of all 300 have a Gini@10 of 0.5" in ended.out

    def test_what_was_measured_is_what_was_asked_for(self, limelight, models, tmp_path):
        ended = self.run(limelight, models["coverage"], tmp_path)
        [line] = [line for line in ended.out.splitlines() if line.startswith("Asked for")]
        assert line.startswith(
            "Asked for: a coverage of 90 %, lists of 10, over 300 users' lists; measured: coverage "
            "90.0 %. It costs "
        )
        ended = self.run(limelight, models["loss"], tmp_path)
        [line] = [line for line in ended.out.splitlines() if line.startswith("Asked for")]
        asked = "Asked for: a loss of nDCG of 5 %, lists of 10, over 300 users' lists. It costs "
        assert line.startswith(asked)

    def test_another_length_is_not_what_was_asked_for(self, limelight, models, tmp_path):
        ended = limelight("recommend", models["gini"], "-k", 5, "-o", tmp_path / "lists.csv")
        assert "The target is for lists of 10; these are lists of 5." in ended.err
        assert "over 300 users' lists; these lists are of another length" in ended.out
        assert "measured:" not in ended.out

    def test_a_stream_remembers_unless_told_not_to(self, limelight, models, place, tmp_path):
        model, state = models["stream"], models["stream"] / "control.safetensors"
        before = state.read_bytes()
        ended = self.run(limelight, model, tmp_path, "--no-update")
        assert ended.err.splitlines()[0] == (
            "The model does not record these lists as served, because it was told not to."
        )
        assert state.read_bytes() == before
        ended = self.run(limelight, model, tmp_path, "--users", place / "few.csv")
        assert "does not record" not in ended.err
        assert state.read_bytes() != before
        after = state.read_bytes()
        first = pq.read_table(tmp_path / "lists.parquet")
        self.run(limelight, model, tmp_path, "--users", place / "few.csv")
        assert pq.read_table(tmp_path / "lists.parquet").equals(first)
        assert state.read_bytes() == after

    def test_lists_on_standard_output_count_as_well(self, limelight, models, tmp_path):
        loaded = ll.load(models["stream"])
        loaded.save(tmp_path / "model")
        ended = limelight("recommend", tmp_path / "model", "-k", 10, "--user-id", "u100")
        assert ended.code == 0
        assert ended.out.startswith('"user_id","item_id","rank","score"\n"u100",')
        assert ll.load(tmp_path / "model").reranker.served_ == loaded.reranker.served_ + 1

    @pytest.mark.parametrize(
        "case",
        [
            (("--users", "unnamed.csv"), FAILED, "column not found in unnamed.csv: 'user_id'"),
            (("--users", "unknown.csv"), FAILED, "user id not in the training data: 'nobody'"),
            (("--users", "empty.csv"), FAILED, "no rows in empty.csv"),
            (("--users", "none.csv"), FAILED, "no such file or folder: none.csv"),
            (("--users", "few.csv", "--user-id", "u1"), WRONG_USE, "--users excludes --user-id"),
            (("--users", "few.csv", "--history", "unseen.csv"), WRONG_USE, "--users excludes"),
            (("--users", "few.csv", "--executor", "ray"), WRONG_USE, "--executor ray"),
        ],
        ids=lambda case: " ".join(case[0]),
    )
    def test_what_contradicts_itself_leaves_nothing(
        self, limelight, models, tmp_path, monkeypatch, case
    ):
        flags, code, message = case
        monkeypatch.chdir(models["stream"].parent)
        before = (models["stream"] / "control.safetensors").read_bytes()
        ended = limelight("recommend", models["stream"], *flags, "-o", tmp_path / "lists")
        assert ended.code == code, ended.err
        assert message in ended.err
        assert "hint: " in ended.err
        assert not (tmp_path / "lists").exists()
        assert (models["stream"] / "control.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("flags", "population", "n_users"),
    [
        ((), "300 users' lists", 300),
        (("--for", "150"), "150 users' lists", 150),
        (("--for", "held-out"), "30 held-out users' lists", 30),
    ],
    ids=str,
)
def test_a_front_says_whose_lists(limelight, place, flags, population, n_users):
    small = ("--factors", 4, "--epochs", 4, "--points", 3, "--at", 5)
    call = ("frontier", place / "ratings.csv", "--method", "best-response", *small, *flags)
    found = json.loads(limelight(*call, "--json").out)
    assert (found["population"], found["users"]) == (population, n_users)
    title = f"Frontier of best-response, lists of 5; exposure over {population}"
    first, *others = limelight(*call).out.splitlines()
    assert first.startswith(("The best of 3 points is ", "None of 3 points "))
    assert title in others
