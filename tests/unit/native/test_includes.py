"""Which headers the C++ includes: simd/ only the C library's, and only python/ those of Python."""

import re

from tests.support.places import ROOT

NATIVE = ROOT / "native"
C_LIBRARY = {"cmath", "cstddef", "cstdint", "cstring", "immintrin.h"}


def includes(file):
    return set(re.findall(r'^ *#include [<"](.+)[>"]', file.read_text("utf-8"), re.MULTILINE))


def included_by(file):
    """All that a file includes, directly or not."""
    found, waiting = set(), includes(file)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if (NATIVE / name).is_file():
            waiting |= includes(NATIVE / name) - found
    return found


def test_simd_includes_only_the_c_library():
    # Templates of the standard library would be compiled with a variant's flags, merged by the
    # linker with the baseline's copies, and could crash an older processor.
    files = [*(NATIVE / "simd").iterdir()]
    headers = {f"simd/{file.name}" for file in files if file.suffix == ".hpp"}
    for file in files:
        assert included_by(file) <= C_LIBRARY | headers | {"core/partial_sort.hpp"}, file.name
        assert "std::" not in file.read_text("utf-8"), file.name
    assert included_by(NATIVE / "simd/variant.cpp") >= headers


def test_only_the_bindings_know_python():
    for folder in ("core", "simd"):
        for file in (NATIVE / folder).iterdir():
            known = {name.partition("/")[0] for name in included_by(file)}
            assert not known & {"nanobind", "python", "Python.h"}, file.name
