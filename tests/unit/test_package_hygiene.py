"""What the package never does, looked for in its source: run text as code, unpickle, start a shell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mmbu_async

PACKAGE = Path(mmbu_async.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

CALLS = {"eval", "exec", "compile", "__import__", "breakpoint"}
"""Builtins that make code of text."""
MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "code",
    "codeop",
    "telnetlib",
}
"""Their loaders run what a file says."""
METHODS = {
    ("os", "system"),
    ("os", "popen"),
    ("yaml", "load"),
    ("torch", "load"),
    ("pandas", "read_pickle"),
    ("pd", "read_pickle"),
    ("tempfile", "mktemp"),
}
ARGUMENTS = {
    "shell": True,
    "allow_pickle": True,
    "trust_remote_code": True,
    "verify_ssl": False,
    "ssl": False,
}
"""Keyword arguments that open a door."""


def found_in(source: str) -> list[str]:
    """What stands in a source that must not, with its line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").partition(".")[0]] if not node.level else []
        else:
            names = []
        found += [f"{node.lineno}: import {name}" for name in names if name in MODULES]  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            found += [f"{node.lineno}: {name}" for name in _called(node)]
    return found


def _called(node: ast.Call) -> list[str]:
    found = []
    match node.func:
        case ast.Name(id=name) if name in CALLS:
            found.append(name)
        case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in METHODS:
            found.append(f"{module}.{name}")
    for keyword in node.keywords:
        value = keyword.value
        if (
            keyword.arg in ARGUMENTS
            and isinstance(value, ast.Constant)
            and value.value is ARGUMENTS[keyword.arg]
        ):
            found.append(f"{keyword.arg}={value.value}")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_nothing_runs_text_as_code(file: Path) -> None:
    assert found_in(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("eval('1')", "1: eval"),
        ("\nexec(x)", "2: exec"),
        ("import pickle", "1: import pickle"),
        ("from pickle import loads", "1: import pickle"),
        ("def f():\n    import marshal.x as y", "2: import marshal"),
        ("os.system('ls')", "1: os.system"),
        ("subprocess.run(x, shell=True)", "1: shell=True"),
        ("np.load(x, allow_pickle=True)", "1: allow_pickle=True"),
        ("datasets.load_dataset(x, trust_remote_code=True)", "1: trust_remote_code=True"),
        ("aiohttp.TCPConnector(ssl=False)", "1: ssl=False"),
    ],
)
def test_the_look_finds_what_it_looks_for(source: str, words: str) -> None:
    assert found_in(source) == [words]


def test_harmless_words_are_left_alone() -> None:
    assert found_in("re.compile('x'); model.eval(); subprocess.run(x, shell=False); 'eval(1)'") == []


def test_the_whole_package_is_looked_at() -> None:
    assert len(FILES) > 100
    assert PACKAGE / "cli" / "main.py" in FILES
