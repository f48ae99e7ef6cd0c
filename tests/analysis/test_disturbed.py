"""Weighed verdicts beside programs that take CPU: wrong words are rare, and large effects conclude; beside constant
load, small ones too."""

from tests.statistics.disturbed import EFFECTS, HARMS, SIDES, disturbed, wrong


def test_large_effects_conclude_beside_bursts_of_other_load_and_words_are_right() -> None:
    for at, (side, effect, harm) in enumerate((s, e, h) for s in SIDES for e in EFFECTS for h in HARMS):
        found = disturbed(side, effect, harm, 12, seed=at)
        assert sum(wrong(one, effect) for one in found) <= 1, (side, effect, harm)
        if effect in (4.0, 0.25) or (side == "always" and effect in (1.2, 1 / 1.2)):
            assert sum(one.outcome is not None for one in found) >= 11, (side, effect, harm)
