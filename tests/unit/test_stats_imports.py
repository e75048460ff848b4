import subprocess
import sys


def test_heavy_libraries_are_imported_by_those_who_need_them() -> None:
    code = "import sys, mmbu_async.stats; print(sorted({'scipy', 'statsmodels'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
