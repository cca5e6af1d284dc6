"""The parts of the live page fit together, and its policy lets in these and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from limelight.serve.page import SHARED, live_page

OWN = files("limelight.serve.page")
SCRIPTS = sorted(part.name for part in OWN.iterdir() if part.name.endswith(".js"))


def read(name: str) -> str:
    return (OWN / name).read_text(encoding="utf-8")


def test_every_script_is_listed_once() -> None:
    assert sorted(read("scripts.txt").split()) == SCRIPTS
    assert not {*SCRIPTS} & {*SHARED}


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_html_or_code_from_text_or_keeps_what_it_should_forget(name: str) -> None:
    unwanted = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert not re.search(rf"{unwanted}|</script|<!--|localStorage|\.cookie", read(name))


@pytest.mark.parametrize("element", ["script", "style"])
def test_the_policy_names_what_the_page_holds(element: str) -> None:
    page = live_page()
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe" not in policy
    held = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in held]
    [allowed] = re.findall(f"{element}-src ([^;]*)", policy)
    assert allowed.split() == [f"'sha256-{digest}'" for digest in digests]


def test_the_page_names_no_other_host() -> None:
    scripts = "".join(map(read, [*SCRIPTS, "live.html", "live.css"]))
    assert "//" not in re.sub(r"^\s*//.*$|\s// .*$", "", scripts, flags=re.MULTILINE)
