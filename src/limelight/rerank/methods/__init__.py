"""The re-rankers, and the registry by which everybody else finds them.

To add one, write a module in this folder with a class that derives from
:class:`~limelight.rerank.reranker.Reranker` and is decorated with :func:`register`, and a test. Its
class name is what model folders call it. If it sets ``method``, ``ll.rerank(method=...)`` and the
command line offer it. Classes of other packages are registered in the same way.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.settings import Settings
    from limelight.rerank.reranker import Reranker

    Kind = TypeVar("Kind", bound=type[Reranker])

_FIRST = ("best_response", "frank_wolfe", "allocate")
"""Modules whose methods are offered first; the others follow by name."""
_REGISTERED: dict[str, tuple[type[Reranker], type[Settings]]] = {}


def register(config: type[Settings]) -> Callable[[Kind], Kind]:
    """Decorate a re-ranker with these settings, so that it is found by its names."""

    def add(kind: Kind) -> Kind:
        _REGISTERED[kind.__name__] = kind, config
        return kind

    return add


def rerankers() -> dict[str, tuple[type[Reranker], type[Settings]]]:
    """Return all re-rankers that folders can hold, and their settings, by class name.

    Examples
    --------
    >>> list(rerankers())[:3]
    ['Allocate', 'BestResponse', 'FairRec']
    """
    _import_all()
    return dict(sorted(_REGISTERED.items()))


def offered() -> dict[str, type[Reranker]]:
    """Return the re-rankers that ``ll.rerank(method=...)`` offers, by method.

    Examples
    --------
    >>> list(offered())[:5]
    ['best-response', 'online', 'prices', 'allocate', 'fairrec']
    """
    modules = _import_all()
    kinds = [kind for kind, _ in _REGISTERED.values() if kind.method is not None]
    # Classes of other packages come last, in the order in which they were registered.
    own = {name: place for place, name in enumerate(modules)}
    kinds.sort(key=lambda kind: own.get(kind.__module__, len(own)))
    return {str(kind.method): kind for kind in kinds}


def _import_all() -> list[str]:
    """Import every module of this folder, and return their names in the order of offering."""
    names = [module.name for module in iter_modules(__path__)]
    names = [*_FIRST, *(name for name in names if name not in _FIRST)]
    return [import_module(f"{__name__}.{name}").__name__ for name in names]
