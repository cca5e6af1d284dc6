"""``limelight card``: what a model is, does, promises and cannot do, as a model card."""

from pathlib import Path
from typing import Annotated, Any

import typer

from limelight._base.errors import DataError
from limelight.cli.flags import ModelFolder, option
from limelight.cli.output import remark, show


def card(
    folder: ModelFolder,
    *,
    output: Annotated[
        Path | None,
        option("FILE.md", "Where to write the card.  [default: standard output]", "-o", "--output"),
    ] = None,
    evaluation: Annotated[
        Path | None,
        option("FILE.json", "Figures that `limelight evaluate --json` printed for this model."),
    ] = None,
    name: Annotated[
        str | None, option("NAME", "What to call the model.  [default: the folder's name]")
    ] = None,
    terms: Annotated[
        bool,
        typer.Option("--terms", help="Only a paragraph in plain words, for terms and conditions."),
    ] = False,
) -> None:
    """Write a model card: data, figures, promises and limits.

    In: a model folder. Out: Markdown that begins with the metadata of Hugging Face's model cards,
    to standard output or, whole or not at all, to a file: counts of the data, settings, accuracy
    and exposure with intervals where they were measured, the control and what it promises, a
    paragraph in plain words on what decides which items users are shown, and limits. No ids of
    users, items or groups are in it. The licence is left out: add it, where it is known.

    \b
    Examples:
      limelight card model/ -o model/README.md
      limelight card model/ --evaluation found.json
      limelight card model/ --terms
    """
    from limelight._base.files import write_text
    from limelight.control.card import model_card, model_terms
    from limelight.rerank.folder import load

    figures = None if evaluation is None else _read(evaluation)
    model = load(folder)
    if terms:
        text = f"{model_terms(model)}\n"
    else:
        text = model_card(model, name or folder.resolve().name, evaluation=figures)
    if output is None:
        show(text.rstrip("\n"))
        return
    write_text(output, text)
    remark(f"written to {output}")


def _read(path: Path) -> dict[str, Any]:
    """Read what `limelight evaluate --json` printed."""
    from limelight.store.json import read_json

    try:
        found = read_json(path)
    except FileNotFoundError as error:
        message = f"no such file: {str(path)!r}"
        raise DataError(message, hint=_HINT) from error
    except ValueError as error:
        message = f"cannot read {str(path)!r}: {error}"
        raise DataError(message, hint=_HINT) from error
    if not isinstance(found, dict):
        message = f"no figures of an evaluation in {str(path)!r}"
        raise DataError(message, hint=_HINT)
    return found


_HINT = "write it with: limelight evaluate model/ split/ --json > found.json"
