"""Benchmarks by name: ours, those of plug-ins, and those that a user describes in a file."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

from mmbu_async.errors import ConfigError
from mmbu_async.model import Benchmark
from mmbu_async.tasks import plug_ins
from mmbu_async.tasks.forms import AS_GIVEN, Form
from mmbu_async.tasks.gmai_mmbench import GmaiMmBench
from mmbu_async.tasks.microvqa import MicroVqa
from mmbu_async.tasks.mmbu_closed import MmbuClosed
from mmbu_async.tasks.mmbu_public import MmbuPublic
from mmbu_async.tasks.mmmu import mmmu_pro_standard, mmmu_pro_vision, mmmu_test, mmmu_validation
from mmbu_async.tasks.omnimedvqa import OmniMedVqa
from mmbu_async.tasks.pmc_vqa import PmcVqa
from mmbu_async.tasks.short_answers import path_vqa, slake, vqa_rad

_PLAIN: Mapping[str, Callable[[], Benchmark]] = {
    "mmbu-public": MmbuPublic.with_prompts,
    "mmmu-val": mmmu_validation,
    "mmmu-test": mmmu_test,
    "mmmu-pro": mmmu_pro_standard,
    "mmmu-pro-vision": mmmu_pro_vision,
    "pathvqa": path_vqa,
    "vqa-rad": vqa_rad,
    "slake": slake,
}
_CHOICE: Mapping[str, Callable[[Form], Benchmark]] = {
    "mmbu-closed": MmbuClosed,
    "pmc-vqa": PmcVqa,
    "omnimedvqa": OmniMedVqa,
    "gmai-mmbench": GmaiMmBench,
    "microvqa": MicroVqa,
}
NAMES = tuple(sorted({**_PLAIN, **_CHOICE}))


def load(name: str, form: Form = AS_GIVEN) -> Benchmark:
    """The benchmark of that name. Raises ConfigError naming close matches."""
    if name in _CHOICE:
        return _CHOICE[name](form)
    points = () if name in _PLAIN else plug_ins.offered()
    made = _PLAIN[name]() if name in _PLAIN else plug_ins.load(name, points)
    if made is None:
        known = [*NAMES, *(point.name for point in points)]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known)}."
        raise ConfigError(f"there is no benchmark '{name}'; {hint}")
    if form != AS_GIVEN:
        raise ConfigError(
            f"--shuffle-options and --circular are for multiple choice ({', '.join(sorted(_CHOICE))}), "
            f"not for '{name}'."
        )
    return made


def benchmarks() -> Iterator[Benchmark | ConfigError]:
    """Every benchmark that has a name, ours first; of a plug-in that cannot be used, what is wrong."""
    for name in NAMES:
        yield load(name)
    yield from plug_ins.usable(NAMES)
