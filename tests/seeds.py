"""Seeds of random programs: fixed, so that a failure can be repeated, and others on demand.

Each run prints them in its header.
"""

import os

SIMAVR_FIRST = int(os.environ.get("AVRSWARM_SEED", "328"))
SIMAVR_SEEDS = range(SIMAVR_FIRST, SIMAVR_FIRST + 16)

REFERENCE_FIRST = int(os.environ.get("AVRSWARM_REFERENCE_FIRST_SEED", "0"))
REFERENCE_SEEDS = range(
    REFERENCE_FIRST, REFERENCE_FIRST + int(os.environ.get("AVRSWARM_REFERENCE_SEEDS", "60"))
)


def header() -> str:
    """What the header of a test run says of them."""
    simavr, reference = SIMAVR_SEEDS, REFERENCE_SEEDS
    return (
        f"random programs: seeds {simavr[0]} to {simavr[-1]} against simavr (AVRSWARM_SEED), "
        f"{reference[0]} to {reference[-1]} against the reference (AVRSWARM_REFERENCE_FIRST_SEED)"
    )
