"""On-chip peripherals, one file each, named as the datasheet's chapters.

Each is brought up to date late: ``catch_up`` advances it in closed form to a given edge, reads and
writes call it first, and ``ChipRow.next`` holds the cycle at which it next matters to anyone else.
The shared vocabulary:

* *edge*: the cycle number at whose start something happens. Hardware events at an edge are decided
  by the state before it; a CPU write landing at the same edge acts after them.
* ``catch_up(c, edge)``: all hardware events at edges up to and including ``edge`` have happened.
* ``schedule(c)``: recompute ``c.next[source]``.
"""
