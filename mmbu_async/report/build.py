"""From the store to `ReportData`, in one streamed pass over the rows: memory does not grow with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mmbu_async.model import Finish, Status
from mmbu_async.report import at_work, words
from mmbu_async.report.beside import Measures
from mmbu_async.report.companions import Companions
from mmbu_async.report.contrast import contrast
from mmbu_async.report.distributions import Spreads
from mmbu_async.report.fates import UNTAGGED, Fates
from mmbu_async.report.groups import Attribute, Counts, Figures, Group, Tally
from mmbu_async.report.heatmap import FAMILY, Heatmap, Modalities, graded, most_telling
from mmbu_async.report.model import Clock, Detection, ReportData, RowCounts, Saved
from mmbu_async.report.official import Official
from mmbu_async.report.panel import panel
from mmbu_async.report.plan import resolution
from mmbu_async.report.provenance import provenance, selection
from mmbu_async.report.rescoring import rescoring
from mmbu_async.report.rotations import Rotations
from mmbu_async.stats import LEVEL, RESAMPLES, Pattern
from mmbu_async.store import Outcome, RunRecord, RunTotals, SessionRecord, SharedVerdicts, Store

INFERRING = frozenset({"run", "resume"})
"""Kinds of session that ask the model under test."""


def build_report(store: Store, run: RunRecord, *, seed: int = 0) -> ReportData:
    """The report of a run as it stands. `seed` is that of the bootstrap: the same store and seed give the
    same intervals. Scores are taken as stored; whether they are up to date is said, not mended."""
    # Another judge's verdicts may become the run's while this reads.
    with store.snapshot():
        return _build(store, store.run(run.name), seed)


def _build(store: Store, run: RunRecord, seed: int) -> ReportData:
    census = Census()
    for row in store.outcomes(run.id):
        census.add(row)
    totals = store.totals(run.id)
    rows = census.row_counts(run.dataset.rows)
    figures = Figures(seed=seed)
    complete = rows.selected > 0 and rows.open == 0
    judge_id = run.judge.id if run.judge else None
    beside = census.companions
    overall = beside.beside(None, figures.group("all selected", census.tally.all), census.tally.all, figures)
    by_family = census.tally.families
    families = tuple(
        beside.beside(group.name, group, by_family[group.name or ""], figures)
        for group in figures.groups(by_family)
    )
    attributes = census.tally.attributes(figures)
    notes = _notes(run, rows, stale=store.scores_stale(run.id, judge_id))
    working = at_work.note(store, run) or at_work.died(totals.sessions)
    ran = provenance(
        run,
        totals.sessions,
        selected=rows.selected,
        reported=census.models,
        judged=bool(totals.judge.calls or totals.shared or rows.unjudged),
        scored=rows.scored + rows.ungraded,
    )
    return ReportData(
        run=run.name,
        complete=complete,
        first_line=_first_line(rows),
        notes=((working,) if working else ()) + notes + beside.notes(overall) + ran.warnings,
        rows=rows,
        overall=overall,
        families=families,
        attributes=attributes,
        heatmaps=census.modalities.heatmaps() or _heatmaps(store, run, families, attributes),
        fates=census.fates.groups(figures),
        distributions=census.spreads.distributions(),
        detection=census.boxes.figures(figures) if census.boxes.rows else None,
        circular=census.rotations.circular(figures, complete=complete),
        official=census.official.lines(),
        measures=census.measures.means(),
        resolution=resolution(rows.scored, rows.right),
        contrast=contrast(store, run, seed=seed) if complete else None,
        panel=panel(store, run, totals),
        rescoring=rescoring(store, run),
        failure_kinds=dict(census.failures.most_common()),
        model_spend=totals.infer,
        judge_spend=totals.judge,
        failed_calls=totals.failures,
        shared_verdicts=sum(shared.verdicts for shared in totals.shared),
        saved=tuple(map(_saved, totals.shared)),
        clock=_clock(totals, replies=census.replies),
        ran=ran,
        resamples=RESAMPLES,
        level=LEVEL,
    )


class Boxes:
    """What object detection says beside right and wrong, summed over its scored rows."""

    def __init__(self) -> None:
        self.rows = 0
        self._iou = 0.0
        self._offered = 0
        self._truths = 0
        self._most = 0
        self._none = 0
        self._matched: Counts = Counter()

    def add(self, detail: Mapping[str, object]) -> None:
        """The detail of one score of the detection scorer."""
        tp, fp, fn = (_whole(detail.get(name)) for name in ("box_tp", "box_fp", "box_fn"))
        offered = _whole(detail.get("offered"))
        self.rows += 1
        self._iou += _number(detail.get("max_iou"))
        self._offered += offered
        self._truths += tp + fn
        self._most = max(self._most, offered)
        self._none += offered == 0
        self._matched[Pattern(tp=tp, fp=fp, fn=fn, correct=False)] += 1

    def figures(self, figures: Figures) -> Detection:
        return Detection(
            rows=self.rows,
            mean_iou=self._iou / self.rows if self.rows else None,
            boxes=self._offered,
            truths=self._truths,
            most_boxes=self._most,
            no_boxes=self._none,
            matched_f1=figures.headline(self._matched).f1,
        )


class Census:
    """Everything that is counted row by row."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.boxes = Boxes()
        self.companions = Companions()
        self.rotations = Rotations()
        self.measures = Measures()
        self.official = Official()
        self.modalities = Modalities()
        self.fates = Fates()
        self.spreads = Spreads()
        self.failures: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.replies = 0
        self._status: Counter[Status] = Counter()
        self._right = 0
        self._guessed = 0
        self._guessed_right = 0
        self._finish: Counter[Finish] = Counter()
        self._untagged = 0
        self._empty = 0
        self._scaled = 0

    def add(self, row: Outcome) -> None:
        score = row.score
        pattern = None
        if score is not None:
            if score.status is Status.SCORED:
                pattern = Pattern(tp=score.tp, fp=score.fp, fn=score.fn, correct=bool(score.correct))
                self._right += pattern.correct
                if "max_iou" in score.detail:
                    self.boxes.add(score.detail)
                    self.spreads.add_iou(_number(score.detail["max_iou"]), correct=pattern.correct)
                if score.detail:
                    self.companions.add(row.family, pattern, score.detail)
                    self.rotations.add(pattern, score.detail)
                    self.measures.add(score.detail)
            self._untagged += row.how == UNTAGGED
            self._empty += not row.answered
            if pattern is not None and score.detail.get("guess"):
                self._guessed += 1
                self._guessed_right += pattern.correct
        self._status[row.status] += 1
        if row.status is not Status.UNGRADED:
            self.tally.add(row.family, row.strata, pattern)
            self.official.add(row.strata, pattern)
            self.modalities.add(row, pattern.correct if pattern is not None else None)
            self.fates.add(row, pattern)
        self._scaled += row.image_scale != 1
        if row.spent is not None:
            self.spreads.add(row.spent)
        if row.finish is not None:
            self.replies += 1
            self.models[row.model] += 1
            self._finish[row.finish] += 1
        if row.failure is not None:
            self.failures[row.failure.value] += 1

    def row_counts(self, dataset: int) -> RowCounts:
        return RowCounts(
            dataset=dataset,
            selected=self._status.total(),
            scored=self._status[Status.SCORED],
            right=self._right,
            ungraded=self._status[Status.UNGRADED],
            guessed=self._guessed,
            guessed_right=self._guessed_right,
            failed=self._status[Status.FAILED],
            unjudged=self._status[Status.UNJUDGED],
            pending=self._status[Status.PENDING],
            untagged=self._untagged,
            truncated=self._finish[Finish.LENGTH],
            refused=self._finish[Finish.REFUSAL],
            empty=self._empty,
            scaled=self._scaled,
        )


def _heatmaps(
    store: Store, run: RunRecord, families: tuple[Group, ...], attributes: tuple[Attribute, ...]
) -> tuple[Heatmap, ...]:
    """Where no column says how an image was made: one of what tells most. Which that is shows only when all
    rows are counted, so that they are read once more."""
    properties = {attribute.name: attribute.groups for attribute in attributes}
    found = most_telling(properties | {FAMILY: families}, graded(store.outcomes(run.id)))
    return (found,) if found else ()


def _first_line(rows: RowCounts) -> str:
    if rows.selected == 0:
        return "EMPTY: this run has no rows."
    if rows.open == 0 and rows.ungraded == rows.selected:
        return f"UNGRADED: {words.rows(rows.ungraded)} replied to; the answers of this split are not public."
    if rows.open == 0:
        return f"COMPLETE: {words.count(rows.scored)} of {words.rows(rows.selected)} scored."
    kinds = (("failed", rows.failed), ("unjudged", rows.unjudged), ("pending", rows.pending))
    named = ", ".join(f"{words.count(number)} {kind}" for kind, number in kinds if number)
    return f"INCOMPLETE: {words.count(rows.open)} of {words.rows(rows.selected)} without a score ({named})."


def _notes(run: RunRecord, rows: RowCounts, *, stale: bool) -> tuple[str, ...]:
    notes = []
    if rows.selected < rows.dataset:
        given = ", ".join(f"{name} {words.setting(value)}" for name, value in selection(run.config).items())
        notes.append(
            f"{words.count(rows.selected)} of the dataset's {words.rows(rows.dataset)} were selected"
            + (f" ({given})." if given else ".")
        )
    if rows.guessed:
        sure = (rows.right - rows.guessed_right) / max(1, rows.selected - rows.ungraded)
        notes.append(
            f"{words.rows(rows.guessed)} had no readable answer and were guessed by the benchmark's rules "
            f"({words.count(rows.guessed_right)} right); with them counted wrong the accuracy is "
            f"{words.share(sure)}."
        )
    if rows.ungraded:
        notes.append(
            f"{words.rows(rows.ungraded)} have no public answer and are in no figure; `mmbu export` with a "
            "name that ends in .submission.json writes their answers for the benchmark's server."
        )
    if stale:
        notes.append(f"replies or verdicts came after these scores were made; run `mmbu rescore {run.name}`.")
    return tuple(notes)


def _saved(shared: SharedVerdicts) -> Saved:
    each = shared.usd_each
    return Saved(
        judge=shared.judge,
        verdicts=shared.verdicts,
        cost_usd=None if each is None else each * shared.verdicts,
    )


def _clock(totals: RunTotals, *, replies: int) -> Clock:
    spent = [(session, _wall(session, totals.last_reply_at)) for session in totals.sessions]
    asking = sum(seconds for session, seconds in spent if session.kind in INFERRING)
    return Clock(
        sessions=len(spent),
        wall_s=sum(seconds for _, seconds in spent),
        asking_s=asking,
        rows_per_s=replies / asking if asking > 0 and replies else None,
    )


def _wall(session: SessionRecord, last_reply_at: float | None) -> float:
    """A session that lives, or died unnoticed, counts up to the run's last reply."""
    end = session.ended_at if session.ended_at is not None else last_reply_at
    return max(0.0, end - session.started_at) if end is not None else 0.0


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0
