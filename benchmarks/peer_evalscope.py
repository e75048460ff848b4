"""One evaluation by evalscope, run in an environment that has it. Its public API, its defaults.

    python peer_evalscope.py FOLDER URL CONCURRENCY OUTPUT

FOLDER is laid out as its benchmark pmc_vqa expects: test_clean.csv beside images.zip.
"""

from __future__ import annotations

import sys

from evalscope import TaskConfig, run_task


def main() -> None:
    folder, url, concurrency, output = sys.argv[1:]
    run_task(
        TaskConfig(
            model="bare",
            api_url=url,
            api_key="none",
            eval_type="openai_api",
            datasets=["pmc_vqa"],
            dataset_args={"pmc_vqa": {"dataset_id": folder}},
            eval_batch_size=int(concurrency),
            work_dir=output,
        )
    )


if __name__ == "__main__":
    main()
