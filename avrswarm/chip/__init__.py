"""How an ATmega328P behaves, to the cycle.

What comes in: a ``Program``. What goes out: pin levels, bytes on the serial line, and the state of
the machine at any cycle. Files, in reading order:

* ``state``: what a chip remembers; ``registers`` and ``vectors``: the datasheet's names;
* ``core``: the loop over instructions; ``interrupts``, ``sleep``, ``reset``, ``faults``;
* ``bus``: register addresses to peripherals; ``schedule``: events to peripherals;
* ``peripherals/``: one file per datasheet chapter;
* ``kernels``: what Python may call; ``chip``: the bench around one chip.

**Time.** Cycle *k* is the interval after clock edge *k*. An instruction that starts in cycle *k*
and takes *L* cycles is followed by one that starts at *n = k + L*. IN and bit tests read the state
of cycle *k*, loads that of *k + 1*; every CPU write lands at edge *n*. What hardware does at an
edge is decided by the state before it; a write landing at the same edge acts afterwards. At the
boundary before *n*, interrupt requests are sampled as they were in cycle *n - 1*, so that a write
of the instruction just finished is not yet seen, and SEI, RETI and OUT SREG let one instruction
pass. Entry takes three dead cycles.

**Choices** where the datasheet is silent are constants with the word *assumption* beside them.
"""
