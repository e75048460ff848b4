"""One-to-one matching of predicted to true boxes at IoU 0.5: the figure that a hundred guesses cannot game.

Best IoU rewards a model that lists boxes all over the image. Here each true box can be found once, and every
predicted box beyond that is a false positive. The matching is a maximum one (Hopcroft-Karp): as many pairs as
any assignment allows, so the count depends neither on the order of the boxes nor on a greedy choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmbu_async.scoring.iou import THRESHOLD, BoxArrays, ExactRow, Ints, pair_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCounts:
    """One entry a row: boxes found, predicted for nothing, and missed."""

    tp: Ints
    fp: Ints
    fn: Ints


def match_boxes(predicted: BoxArrays, truth: BoxArrays, exact: ExactRow | None = None) -> BoxCounts:
    """Box counts of each row. Every predicted box counts, also one that can never match."""
    offered = np.diff(predicted.offsets)
    true = np.diff(truth.offsets)
    matched = np.zeros(truth.rows, dtype=np.int64)
    for chunk in pair_chunks(predicted, truth, exact):
        hits = np.flatnonzero(chunk.iou >= THRESHOLD)
        places = np.searchsorted(chunk.starts, hits, side="right") - 1
        counts = np.bincount(places, minlength=len(chunk.rows))
        matched[chunk.rows] = np.minimum(counts, 1)
        # Only rows with several hits can have boxes that compete.
        for place in np.flatnonzero(counts > 1).tolist():
            row = int(chunk.rows[place])
            begin, end = np.searchsorted(places, (place, place + 1))
            one, other = np.divmod(hits[begin:end] - chunk.starts[place], true[row])
            matched[row] = _most_pairs(one, other, (int(offered[row]), int(true[row])))
    return BoxCounts(tp=matched, fp=offered - matched, fn=true - matched)


def _most_pairs(one: Ints, other: Ints, shape: tuple[int, int]) -> int:
    # A third of a second to import, and few runs have rows in which boxes compete.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    graph = csr_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=shape)
    return int(np.count_nonzero(maximum_bipartite_matching(graph, perm_type="column") >= 0))
