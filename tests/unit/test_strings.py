"""The list of strings that users see: nothing that they read is missing from it."""

from tools import strings


def test_messages_formats_and_flags_but_no_docstrings():
    text = '''"""Of a module."""
def f(n):
    """Do this."""
    raise ValueError(f"there are {n:,} users")

HELP = "Length of the lists."
KEY = "gini"
'''
    found = dict(strings.of_python(text, is_verb=False))
    assert found == {4: "there are {n} users", 6: "Length of the lists.", 7: "gini"}
    assert "Do this." in dict(strings.of_python(text, is_verb=True)).values()


def test_texts_of_pages():
    found = strings.of_page('<p class="a">Who is seen</p>\nfill(a, `half of ${n} items`);')
    assert [text for _, text in found] == ["a", "Who is seen", "half of ${n} items"]


def test_rooms_are_listed_by_file_and_line(capsys):
    strings.main(["audit"])
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("audit/") for line in lines)
    assert any("Exposure audit over" in line for line in lines)
