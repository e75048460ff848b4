"""In which parts a session is done where some sides ask in batches and some do not."""

from __future__ import annotations

from mmbu_async.pipeline.batch_plan import Part, call_back, parts


def test_without_batches_there_is_one_part() -> None:
    assert parts(model=False, judges=[(1, False)], out=()) == (Part(batched=False, model=True, judges=(1,)),)
    assert parts(model=None, judges=[(1, False)], out=()) == (Part(batched=False, model=False, judges=(1,)),)
    assert parts(model=None, judges=[], out=()) == (Part(batched=False, model=False, judges=()),)


def test_all_in_batches_is_one_part() -> None:
    found = parts(model=True, judges=[(1, True), (2, True)], out=(None, 1))
    assert found == (Part(batched=True, model=True, judges=(1, 2)),)


def test_who_needs_replies_comes_after_who_gets_them() -> None:
    first, second = parts(model=False, judges=[(1, True), (2, False)], out=())
    assert first == Part(batched=False, model=True, judges=(2,))
    assert second == Part(batched=True, model=False, judges=(1,))
    first, second = parts(model=True, judges=[(1, False), (2, True)], out=())
    assert first == Part(batched=True, model=True, judges=(2,))
    assert second == Part(batched=False, model=False, judges=(1,))


def test_batches_of_who_asks_one_by_one_now_are_called_back_first() -> None:
    first, second, third = parts(model=False, judges=[(1, False)], out=(None, 1))
    assert first == Part(batched=True, model=True, judges=(1,), cancel=True)
    # Its replies are judged before others are made.
    assert second == Part(batched=False, model=False, judges=(1,))
    assert third == Part(batched=False, model=True, judges=(1,))
    first, *_ = parts(model=True, judges=[(1, False)], out=(1,))
    assert first == Part(batched=True, model=False, judges=(1,), cancel=True)


def test_a_rejudge_leaves_the_batches_of_the_model_alone() -> None:
    assert parts(model=None, judges=[(1, True)], out=(None,)) == (
        Part(batched=True, model=False, judges=(1,)),
    )


def test_calling_back_hands_nothing_in() -> None:
    assert call_back([1, 2], (None, 2)) == (Part(batched=True, model=True, judges=(2,), cancel=True),)
    assert call_back([1], (7,)) == ()
