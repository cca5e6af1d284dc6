"""The size of the package, and what makes it hard to find one's way: counted, and never more."""

import ast
from collections import defaultdict

import pytest
from tests.support.places import ROOT

# How many there may be. The last two grow with what limelight can do, and with nothing else.
AT_MOST = {
    "imports of our own modules inside functions": 0,
    "folders with more than 20 Python files": 0,
    "files with more than 400 lines": 0,
    "class names used more than once": 6,
    "Python files": 373,
    "lines": 71_000,
}

# Where functions may import our own modules, and why: a folder, or a file that needs an extra.
LATE_IMPORTS = {
    "cli/": "a verb loads what it needs when it runs, so that the help answers at once",
}

PACKAGE = ROOT / "src" / "limelight"
TEXTS = {
    path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}


def refuse_more(what, found, offenders):
    names = "; ".join(offenders)
    assert found <= AT_MOST[what], f"{found} {what}, but at most {AT_MOST[what]} may be: {names}"


def is_ours(module):
    return module.split(".")[0] == "limelight"


def imports_ours(node):
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or is_ours(node.module)
    return isinstance(node, ast.Import) and any(is_ours(name.name) for name in node.names)


def late_imports(name):
    """Return the places where functions of a file import our own modules."""
    lines = {
        node.lineno
        for function in ast.walk(ast.parse(TEXTS[name]))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if imports_ours(node)
    }
    return [f"{name}:{line}" for line in sorted(lines)]


def by_room(size):
    """Return the sum over the files of each folder of the package, and the sum of all."""
    rooms = defaultdict(int)
    for name, text in TEXTS.items():
        rooms[name.partition("/")[0] if "/" in name else "."] += size(text)
    return sum(rooms.values()), [f"{room} ({n})" for room, n in rooms.items()]


def test_functions_do_not_import_our_own_modules():
    names = [name for name in TEXTS if not name.startswith(tuple(LATE_IMPORTS))]
    found = [place for name in names for place in late_imports(name)]
    refuse_more("imports of our own modules inside functions", len(found), found)


@pytest.mark.parametrize("place", LATE_IMPORTS)
def test_an_exception_is_needed(place):
    assert any(late_imports(name) for name in TEXTS if name.startswith(place)), (
        f"no function in {place} imports our own modules: it needs no exception any more"
    )


def test_a_folder_can_be_read_at_a_glance():
    folders = defaultdict(int)
    for name in TEXTS:
        folders[name.rpartition("/")[0] or "."] += 1
    found = [f"{folder} ({n})" for folder, n in folders.items() if n > 20]
    refuse_more("folders with more than 20 Python files", len(found), found)


def test_a_file_is_not_long():
    lines = {name: text.count("\n") for name, text in TEXTS.items()}
    found = [f"{name} ({n})" for name, n in lines.items() if n > 400]
    refuse_more("files with more than 400 lines", len(found), found)


def test_a_class_has_a_name_of_its_own():
    files = defaultdict(list)
    for name, text in TEXTS.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(name)
    found = [f"{name} ({', '.join(at)})" for name, at in files.items() if len(at) > 1]
    refuse_more("class names used more than once", len(found), found)


def test_the_package_has_no_more_files():
    refuse_more("Python files", *by_room(lambda text: 1))


def test_the_package_has_no_more_lines():
    refuse_more("lines", *by_room(lambda text: text.count("\n")))
