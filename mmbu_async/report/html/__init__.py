"""Reports as pages: one file each, which loads nothing, runs nothing, and reads well on paper too.

Not imported by `mmbu_async.report`: drawing takes matplotlib, whose import takes half a second that no other
command should pay.
"""

from mmbu_async.report.html.adapted import adaptations_to_html
from mmbu_async.report.html.compared import comparison_to_html
from mmbu_async.report.html.page import to_html

__all__ = ["adaptations_to_html", "comparison_to_html", "to_html"]
