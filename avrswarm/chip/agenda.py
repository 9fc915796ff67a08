"""When does who act next? ``ChipRow.next`` by source, and the earliest of all.

``next_event`` may be earlier than the earliest entry, never later: somebody who puts an event off
leaves it as it is, and when the time comes nothing happens. ``update_next_event`` makes it exact.
"""

from __future__ import annotations

from avrswarm.chip.state import ChipRow, Source
from avrswarm.jit import kernel


@kernel
def plan(c: ChipRow, source: int, when: int) -> None:
    """Let a source act at cycle ``when``; NEVER if it has nothing to do."""
    c.next[source] = when
    if source >= Source.EEPROM:
        c.next_rare = _earliest_rare(c)
    if when < c.next_event:
        c.next_event = when


@kernel
def _earliest_rare(c: ChipRow) -> int:
    n = c.next
    return min(min(min(n[6], n[7]), min(n[8], n[9])), min(min(n[10], n[11]), n[12]))


@kernel
def update_next_event(c: ChipRow) -> None:
    """Recompute ``next_event`` exactly."""
    # Written out: a loop is turned into slow vector gathers, and this runs at every event.
    n = c.next
    c.next_event = min(min(min(n[0], n[1]), min(n[2], n[3])), min(min(n[4], n[5]), c.next_rare))
