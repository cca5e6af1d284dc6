"""A setting is declared once: its check, its flag, its help and its JSON follow."""

import json
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from limelight import ConfigError
from limelight._base.settings import Settings, hyperparameters, kind_of, setting
from limelight.cli.flags import SettingFlags, Verb, takes_flags


@dataclass(frozen=True, kw_only=True)
class ToyConfig(Settings):
    """All that is written down about the settings of a toy."""

    layers: int = setting(2, "How many layers it has.", at_least=1, at_most=9)
    share: float = setting(0.5, "Which share it keeps.", below=1, hint="keep less", metavar="SHARE")
    shape: Literal["round", "square"] = setting("round", "How it looks.")
    rate: float | Literal["auto"] = setting("auto", "How fast it goes.", above=0)
    width: int | Literal["auto"] = setting("auto", "How wide it is.", at_least=1)
    limit: int | None = setting(None, "Where it ends, if anywhere.", at_least=1)
    random_state: int = setting(0, "What it draws.", flag="--seed")
    is_loud: bool = setting(False, "Whether it is heard.")
    size: float = setting(2.0, "How large it is.", at_least=1.5)


class Toy:
    config: ToyConfig
    __init__ = hyperparameters(ToyConfig)


@pytest.fixture
def app() -> typer.Typer:
    """A command that makes a toy and prints its settings as JSON."""

    @takes_flags
    def make(*, settings: Annotated[dict[str, Any], SettingFlags([ToyConfig])]) -> None:
        made = Toy(**settings).config
        typer.echo(json.dumps({own.name: getattr(made, own.name) for own in fields(made)}))

    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(cls=Verb)(make)
    return app


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"layers": 0}, "layers must be at least 1: 0", "use an integer of at least 1"),
        ({"layers": 10}, "layers must be at most 9: 10", "use an integer of at most 9"),
        ({"layers": 2.5}, "layers must be an integer: 2.5", "use an integer of at least 1"),
        ({"share": 1}, "share must be below 1: 1", "keep less"),
        ({"share": -0.1}, "share must be a finite number 0 or more: -0.1", "use a finite number"),
        ({"shape": "flat"}, "shape is not a known choice: 'flat'", "round, square"),
        ({"rate": 0}, "rate must be a finite number above 0: 0", "above 0"),
        ({"rate": "fast"}, "rate must be a number: 'fast'", "use a finite number"),
        ({"width": "wide"}, "width must be an integer: 'wide'", "use an integer of at least 1"),
        ({"limit": 0}, "limit must be at least 1: 0", "at least 1"),
        ({"size": 1}, "size must be at least 1.5: 1", "use a number at least 1.5"),
        ({"is_loud": 1}, "is_loud must be True or False: 1", "True or False"),
        ({"layer": 3}, "unknown hyper-parameter: 'layer'", "did you mean 'layers'?"),
    ],
)
def test_wrong_values_are_refused(given: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        Toy(**given)
    assert error.value.message == message
    assert hint in str(error.value.hint)


def test_values_within_the_bounds_are_kept() -> None:
    given = {"layers": 9, "share": 0.0, "shape": "square", "rate": 1e-9, "limit": None}
    assert Toy(**given).config.changed() == {
        "layers": 9, "share": 0.0, "shape": "square", "rate": 1e-9
    }  # fmt: skip
    assert Toy(rate="auto", limit=3).config.changed() == {"limit": 3}


def test_every_setting_has_a_flag_that_explains_itself(app: typer.Typer) -> None:
    words = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    for shown in (
        "--layers N How many layers it has.",
        "--share SHARE Which share it keeps.",
        "--shape round|square How it looks.",
        "--rate NUMBER|auto How fast it goes.",
        "--width N|auto How wide it is.",
        "--limit N Where it ends, if anywhere.",
        "--seed N What it draws.",
    ):
        assert shown in words
    assert "Model:" in words


def test_flags_become_settings_and_json(app: typer.Typer) -> None:
    flags = "--layers 3 --share 0.25 --shape square --rate 0.5 --seed 7"
    found = json.loads(CliRunner().invoke(app, flags.split()).output)
    assert found == {
        "layers": 3, "share": 0.25, "shape": "square", "rate": 0.5, "width": "auto",
        "limit": None, "random_state": 7, "is_loud": False, "size": 2.0,
    }  # fmt: skip
    assert json.loads(CliRunner().invoke(app, ["--rate", "auto"]).output)["rate"] == "auto"


@pytest.mark.parametrize("width", [3, "auto"])
def test_an_integer_stays_one_where_words_are_taken_too(app: typer.Typer, width: object) -> None:
    found = json.loads(CliRunner().invoke(app, ["--width", str(width)]).output)["width"]
    assert found == width
    assert type(found) is type(width)


def test_a_flag_is_checked_as_a_setting_is(app: typer.Typer) -> None:
    error = CliRunner().invoke(app, ["--layers", "0"]).exception
    assert isinstance(error, ConfigError)
    assert error.message == "layers must be at least 1: 0"


def test_other_types_are_left_to_their_config() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other(Settings):
        cuts: tuple[float, ...] | None = setting(None, "Where it is cut.")

    assert kind_of(fields(Other)[0]) is None
    assert Other(cuts=(1.0,)).changed() == {"cuts": (1.0,)}
