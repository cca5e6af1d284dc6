"""The names under which columns are found, and what to do where they are not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from limelight._base.errors import DataError
from limelight.data.sources import TableSource, guess, has, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.data.sources import Part, Source

USUAL_NAMES = {
    "user": ("user_id", "user", "userId", "userID", "uid", "user_id:token"),
    "item": ("item_id", "item", "itemId", "itemID", "movieId", "sid", "item_id:token"),
    "rank": ("rank", "position"),
    "score": ("score",),
    "group": ("group", "provider", "seller", "publisher", "studio", "artist", "brand"),
    "title": ("title", "name"),
    "weight": ("weight",),
    "timestamp": ("timestamp", "time", "datetime", "date", "ts", "timestamp:float", "event_time"),
}
"""The names under which a column is found without being named; the first is our own."""
FURTHER_NAMES = {
    "user": (
        "userid customerid memberid visitorid reviewerid accountid clientid",
        "user customer member visitor reviewer account client",
    ),
    "item": (
        "itemid sku asin parentasin isbn movieid filmid productid articleid trackid songid "
        "artistid albumid bookid gameid videoid businessid newsid offerid listingid recipeid",
        "item movie film product article track song book video",
    ),
    "rank": ("pos itemrank rankposition",),
    "score": ("prediction predictedscore predictedrating relevance probability",),
    "group": (
        "groupid providerid sellerid publisherid studioid artistid brandid shopid vendorid",
        "group provider seller publisher studio artist brand shop store vendor supplier merchant "
        "author creator company category genre",
    ),
    "title": ("itemtitle itemname movietitle producttitle productname title name",),
    "timestamp": ("timestamp time datetime date createdat requestedat shownat unixtime",),
}
"""Further names in small letters without marks, so that ``Product-ID`` is one; the first line that
finds any decides."""
_LAYOUTS = {
    "item": ("item", "title"),
    "group": ("item", "group"),
    "user": ("user", "item", "rating", "timestamp"),
    "timestamp": ("user", "timestamp"),
    "score": ("user", "item", "score"),
    "rank": ("user", "item", "rank", "score"),
}
"""How a table that lacks a column may be laid out, for a file without a header."""


def find_column(source: Source, parts: Sequence[Part], what: str) -> str | None:
    """Find a column: as it was named, else by the usual names; None if there is none.

    Our own name goes before the others. Where several of the others stand in a table, nobody knows
    which is meant, so that is refused.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data.sources import open_parts
    >>> table = pa.table({"Product-ID": [7], "provider": ["x"]})
    >>> [find_column(table, open_parts(table), what) for what in ("item", "group", "rank")]
    ['Product-ID', 'provider', None]
    """
    part = parts[0]
    named = source.named(part, what) if isinstance(source, TableSource) else None
    own, *others = USUAL_NAMES[what]
    if named is not None or has(parts, own):
        return named or own
    found = [name for name in others if has(parts, name)]
    for names in FURTHER_NAMES.get(what, ()):
        found = found or [name for name in part.columns if plain_name(name) in names.split()]
    if len(found) > 1:
        message = f"the {what} column is not clear in {part.label}: {', '.join(found)}"
        raise DataError(message, hint=naming_hint(source, part, what))
    return found[0] if found else None


def plain_name(name: str) -> str:
    """Write the name of a column in small letters, without marks and RecBole's types.

    Examples
    --------
    >>> plain_name("User-ID"), plain_name("rating:float")
    ('userid', 'rating')
    """
    return re.sub(r"[^a-z0-9]", "", name.lower().partition(":")[0])


def need_column(source: Source, parts: Sequence[Part], what: str, *, of: str | None = None) -> str:
    """Find a column, as :func:`find_column` does; refuse a table that has none.

    ``of`` names the column by which one knows the kind of the table, such as ``rank`` of lists.
    """
    found = find_column(source, parts, what)
    if found is None:
        part = parts[0]
        message = f"column not found in {part.label}: {USUAL_NAMES[what][0]!r}"
        raise DataError(message, hint=naming_hint(source, part, what, of=of))
    return found


def naming_hint(
    source: Source, part: Part, *what: str, of: str | None = None, is_read: bool = False
) -> str:
    """Say how columns are named, and what the table has; or that it seems to have no header.

    ``is_read`` tells of ``ll.read``, whose own arguments name columns. Other functions take a
    ``TableSource`` for that.
    """
    columns = listed(part.columns)
    owner = f"{source.argument}_" if isinstance(source, TableSource) and source.argument else ""
    start, end = ("", "") if is_read else ("ll.TableSource(..., ", ")")
    if part.is_text and any(re.fullmatch(r"-?[0-9.]+", name) for name in part.columns):
        usual = _LAYOUTS.get(of or what[0], _LAYOUTS["item"])
        names = [*usual, *(f"column{n + 1}" for n in range(len(usual), len(part.columns)))]
        return (
            f"the first line looks like a row, not like names ({columns}); if there is no header, "
            f"name the columns: {start}{owner}columns='{','.join(names[: len(part.columns)])}'{end}"
        )
    asked = " and ".join(f"{owner}{name}='...'" for name in what)
    meant = guess(part, USUAL_NAMES[what[0]][0]) if len(what) == 1 else ""
    it = "it" if len(what) == 1 else "them"
    return f"{meant}name {it} with {start}{asked}{end}; the columns are: {columns}"
