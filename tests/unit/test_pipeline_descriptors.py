"""A process that runs out of file descriptors: nothing is opened in the middle of a run that could have been
before, and what is to be opened all the same fails with a sentence."""

from __future__ import annotations

import errno
import subprocess
import sys

from mmbu_async.errors import ConfigError, StoreError
from mmbu_async.pipeline.working import _only_error

FILL = """
import resource
from mmbu_async.config import RunConfig
from mmbu_async.model import JudgeItem
from mmbu_async.pipeline.opening import rules_of

rules = rules_of(RunConfig(model="m"))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
print(len(rules.fill(JudgeItem(labels=("a",), question="q", true_answer="a", model_answer="b")).text))
"""


def test_the_judges_prompt_is_read_before_the_run() -> None:
    done = subprocess.run([sys.executable, "-c", FILL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000


def test_it_is_told_in_a_sentence() -> None:
    full = OSError(errno.EMFILE, "Too many open files", "prompt.txt")
    found = _only_error(BaseExceptionGroup("tasks", [ExceptionGroup("inner", [full])]))
    assert isinstance(found, ConfigError)
    assert str(found).startswith(
        "there was no file descriptor left for prompt.txt; everything so far is kept"
    )
    other, ours = OSError(errno.ENOENT, "gone"), StoreError("the store is gone.")
    assert _only_error(ExceptionGroup("tasks", [other, ours])) is ours
    assert _only_error(ExceptionGroup("tasks", [other])) is other
