"""The money cap of a bench. Nothing waits for money here: a request that does not fit ends the bench."""

from __future__ import annotations

from mmbu_async.bench.ask import Ask
from mmbu_async.bench.record import Sent
from mmbu_async.bench.sender import Target
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.model import Usage


class Money:
    """US dollars spent and set aside, over all stages and endpoints."""

    def __init__(self, cap: float | None) -> None:
        self.cap = cap
        self.spent = 0.0
        """What is known; requests of unknown cost count with the most they may have cost where there is a
        cap."""
        self.unknown = 0
        """Requests whose cost was never learnt."""
        self._held = 0.0
        self._estimators: dict[str, Estimator] = {}

    def hold(self, target: Target, ask: Ask) -> float | None:
        """Set aside the most that the request may cost; None: it does not fit any more."""
        if target.price is None:
            return 0.0
        expected = self._estimator(target).expect(ask.raw_input)
        worst = target.price.cost(
            Usage(input_tokens=expected.input_tokens, output_tokens=expected.most_output_tokens)
        )
        if self.cap is not None and self.spent + self._held + worst > self.cap:
            return None
        self._held += worst
        return worst

    def give_back(self, held: float) -> None:
        """It was never sent."""
        self._held -= held

    def settle(self, target: Target, held: float, ask: Ask, sent: Sent | None) -> None:
        """It has ended; None: nobody knows how."""
        self._held -= held
        cost = None if sent is None else sent.record.cost_usd
        if cost is None:
            self.unknown += 1
        self.spent += cost if cost is not None else held if self.cap is not None else 0.0
        if sent is not None and sent.reply is not None:
            self._estimator(target).learn(ask.raw_input, sent.reply)

    def _estimator(self, target: Target) -> Estimator:
        if target.label not in self._estimators:
            self._estimators[target.label] = Estimator.of(target.settings)
        return self._estimators[target.label]
