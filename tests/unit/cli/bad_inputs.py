"""Bad inputs, as data: what is wrong, how to make it, and the command or call that meets it.

Every case begins in a folder with ratings.csv, split/, model/, lists.parquet and run/ (what
`limelight frontier` wrote). The paths of commands are relative to it.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import limelight as ll
from limelight.store.arrays import load_arrays, save_arrays

Make = Callable[[], object]
THEIRS = "…"
"""Where words or numbers follow that depend on the versions of libraries, or on the machine."""


class Case(NamedTuple):
    group: str
    what: str
    make: Make
    command: str
    cut: str = ""
    """What the page shows of the message, the rest of which may differ from machine to machine."""
    call: Callable[[], object] | None = None
    """A call in Python, which ``command`` shows, in place of a command."""


CASES: list[Case] = []


def case(group: str, what: str, command: str, make: Make = lambda: None, cut: str = "") -> None:
    CASES.append(Case(group, what, make, " ".join(command.split()), cut))


def call(what: str, shown: str, run: Callable[[], object], make: Make = lambda: None) -> None:
    CASES.append(Case("In Python", what, make, shown, call=run))


def text(name: str, content: str | bytes) -> Make:
    data = content.encode() if isinstance(content, str) else content
    return lambda: Path(name).write_bytes(data)


def packed(name: str, content: bytes) -> Make:
    return lambda: Path(name).write_bytes(gzip.compress(content, mtime=0))


def parquet(name: str, **columns: Any) -> Make:
    return lambda: pq.write_table(pa.table(columns), name)


def cut_short(name: str) -> Make:
    return lambda: Path(name).write_bytes(Path(name).read_bytes()[: Path(name).stat().st_size // 2])


def also(name: str, line: str) -> Make:
    return lambda: Path(name).write_text(Path(name).read_text() + line)


def pipe(name: str) -> Make:
    def make() -> None:
        Path(name).unlink()
        os.mkfifo(name)

    return make


# ------------------------------------------------------------ tables of interactions
READ = "limelight data describe"
HEAD = "user_id,item_id,rating,time\n"
GOOD = HEAD + "1,2,3,4\n"


def table(what: str, content: str | bytes, flags: str = "", cut: str = "") -> None:
    case(READ, what, f"data describe x.csv {flags}".strip(), text("x.csv", content), cut)


case(READ, "no such file", "data describe missing.csv")
case(READ, "a kind of file that is not read", "data describe x.xlsx", text("x.xlsx", "1"))
case(READ, "a pipe in place of a file", "data describe ratings.csv", pipe("ratings.csv"))
table("an empty file", "")
table("a header and nothing else", HEAD)
table("no columns that look like users and items", "who,what\n1,2\n")
table("no header", "1;2;5\n")
table("names for fewer columns than there are", "1;2;5\n", "--columns user,item")
table("two pairs of columns that do", "user,item,uid,sid\n1,2,3,4\n")
table("a column that is not there", GOOD, "--item movie_id")
table("one column for users and items", GOOD, "--user item_id")
table("a column that stands twice", "user_id,item_id,item_id\n1,2,3\n", "--item item_id")
table("a user without an id", HEAD + ",2,3,4\n")
table("an id of half a megabyte", HEAD + "y" * 500_000 + ",2,3,4\n")
table("a line of ten megabytes", HEAD + "y" * 10_000_000 + ",2,3,4\n")
table("a quotation mark that is never closed", HEAD + '1,"2,3,4\n' + "1,2,3,4\n" * 300_000)
table("100,000 columns", ",".join(f"c{n}" for n in range(100_000)) + "\n")
table("a row that is too short", GOOD + "1,2\n", cut="cannot read x.csv: ")
table("bytes that are not UTF-8", HEAD.encode() + b"1,\xff\xfe,3,4\n", cut="cannot read x.csv: ")
table("UTF-16", GOOD.encode("utf-16"), cut="cannot read x.csv: ")
table("nothing but NUL bytes", b"\0" * 1000)
table("names of columns that move the cursor", "\x1b[2J\x1b[31mwho,what\n1,2\n")
table("a rating that is not a number", HEAD + "1,2,NaN,4\n", "--rating rating")
table("an infinite rating", HEAD + "1,2,1e999,4\n", "--rating rating")
table("a negative rating", HEAD + "1,2,-3,4\n", "--rating rating")
table("a rating in words", HEAD + "1,2,good,4\n", "--rating rating")
table("a negative time", HEAD + "1,2,3,-4\n", "--timestamp time")
table("an infinite time", HEAD + "1,2,3,inf\n", "--timestamp time")
table("a time in words", HEAD + "1,2,3,yesterday\n", "--timestamp time")
table("a weight of 0", HEAD + "1,2,0,4\n", "--weight rating")
table("a negative weight", GOOD + "1,3,-1,4\n", "--weight rating")
table("a weight that is not a number", HEAD + "1,2,NaN,4\n", "--weight rating")
table("a column of weights that is not there", GOOD, "--weight plays")
table("a half-life without times", GOOD, "--half-life 90d")
table("a half-life that is no duration", GOOD, "--timestamp time --half-life soon")
table("a half-life of 0", GOOD, "--timestamp time --half-life 0d")
table("a least rating without ratings", GOOD, "--min-rating 4")
table("a least rating that is not finite", GOOD, "--rating rating --min-rating nan")
table("nobody rated that high", GOOD, "--rating rating --min-rating 4")
table("filters that leave nothing", GOOD, "--min-user 2")
table("a core of 0", GOOD, "--core 0")
table("a core beside another filter", GOOD, "--core 2 --min-item 1")
table("an unknown order of filters", GOOD, "--filter-order backwards")
case(
    READ,
    "a file that is not gzip",
    "data describe x.csv.gz",
    text("x.csv.gz", GOOD),
    "cannot read x.csv.gz: ",
)
case(
    READ,
    "a gzip file that is cut short",
    "data describe x.csv.gz",
    lambda: (packed("x.csv.gz", GOOD.encode() * 999)(), cut_short("x.csv.gz")()),
    "cannot read x.csv.gz: ",
)
case(
    READ,
    "a gzip bomb that is one line",
    "data describe x.csv.gz",
    packed("x.csv.gz", HEAD.encode() + b"1" * 20_000_000),
)
case(
    READ,
    "Parquet that is none",
    "data describe x.parquet",
    text("x.parquet", "PAR1" * 9),
    "cannot read x.parquet: ",
)
case(
    READ,
    "Parquet that is cut short",
    "data describe lists.parquet",
    cut_short("lists.parquet"),
    "cannot read lists.parquet: ",
)
case(
    READ,
    "ids that are fractions",
    "data describe x.parquet",
    parquet("x.parquet", user_id=[0.5], item_id=[1]),
)
case(
    READ,
    "ids that are lists",
    "data describe x.parquet",
    parquet("x.parquet", user_id=[[1]], item_id=[1]),
    "x.parquet, column 'user_id': ids are integers or strings, got type: ",
)
case(
    READ,
    "an id that is missing",
    "data describe x.parquet",
    parquet("x.parquet", user_id=[1, None], item_id=[1, 2]),
)
case(
    READ,
    "integers beyond 64 bits",
    "data describe x.parquet",
    parquet("x.parquet", user_id=pa.array([2**64 - 1], pa.uint64()), item_id=[1]),
)
case(
    READ,
    "text that is not UTF-8",
    "data describe x.parquet",
    parquet("x.parquet", user_id=pa.array([b"\xff"]).view(pa.string()), item_id=[1]),
    "column 'user_id' holds ids that are not UTF-8 text: ",
)


def long_text() -> None:
    once = pa.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), ["x" * 1_000_000])
    columns = {"user_id": once, "item_id": np.arange(200_000)}
    pq.write_table(pa.table(columns), "x.parquet", store_schema=False)


def many_rows() -> None:
    block = pa.table({"user_id": np.zeros(10**7, np.int8), "item_id": np.zeros(10**7, np.int8)})
    with pq.ParquetWriter("x.parquet", block.schema) as file:
        for _ in range(7):
            file.write_table(block, row_group_size=10**7)


case(READ, "a megabyte of text in every row", "data describe x.parquet", long_text)
case(
    READ,
    "70 million rows in a few bytes",
    "data describe x.parquet",
    many_rows,
    "x.parquet has only ",
)


def mixed_parts() -> None:
    Path("parts").mkdir()
    Path("parts/a.csv").write_text(GOOD)
    Path("parts/b.tsv").write_text(GOOD)


case(READ, "a folder of different kinds", "data describe parts", mixed_parts)
case(READ, "a folder of nothing", "data describe parts", lambda: Path("parts").mkdir())

# ------------------------------------------------------------ splits, converting
SPLIT = "limelight data split, data convert"
case(SPLIT, "more held-out users than there are", "data split ratings.csv --test 300 -o new")
case(SPLIT, "a share above 1", "data split ratings.csv --test 1.5 -o new")
case(SPLIT, "a negative number of users", "data split ratings.csv --test -1 -o new")
case(SPLIT, "a negative seed", "data split ratings.csv --seed -1 -o new")
case(SPLIT, "a split by time without times", "data split ratings.csv --by time -o new")
case(SPLIT, "a time for a split by users", "data split ratings.csv --at 2021-01-01 -o new")
case(
    SPLIT,
    "a split at a time that is none",
    "data split x.csv --by time --timestamp time --at soon -o new",
    text("x.csv", GOOD),
)
case(
    SPLIT,
    "a split by time that leaves nothing to learn from",
    "data split x.csv --by time --timestamp time --at 1970-01-01 -o new",
    text("x.csv", GOOD),
)
case(
    SPLIT,
    "a number of users for a split by time",
    "data split x.csv --by time --timestamp time --test 5 -o new",
    text("x.csv", GOOD),
)
case(SPLIT, "a folder that holds something else", "data split ratings.csv -o run")
case(SPLIT, "a place below a file", "data split ratings.csv -o ratings.csv/new")
case(SPLIT, "an unknown kind of output", "data convert ratings.csv -o out.xlsx")


# ------------------------------------------------------------ fitting
FIT = "limelight fit"


def fit(what: str, flags: str, make: Make = lambda: None, cut: str = "") -> None:
    case(FIT, what, f"fit split {flags} -o new", make, cut)


def published() -> None:
    Path("split/users.parquet").unlink()
    Path("split/items.parquet").unlink()


def in_published(make: Make) -> Make:
    return lambda: (published(), make())


fit("no factors", "--factors 0")
fit("a weight that is not a number", "--exposure-weight nan")
fit("a negative weight", "--regularization -1")
fit("two exposure weights", "--exposure-weight 1 --exposure-strength 1")
fit("a setting of another solver", "--solver exact --penalty 1")
fit("a setting of another model", "--model ials --exposure-weight 1")
fit("an unknown way to fold in", "--fold-in alone")
fit("a filter on a split", "--min-user 3")
fit("a population without a target", "--for 1000")
fit("a population of nobody", "--gini 0.5 --for 0")
fit("a target that is no Gini", "--gini 2")
fit("a cap without groups", "--group-cap 3%")
fit("steps that are too long", "--learning-rate 1000 --factors 4")
fit(
    "rows without any weight",
    "--regularization 0 --unobserved-weight 0 --model ials",
    cut="rows without a unique solution: ",
)
fit("regularisation beyond 32 bits", "--regularization 1e38")
fit("regularisation that leaves nothing", "--regularization 1e30")
fit("unobserved pairs that leave nothing", "--unobserved-weight 1e30")
fit("an exponent beyond 32 bits", "--regularization-exponent 100")
fit("first factors beyond 32 bits", "--init-scale 1e30")
fit("first factors of nothing", "--init-scale 1e-45")
fit("an exposure weight beyond 32 bits", "--exposure-strength 1e100")
fit("a place that holds something else", "--epochs 1", lambda: shutil.copytree("run", "new"))
fit("a split without a table", "", lambda: Path("split/test_te.csv").unlink())
fit("a split with a pipe for a table", "", pipe("split/test_te.csv"))
fit("a split with other columns", "", text("split/train.csv", "user,item\n1,2\n"))
fit("a split without training users", "", text("split/train.csv", "uid,sid\n"))
fit(
    "a uid that is not a number",
    "",
    also("split/train.csv", "a,1\n"),
    "cannot read split/train.csv: ",
)
fit("a negative uid", "", also("split/train.csv", "-1,1\n"))
fit("an item that the split does not list", "", also("split/train.csv", "1,1000\n"))
fit("a user of two parts", "", also("split/train.csv", "151,1\n"))
fit("a uid near 2^31", "", in_published(also("split/train.csv", "2147483000,1\n")))
fit(
    "items that are not UTF-8",
    "",
    in_published(text("split/unique_sid.txt", b"\xff\n" * 80)),
    "cannot read split/unique_sid.txt: ",
)
fit("an item id that stands twice", "", in_published(text("split/unique_sid.txt", "a\n" * 80)))
fit(
    "users in another order",
    "",
    parquet("split/users.parquet", user_id=[1, 2], part=["test", "train"]),
)


def features(what: str, flags: str = "", **columns: Any) -> None:
    made = parquet("about.parquet", **columns)
    case(
        FIT,
        what,
        f"fit split --item-features about.parquet {flags} -o new".replace("  ", " "),
        made,
    )


features("features without item ids", shelf=["a", "b"])
features("features without features", item_id=[1, 2])
features("features of an item that stands twice", item_id=[1, 1], shelf=["a", "b"])
features("features of other items", item_id=[-1, -2, -3], shelf=["a", "a", "a"])
features("features for a model that cannot use them", "--model ease", item_id=[1], price=[2])


def grow(what: str, flags: str, make: Make = lambda: None) -> None:
    case(FIT, what, f"fit ratings.csv {flags} -o new", make)


def reranked() -> None:
    ll.BestResponse(strength=0.3).over(ll.load("model")).save("fair")


def without_histories() -> None:
    ll.load("model").save("bare", history=False)


grow("growing a model that is not there", "--from missing")
grow("growing what is no model", "--from run")
grow("growing a model whose lists are re-ranked", "--from fair", reranked)
grow("growing a model without histories", "--from bare", without_histories)
grow("growing by weights that the model does not know", "--weight rating --from model")
grow("growing by features that the model does not know", "--item-features x.csv --from model")
grow("growing with another setting", "--from model --factors 5")
grow("growing with a setting of another model", "--from model --hidden 8")
grow("growing as another model", "--from model --model ease")
grow("growing to a target", "--from model --gini 0.5")
grow("growing and tuning", "--from model --tune")

# ------------------------------------------------------------ models of strangers
LISTS = "limelight recommend"
FACTORS, CONFIG, CONTROL = "model/factors.safetensors", "model/config.json", "model/control.json"


def model(what: str, make: Make, cut: str = "") -> None:
    case(LISTS, what, "recommend model -k 5", make, cut)


def arrays_of(file: str, **changes: Callable[[np.ndarray], Any]) -> Make:
    def make() -> None:
        arrays = load_arrays(file)
        save_arrays(file, {n: changes[n](a) if n in changes else a for n, a in arrays.items()})

    return make


def header(file: str, told: object, data: bytes = b"") -> Make:
    written = told if isinstance(told, bytes) else json.dumps(told).encode()
    return text(file, struct.pack("<Q", len(written)) + written + data)


def config(**changes: Any) -> Make:
    return lambda: Path(CONFIG).write_text(
        json.dumps(json.loads(Path(CONFIG).read_text()) | changes)
    )


def setting(**changes: Any) -> Make:
    def make() -> None:
        record = json.loads(Path(CONFIG).read_text())
        record["hyperparameters"] |= changes
        Path(CONFIG).write_text(json.dumps(record))

    return make


def control(record: object, **arrays: np.ndarray) -> Make:
    def make() -> None:
        Path(CONTROL).write_text(record if isinstance(record, str) else json.dumps(record))
        save_arrays("model/control.safetensors", arrays)

    return make


def tensor(shape: list[int], kind: str = "F32", end: int = 0) -> dict[str, object]:
    return {"item_factors": {"dtype": kind, "shape": shape, "data_offsets": [0, end]}}


case(LISTS, "no such model", "recommend nowhere")
case(LISTS, "a folder that holds no model", "recommend split")
case(LISTS, "lists without places", "recommend model -k 0")
case(LISTS, "a user whom the model does not know", "recommend model --user-id nobody")
case(LISTS, "users known and unseen", "recommend model --user-id u1 --history ratings.csv")
case(
    LISTS,
    "histories of other items",
    "recommend model --history x.csv",
    text("x.csv", "user_id,item_id\n1,a\n"),
)
case(LISTS, "an unknown kind of output", "recommend model -o lists.xlsx")
case(LISTS, "JSON without a file", "recommend model --json")
model("a model without its factors", lambda: Path(FACTORS).unlink())
model("factors that are cut short", cut_short(FACTORS), f"cannot read arrays from '{FACTORS}': ")
for what, told, data in (
    ("a header nested 100,000 deep", b'{"a":' * 100_000, b""),
    ("a shape that its bytes do not fill", tensor([80, 8]), b""),
    ("a shape that overflows", tensor([2**40, 2**40]), b""),
    ("a shape that no array can have", tensor([0, 2**62]), b""),
    ("a hundred dimensions", tensor([1] * 100, end=4), b"\0" * 4),
    ("numbers of 8 bits", tensor([4], "F8_E4M3", 4), b"\0" * 4),
):
    model(what, header(FACTORS, told, data), f"cannot read arrays from '{FACTORS}': ")
model(
    "a header that claims to be huge",
    text(FACTORS, struct.pack("<Q", 2**62) + b"{}"),
    f"cannot read arrays from '{FACTORS}': ",
)
model("complex factors", header(FACTORS, tensor([1], "C64", 8), b"\0" * 8))
model("factors that are not numbers", arrays_of(FACTORS, item_factors=lambda a: a * np.nan))
model("infinite factors", arrays_of(FACTORS, user_factors=lambda a: a + np.inf))
model(
    "factors whose products are infinite",
    arrays_of(FACTORS, user_factors=lambda a: a * 0 + 3e38, item_factors=lambda a: a * 0 + 3e38),
)
model("factors of another width", arrays_of(FACTORS, item_factors=lambda a: a[:, :3]))
model("fewer users than factors", parquet("model/users.parquet", user_id=[1, 2]))
model("an item id that stands twice", parquet("model/items.parquet", item_id=[7] * 80))
model("item ids that are fractions", parquet("model/items.parquet", item_id=[0.5] * 80))
model("an item id that is missing", parquet("model/items.parquet", item_id=[1, None]))
model(
    "other arrays for histories",
    lambda: save_arrays("model/seen.safetensors", {"rows": np.zeros(1)}),
)
model("histories of fractions", arrays_of("model/seen.safetensors", indices=lambda a: a + 0.5))
model(
    "item numbers beyond 32 bits",
    arrays_of("model/seen.safetensors", indices=lambda a: a.astype(np.int64) + 2**32),
)
model(
    "histories that fall back", arrays_of("model/seen.safetensors", indptr=lambda a: a[::-1].copy())
)
model(
    "a config that is not JSON",
    text(CONFIG, "{"),
    "cannot read config.json of model folder 'model': ",
)
model("a config that is a pipe", pipe(CONFIG))
model("a config nested 200,000 deep", text(CONFIG, "[" * 200_000))
model("a config of something else", text(CONFIG, "[]"))
model("a model from the future", config(schema_version=99, limelight_version="9.9"))
model("a version of 4,000 digits", text(CONFIG, '{"schema_version": ' + "9" * 4000 + "}"))
model("a config with an unknown key", config(colour="red"))
model("a config whose model is a list", config(model=["ExADMM"]))
model("an unknown model", config(model="os.system"))
model("an unknown setting", setting(wings=2))
model("a setting of a wrong type", setting(factors="8"))
model(
    "a setting that is not a number",
    setting(regularization=float("nan")),
)
model("a setting of 400 digits", setting(regularization=10**400))
model("settings of a wider model", setting(factors=30_000))
model("a trace in words", config(fit={"status": None, "trace": [{"objective": "high"}]}))
model(
    "a re-ranker that is not JSON",
    control("{"),
    "cannot read control.json of model folder 'model': ",
)
model("a re-ranker that is a list", control([]))
model("an unknown re-ranker", control({"reranker": "os.system"}))
model("a re-ranker without its arrays", text(CONTROL, "{}"))
model(
    "a re-ranker of a wrong type",
    control({"reranker": "FairRec", "settings": {"alpha": "x"}, "memory": {}}),
)
model(
    "a law that is not a number",
    control(
        '{"reranker": "BestResponse", "memory": {}, "settings": '
        '{"relevance": {"kind": "Relevance", "constant": NaN}}}'
    ),
)
model(
    "prices of other items",
    control(
        {"reranker": "Prices", "settings": {"steps": 2}, "memory": {}},
        subsidies=np.zeros((2, 3)),
        chances=np.array([0.5, 0.5]),
    ),
)
model(
    "prices beyond 32 bits",
    control(
        {"reranker": "Prices", "settings": {"steps": 2}, "memory": {}},
        subsidies=np.full((2, 80), 1e300),
        chances=np.array([0.5, 0.5]),
    ),
)
model(
    "chances below 0",
    control(
        {"reranker": "Prices", "settings": {"steps": 2}, "memory": {}},
        subsidies=np.zeros((2, 80)),
        chances=np.array([-1.0, 2.0]),
    ),
)

# ------------------------------------------------------------ evaluation and audits
EVALUATE = "limelight evaluate"
case(EVALUATE, "something else than a split", "evaluate model model")
case(EVALUATE, "lists without places", "evaluate model split -k 0")
case(
    EVALUATE,
    "a split of other items",
    "evaluate model split",
    in_published(text("split/unique_sid.txt", "".join(f"n{n}\n" for n in range(80)))),
)
AUDIT = "limelight audit"
RANKED = "user_id,item_id,rank\n"


def lists(what: str, content: str, flags: str = "") -> None:
    case(AUDIT, what, f"audit x.csv {flags}".strip(), text("x.csv", content))


def beside(what: str, content: str, flag: str, cut: str = "") -> None:
    case(AUDIT, what, f"audit lists.parquet {flag} x.csv", text("x.csv", content), cut)


lists("lists without an order", "user_id,item_id\n1,2\n")
lists("a rank of 0", RANKED + "1,2,0\n")
lists("a rank of a half", RANKED + "1,2,1.5\n")
lists("a rank that would take gigabytes", RANKED + "1,2,2000000000\n")
lists("a rank that stands twice", RANKED + "1,2,1\n1,3,1\n")
lists("an item that stands twice in a list", RANKED + "1,2,1\n1,2,2\n")
lists("a score that is not a number", "user_id,item_id,score\n1,2,nan\n")
lists("lists without places", RANKED + "1,2,1\n", "-k 0")
beside(
    "a catalogue without the items",
    "item_id\nnone\n",
    "--catalogue",
    "items of the lists are not in the catalogue: ",
)
beside("an empty catalogue", "item_id\n", "--catalogue")
beside("groups without columns", "a,b\n1,2\n", "--groups")
beside("groups whose column may be one of two", "item,seller,brand\n1,a,b\n", "--groups")
beside("titles without a header", "1::Heat (1995)::Crime\n", "--catalogue")
beside("the name of a column that groups do not have", "item,shop\n1,a\n", "--group store --groups")
case(AUDIT, "the name of a column of no table", "audit lists.parquet --groups-item sku")
beside("groups of other items", "item_id,group\nnone,a\n", "--groups")
beside("a weight that is not a number", "item_id,group,weight\n1,a,nan\n", "--groups")
beside("a negative weight", "item_id,group,weight\n1,a,-1\n", "--groups")
beside("an infinite weight", "item_id,group,weight\n1,a,inf\n", "--groups")
case(AUDIT, "a rule without a sign", "audit lists.parquet --fail-if gini@5")
case(AUDIT, "a rule of an unknown figure", "audit lists.parquet --fail-if grup:acme>3%")
case(AUDIT, "a share that forgot its percent", "audit lists.parquet --fail-if group:acme>3")
case(AUDIT, "a rule without groups", "audit lists.parquet --fail-if group:acme>3%")
case(
    AUDIT,
    "a plan with a key that nobody knows",
    "audit lists.parquet --plan x.toml",
    text("x.toml", 'rule = ["gini@5 > 0.9"]\n'),
)
case(AUDIT, "a plan that is none", "audit lists.parquet --plan x.toml", text("x.toml", "rules = ["))
case(AUDIT, "a record that is no JSON file", "audit lists.parquet --record audit.csv")

# ------------------------------------------------------------ re-ranking
RERANK = "limelight rerank"
SCORED = "user_id,item_id,score\n"


def candidates(what: str, content: str, flags: str = "--gini 0.5") -> None:
    case(RERANK, what, f"rerank x.csv {flags} -o new.parquet", text("x.csv", content))


candidates("candidates without scores", RANKED + "1,2,1\n")
candidates("a candidate that stands twice", SCORED + "1,2,1\n1,2,2\n")
candidates("an infinite score", SCORED + "1,2,inf\n")
candidates("a score beyond 1e30", SCORED + "1,2,1e300\n")
candidates("no target", SCORED + "1,2,1\n", "")
candidates("two targets", SCORED + "1,2,1\n", "--gini 0.5 --max-relevance-loss 2%")
candidates("a target that is no Gini", SCORED + "1,2,1\n", "--gini -1")
candidates("an unknown method", SCORED + "1,2,1\n", "--gini 0.5 --method magic")
candidates("a cap without groups", SCORED + "1,2,1\n", "--group-cap 3%")
candidates("an MMF without groups", SCORED + "1,2,1\n", "--min-mmf 30%")
candidates("providers that are not there", SCORED + "1,2,1\n1,3,1\n", "-k 1 --gini 0.5 --of no.csv")
case(RERANK, "no candidates", "rerank missing.parquet --gini 0.5 -o new.parquet")

# ------------------------------------------------------------ runs and their pages
FRONT = "limelight frontier"
TRACE = "frontier split --factors 8 --epochs 3 --points 3 --method exadmm -o run"
NOTES = "run/state/notebook.json"


def notes(change: Callable[[dict[str, Any]], object]) -> Make:
    def make() -> None:
        record = json.loads(Path(NOTES).read_text())
        change(record)
        Path(NOTES).write_text(json.dumps(record))

    return make


case(FRONT, "too few points", "frontier split --points 0 -o new")
case(FRONT, "lists without places", "frontier split --at 0 -o new")
case(FRONT, "a folder that holds something else", "frontier split --points 3 -o model")
case(FRONT, "the folder of another run", TRACE + " --seed 5")
case(FRONT, "notes that are not JSON", TRACE, text(NOTES, "{"), f"cannot read '{NOTES}': ")
case(FRONT, "notes nested 100,000 deep", TRACE, text(NOTES, "[" * 100_000))
case(
    FRONT,
    "a point that names a path",
    TRACE,
    notes(lambda n: n["results"]["exadmm-1"].update(number="/../../../home")),
)
case(
    FRONT,
    "a point in place of another",
    TRACE,
    notes(lambda n: n["results"]["exadmm-1"].update(method="../home")),
)
case(
    FRONT,
    "a figure that is not a number",
    TRACE,
    notes(lambda n: n["results"]["plain-0"]["test"].update(ndcg="high")),
)

REPORT = "limelight report, plot"
SHOWN = "run/exhibit/exhibit.json"


def shown(change: Callable[[dict[str, Any]], object]) -> Make:
    def make() -> None:
        record = json.loads(Path(SHOWN).read_text())
        change(record)
        Path(SHOWN).write_text(json.dumps(record))

    return make


EXPOSED = "run/exhibit/arrays.safetensors"
case(REPORT, "a folder without a run", "report split")
case(
    REPORT,
    "an exhibit that is not JSON",
    "report run",
    text(SHOWN, "{"),
    "cannot read 'run/exhibit': ",
)
case(REPORT, "an exhibit nested 100,000 deep", "report run", text(SHOWN, "[" * 100_000))
case(
    REPORT, "an exhibit from the future", "report run", shown(lambda e: e.update(schema_version=9))
)
case(
    REPORT,
    "a figure in words",
    "report run",
    shown(lambda e: e["points"][0]["figures"].update({"gini@20": "low"})),
)
case(REPORT, "an exhibit without points", "report run", shown(lambda e: e.update(points=[])))
case(
    REPORT,
    "exposure that is not a number",
    "report run",
    arrays_of(EXPOSED, **{"0/exposure": lambda a: a * np.nan}),
)
case(
    REPORT,
    "lists of other items",
    "report run",
    arrays_of(EXPOSED, **{"0/lists": lambda a: a + 1000}),
)
case(
    REPORT,
    "histories longer than they are",
    "report run",
    arrays_of(EXPOSED, history_lengths=lambda a: a + 2**40),
)
case(REPORT, "titles without a column of titles", "report run --catalogue ratings.csv")
case(REPORT, "a figure that the run does not have", "plot run --only groups -o new")

# ------------------------------------------------------------ other commands
OTHER = "limelight demo, reproduce"
case(OTHER, "more items than interactions", "demo -o new --interactions 10")
case(
    OTHER,
    "a file in place of a folder",
    "demo -o ratings.csv --users 300 --items 100 --interactions 4000",
)
case(OTHER, "neither a data set nor --like", "reproduce -o new")
case(OTHER, "a data set without its data", "reproduce epinions -o new")

# ------------------------------------------------------------ Python
SMALL = sparse.csr_matrix(np.eye(6, 4, dtype=np.float32) + np.eye(6, 4, k=1, dtype=np.float32))
EYE = (np.eye(6, 2), np.eye(4, 2))
call(
    "nothing to learn from",
    "IALS().fit(csr_matrix((3, 4)))",
    lambda: ll.IALS().fit(sparse.csr_matrix((3, 4))),
)
call("a matrix of ratings", "IALS().fit(5 * X)", lambda: ll.IALS().fit(5 * SMALL))
call(
    "a matrix of weights below 0",
    "IALS().fit(-X, weight='values')",
    lambda: ll.IALS().fit(-SMALL, weight="values"),
)
call(
    "weights by a name that a matrix has not",
    "IALS().fit(X, weight='plays')",
    lambda: ll.IALS().fit(SMALL, weight="plays"),
)
call(
    "weighted histories for a model without weights",
    "IALS().fit(X).recommend(Interactions.from_matrix(5 * X, weight='values'))",
    lambda: (
        ll.IALS(factors=2)
        .fit(SMALL)
        .recommend(ll.Interactions.from_matrix(5 * SMALL, weight="values"))
    ),
)
call(
    "weights for a network",
    "MultVAE().fit(5 * X, weight='values')",
    lambda: ll.MultVAE().fit(5 * SMALL, weight="values"),
)
call("a split by time of a matrix", "split_time(X)", lambda: ll.split_time(SMALL))  # type: ignore[arg-type]
call("a dense matrix", "IALS().fit(np.ones((3, 4)))", lambda: ll.IALS().fit(np.ones((3, 4))))
call("a setting by place", "IALS(64)", lambda: ll.IALS(64))  # type: ignore[arg-type]
call("a setting with a slip of the pen", "IALS(factor=64)", lambda: ll.IALS(factor=64))
call(
    "an array for a number",
    "IALS(regularization=np.ones(3))",
    lambda: ll.IALS(regularization=np.ones(3)),
)  # type: ignore[arg-type]
call("a model that was not fitted", "IALS().recommend()", lambda: ll.IALS().recommend())
call(
    "first factors of another shape",
    "IALS(factors=2).fit(X, init=(V, U))",
    lambda: ll.IALS(factors=2).fit(SMALL, init=EYE[::-1]),
)  # type: ignore[arg-type]
call(
    "first factors beyond 32 bits",
    "IALS(factors=2).fit(X, init=(1e300 * U, V))",
    lambda: ll.IALS(factors=2).fit(SMALL, init=(1e300 * EYE[0], EYE[1])),
)
call(
    "first factors of zeros",
    "IALS(factors=2).fit(X, init=(0 * U, 0 * V))",
    lambda: ll.IALS(factors=2).fit(SMALL, init=(0 * EYE[0], 0 * EYE[1])),
)
call(
    "a negative target weight",
    "ExADMM().fit(X, exposure=ExposureTargets(weights=[-1] * 4))",
    lambda: ll.ExADMM().fit(SMALL, exposure=ll.ExposureTargets(weights=[-1] * 4)),
)
call(
    "an infinite target",
    "ExADMM().fit(X, exposure=ExposureTargets(targets=[inf] * 4))",
    lambda: ll.ExADMM().fit(SMALL, exposure=ll.ExposureTargets(targets=[np.inf] * 4)),
)
call(
    "a user that is not there",
    "model.recommend(users=[9])",
    lambda: ll.Popularity().fit(SMALL).recommend(users=[9]),
)
call(
    "histories of another width",
    "model.recommend(csr_matrix((1, 7)))",
    lambda: ll.Popularity().fit(SMALL).recommend(sparse.csr_matrix((1, 7))),
)
call(
    "nothing to evaluate on",
    "evaluate(model, X)",
    lambda: ll.evaluate(ll.Popularity().fit(SMALL), SMALL),
)  # type: ignore[arg-type]
call("a model that is no folder", "load('ratings.csv')", lambda: ll.load("ratings.csv"))
call("an object that is no table", "read(42)", lambda: ll.read(42))  # type: ignore[arg-type]
