"""The money cap: never passed, as long as a call costs at most what its token limit allows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.prices import Price
from mmbu_async.endpoints.tokens import most_output_tokens
from mmbu_async.model import Usage
from mmbu_async.store import Unpriced

UNSEEN_INPUT_TOKENS = 4096
"""Input tokens of a call where no call ever told any: more than an image takes by either maker's rule, and a
question."""

_DUST = 1e-9
"""US dollars that sums and differences of many amounts may leave over."""


def most_unpriced(unpriced: Unpriced, settings: CallSettings, price: Price) -> float:
    """US dollars that earlier calls of unknown cost may have cost at most: the cap holds over sessions."""
    seen = price.cost(Usage(input_tokens=unpriced.input_tokens, output_tokens=unpriced.output_tokens))
    call = Usage(
        input_tokens=unpriced.most_input_tokens or UNSEEN_INPUT_TOKENS,
        output_tokens=most_output_tokens(settings),
    )
    return seen + unpriced.unseen * price.cost(call)


class Budget:
    """US dollars spent and set aside, for the model and the judge of one run together.

    A call sets aside the most it may cost before it starts. When that does not fit beside what is spent and
    what others have set aside, it waits for them to finish; when nothing is under way and it still does not
    fit, the cap is reached.
    """

    def __init__(
        self,
        cap: float | None,
        spent: float,
        on_reached: Callable[[], None],
        *,
        above: Budget | None = None,
    ) -> None:
        """`above`: the money of several runs, out of which this one's calls are paid as well."""
        self.cap = cap
        self._above = above
        self.spent = spent
        """Includes earlier sessions, and the worst case of calls whose price was never learnt."""
        self._held = 0.0
        self._under_way = 0
        self._changed = asyncio.Event()
        self._on_reached = on_reached
        self._reached = False

    async def hold(self, usd: float | None) -> None:
        """See `endpoints.client.Purse`."""
        if self.cap is not None and usd is not None:
            while not self._reached and self.spent + self._held + usd > self.cap:
                if self._under_way == 0 or self.spent + usd > self.cap:
                    self._reached = True
                    self._on_reached()
                    break
                self._changed.clear()
                await self._changed.wait()
            if self._reached:
                self._changed.set()
                raise Draining
            self._held += usd
        self._under_way += 1
        if self._above is not None:
            try:
                await self._above.hold(usd)
            except BaseException:
                self._settle(usd, 0.0)
                raise

    def reserve(self, usd: float | None) -> bool:
        """Set aside what a request in a batch may cost, where it fits; it is given back by `release`."""
        if usd is None:
            return True
        if not self._fits(usd) or (self._above is not None and not self._above.reserve(usd)):
            return False
        if self.cap is not None:
            self._held += usd
        return True

    def _fits(self, usd: float | None) -> bool:
        return self.cap is None or usd is None or self.spent + self._held + usd <= self.cap

    def take_over(self, usd: float | None) -> None:
        """Set aside what a batch that is out already may cost, whether it fits or not."""
        if self.cap is not None and usd is not None:
            self._held += usd
        if self._above is not None:
            self._above.take_over(usd)

    def release(self, held: float | None, spent: float = 0.0) -> None:
        """A batch, or a request of it, that was set aside has cost so much."""
        if self.cap is not None and held is not None:
            self._held = max(0.0, self._held - held)
        self.spent += spent
        self._changed.set()
        if self._above is not None:
            self._above.release(held, spent)

    def give_up(self, usd: float | None) -> bool:
        """Whether the cap is reached, since a request does not fit and nothing is set aside that might be
        given back; then all is told so."""
        if self.reserve(usd):
            self.release(usd)
            return False
        if self._above is not None and self._fits(usd):
            return self._above.give_up(usd)
        if self._held <= _DUST or (self.cap is not None and usd is not None and self.spent + usd > self.cap):
            self._reached = True
            self._on_reached()
            self._changed.set()
            return True
        return False

    @property
    def capped(self) -> bool:
        """Whether calls must have a price."""
        return self.cap is not None or (self._above is not None and self._above.capped)

    def settle(self, held: float | None, spent: float | None) -> None:
        """See `endpoints.client.Purse`. An unknown cost is taken as the worst case."""
        self._settle(held, spent)
        if self._above is not None:
            self._above.settle(held, spent)

    def _settle(self, held: float | None, spent: float | None) -> None:
        self._under_way -= 1
        if self.cap is not None and held is not None:
            self._held -= held
        self.spent += held or 0.0 if spent is None else spent
        self._changed.set()
