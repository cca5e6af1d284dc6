"""What the tool that follows a command takes for a visit."""

import threading

from tools.walk import Walk, walking

FILES = {
    "room/called.py": "def call():\n    return 1\n",
    "room/thread.py": "call = lambda: 1\n",
    "room/body.py": "class Body:\n    value = [1]\n",
    "room/helper.py": "def at_import():\n    return 1\n",
    "room/late.py": "from toy_walk.room.helper import at_import\nat_import()\n",
    "top.py": "def call():\n    import toy_walk.room.body, toy_walk.room.late\n",
}


def test_only_functions_count_and_only_outside_imports(tmp_path, monkeypatch):
    package = tmp_path / "toy_walk"
    for name, text in FILES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    from toy_walk import top
    from toy_walk.room import called, thread

    walk = Walk(package)
    with walking(walk):
        top.call()
        worker = threading.Thread(target=thread.call)
        worker.start()
        worker.join()
        called.call()
    assert list(walk.files) == ["top.py", "room/thread.py", "room/called.py"]
    assert walk.rooms() == {".": 1, "room": 2}
