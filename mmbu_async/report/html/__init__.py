"""Reports as pages: one file each, which loads nothing, runs nothing, and reads well on paper too.

Not imported by `mmbu_async.report`: drawing takes matplotlib, whose import takes half a second that no other
command should pay.
"""
