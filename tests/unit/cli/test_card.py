"""`limelight card` writes a card whole or not at all, and a model with its card can be replaced."""

import json

import pytest

import limelight as ll
from limelight.store.model_folder import is_model_folder


@pytest.fixture(scope="module")
def split():
    return ll.split_users(
        ll.marketplace(300, 60, 6000, seed=1).interactions, validation=30, test=30
    )


@pytest.fixture
def folder(split, tmp_path):
    place = tmp_path / "films"
    ll.IALS(factors=8, epochs=2).fit(split.train).save(place)
    return place


def test_a_card_goes_to_standard_output_or_to_a_file(limelight, folder, tmp_path):
    figures = tmp_path / "found.json"
    figures.write_text('{"part": "test", "users": 30, "items": 60, "ndcg@20": 0.2}')
    shown = limelight("card", folder, "--evaluation", figures)
    assert (shown.code, shown.err) == (0, "")
    assert "\n# Model card: films\n" in shown.out
    assert "nDCG @20" in shown.out
    target = folder / "README.md"
    written = limelight("card", folder, "--evaluation", figures, "-o", target)
    assert (written.out, written.err) == ("", f"written to {target}\n")
    assert target.read_text() == shown.out
    named = limelight("card", folder, "--evaluation", figures, "--name", "shop")
    assert '- name: "shop"\n' in named.out


def test_terms_are_a_paragraph(limelight, folder):
    text = limelight("card", folder, "--terms").out
    assert text.startswith("You are shown lists of items. One thing decides")
    assert text.count("\n") == 1


def test_a_model_is_replaced_with_its_card_but_not_with_other_text(limelight, folder, split):
    limelight("card", folder, "-o", folder / "README.md")
    assert is_model_folder(folder)
    ll.IALS(factors=4, epochs=1).fit(split.train).save(folder)
    assert not (folder / "README.md").exists()
    (folder / "README.md").write_text("# mine\n")
    assert not is_model_folder(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("{", "cannot read"),
        ("[1]", "no figures of an evaluation"),
        (json.dumps({"users": 3}), "no figures of an evaluation"),
    ],
)
def test_bad_figures_write_nothing(limelight, folder, tmp_path, text, message):
    figures, target = tmp_path / "found.json", tmp_path / "card.md"
    if text is not None:
        figures.write_text(text)
    ended = limelight("card", folder, "--evaluation", figures, "-o", target)
    assert ended.code == 1
    assert message in ended.err
    assert "hint: " in ended.err
    assert not target.exists()


def test_not_a_model(limelight, tmp_path):
    ended = limelight("card", tmp_path)
    assert (ended.code, ended.out) == (1, "")
    assert "not a model folder" in ended.err
