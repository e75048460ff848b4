"""Benchmarks from installed packages, good and broken: real distributions on the path of a real process."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import mmbu_async
from tests.acceptance.program import MINI, mmbu, several, simulator

GOOD = '''\
"""A benchmark that no TOML file can describe: a count is right when it is at most one off per ten."""

import hashlib

from mmbu_async.errors import RowError
from mmbu_async.model import Answer, DataSpec, ImageSlot, Prompt, Sample, Score, Status

ASK = "Answer with a number inside <answer> tags."


class Counts:
    name = "plugged-counts"
    title = "Counts"
    data = DataSpec(hub="nobody/counts", tables=("counts.jsonl",), image_columns=("image",))
    rows = "3"
    routes = ("count",)
    metric = "accuracy within a tenth"
    judge = ""
    licence = "CC0"
    citation = "nobody"

    def samples(self, raw):
        if not raw.fields.get("count"):
            raise RowError(str(raw.position), "has no count; give it one")
        return (
            Sample(
                id=str(raw.fields["id"]),
                position=raw.position,
                question="How many objects are there?",
                answer=str(raw.fields["count"]),
                route="count",
                images=raw.images,
                fields=dict(raw.fields),
            ),
        )

    def prompt(self, sample):
        return Prompt(parts=(ImageSlot(index=0), f"{sample.question}\\n\\n{ASK}"))

    def prompt_hashes(self):
        return {"ask": hashlib.sha256(ASK.encode()).hexdigest()}

    def read(self, sample, completion):
        said = completion.text.rpartition("<answer>")[2]
        return Answer(text="".join(c for c in said if c.isdigit()), how="tag")

    def judge_item(self, sample, answer):
        return None

    def score(self, rows):
        scores = []
        for row in rows:
            truth = int(row.sample.answer)
            right = bool(row.answer.text) and abs(int(row.answer.text) - truth) * 10 <= truth
            scores.append(
                Score(
                    status=Status.SCORED,
                    correct=right,
                    tp=int(right),
                    fp=int(bool(row.answer.text) and not right),
                    fn=int(not right),
                )
            )
        return scores

    def family(self, sample):
        return "counting"

    def shown_route(self, sample):
        return "count"

    def blemishes(self, sample):
        return ()


class Unjudgeable(Counts):
    name = "unjudgeable"
    judge = "my_own_prompt"


class Misnamed(Counts):
    name = "something-else"


class Taken(Counts):
    name = "pmc-vqa"


class Twin(Counts):
    name = "twin"


class Half:
    name = "half"
    data = Counts.data


class NoData(Counts):
    name = "no-data"
    data = "nobody/counts"


def breaks():
    raise RuntimeError("no licence file")
'''
BROKEN = {
    "not-there": ("no_such_module:benchmark", "(ModuleNotFoundError: No module named 'no_such_module')"),
    "no-attribute": ("plugged:Nothing", "(AttributeError: module 'plugged' has no attribute 'Nothing')"),
    "breaks": ("plugged:breaks", "(RuntimeError: no licence file)"),
    "not-callable": ("plugged:ASK", "(TypeError: 'str' object is not callable)"),
    "half": ("plugged:Half", "returned Half, which is no Benchmark for want of title, rows, routes"),
    "no-data": ("plugged:NoData", "returned NoData, which is no Benchmark for want of data as a DataSpec"),
    "misnamed": ("plugged:Misnamed", "calls itself 'something-else'"),
}


def install(folder: Path, package: str, points: dict[str, str]) -> None:
    """What an installer leaves behind of a distribution, beside its modules."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = ["[mmbu_async.benchmarks]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "plugged.py").write_text(GOOD)
    install(folder, "plugged", {"plugged-counts": "plugged:Counts"})
    return folder


def path_of(site: Path) -> dict[str, str]:
    root = str(Path(mmbu_async.__file__).parents[1])
    return {"PYTHONPATH": os.pathsep.join((str(site), root))}


def counts(folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(MINI / "images" / "CT_small.png", folder / "ct.png")
    rows = [{"id": f"c{number}", "image": "ct.png", "count": 10**number} for number in range(3)]
    (folder / "counts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_a_benchmark_of_an_installed_package(tmp_path: Path, site: Path) -> None:
    data, path = counts(tmp_path / "data"), path_of(site)
    shown = mmbu("list", environment=path)
    assert shown.returncode == 0 and not shown.stderr
    assert "plugged-counts: Counts" in shown.stdout and "pmc-vqa: " in shown.stdout
    checked = mmbu("data", "check", "plugged-counts", "--data", str(data), environment=path)
    assert checked.returncode == 0 and "Nothing is wrong." in checked.stdout
    with simulator(tmp_path / "log.jsonl") as server:
        flags = ["--name", "r", "--model", "m", "--data", str(data)]
        ran = mmbu("run", "plugged-counts", *flags, *server.flags(), cwd=tmp_path, environment=path)
        assert ran.returncode == 0, ran.stderr
        assert "COMPLETE: 3 of 3 rows scored." in ran.stdout
        assert mmbu("resume", "r", cwd=tmp_path, environment=path).returncode == 0
        assert len(server.requests()) == 3
    # The package is gone: what it did is still in the store, and the error says what is missing.
    without = mmbu("resume", "r", cwd=tmp_path)
    assert without.returncode == 2
    assert "there is no benchmark 'plugged-counts'" in without.stderr


def test_a_row_that_a_plug_in_refuses_is_a_sentence(tmp_path: Path, site: Path) -> None:
    data = counts(tmp_path / "data")
    (data / "counts.jsonl").write_text('{"id": "c", "image": "ct.png"}')
    checked = mmbu("data", "check", "plugged-counts", "--data", str(data), environment=path_of(site))
    assert checked.returncode == 2
    assert "counts.jsonl, line 1" in checked.stderr and "has no count; give it one" in checked.stderr
    assert "Traceback" not in checked.stderr


def test_broken_ones_are_named_and_harm_nobody(tmp_path: Path, site: Path) -> None:
    install(site, "broken-things", {name: value for name, (value, _) in BROKEN.items()})
    install(site, "greedy", {"pmc-vqa": "plugged:Taken", "twin": "plugged:Twin"})
    install(site, "twins", {"twin": "plugged:Twin"})
    path = path_of(site)
    shown = mmbu("list", environment=path)
    assert shown.returncode == 0
    assert "plugged-counts: Counts" in shown.stdout and "mmbu-public: " in shown.stdout
    assert shown.stdout.count("pmc-vqa: ") == 1
    complaints = shown.stderr.splitlines()
    assert len(complaints) == len(BROKEN) + 2, shown.stderr
    taken = next(line for line in complaints if "'pmc-vqa'" in line)
    assert "of package greedy 1.0 cannot be reached" in taken
    for name, (_, words) in BROKEN.items():
        (line,) = (line for line in complaints if f"plug-in '{name}' of package broken-things 1.0" in line)
        assert words in line
    with simulator(tmp_path / "log.jsonl") as server:
        flags = ["--model", "m", *server.flags()]
        bad = [("run", name, *flags, "--data", str(tmp_path)) for name in (*BROKEN, "twin")]
        # Ours are not harmed, and neither is the good one.
        good = [
            ("run", "mmbu-public", *flags, "--data", str(MINI)),
            ("run", "plugged-counts", *flags, "--data", str(counts(tmp_path / "data"))),
        ]
        done = several(*bad, *good, cwd=tmp_path, environment=path)
    for name, ran in zip((*BROKEN, "twin"), done, strict=False):
        assert ran.returncode == 2
        assert len(ran.stderr.splitlines()) == 1 and f"plug-in '{name}'" in ran.stderr
    assert "by package greedy 1.0 and by package twins 1.0" in done[len(BROKEN)].stderr
    assert [ran.returncode for ran in done[len(bad) :]] == [0, 0], done[-1].stderr


def test_a_judge_that_does_not_exist(tmp_path: Path, site: Path) -> None:
    install(site, "judged", {"unjudgeable": "plugged:Unjudgeable"})
    flags = ["--model", "m", "--data", str(counts(tmp_path / "data")), "--dry-run"]
    ran = mmbu("run", "unjudgeable", *flags, environment=path_of(site))
    assert ran.returncode == 2
    assert "asks for the judge's prompt 'my_own_prompt', which does not exist" in ran.stderr


def test_forms_are_for_choices_and_names_come_first(site: Path) -> None:
    path = path_of(site)
    words = {
        "plugged-counts": "not for 'plugged-counts'",
        "pluged-counts": "did you mean 'plugged-counts'?",
    }
    commands = [("run", name, "--model", "m", "--circular") for name in words]
    for ran, said in zip(several(*commands, environment=path), words.values(), strict=True):
        assert ran.returncode == 2 and said in ran.stderr
