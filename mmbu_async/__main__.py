"""`python -m mmbu_async` is the same as `mmbu`."""

from mmbu_async.cli import main

main()
