"""How long does this really take on the robot? Answers for the user's own binary, to the cycle.

- ``names``: which function an address belongs to, for ELF files, symbol files and bare ``.hex``
- ``observe``: a chip alone, or robots of a scene, watched instruction by instruction
- ``calls``: every call, taken in as it comes
- ``functions``: calls, cycles inclusive and exclusive, call graph, hot lines
- ``interrupts``: latency, duration, load, and who keeps interrupts off for how long
- ``between``: cycles from one place or pin edge to another
- ``delays``: what delays and busy waits really take, alone and among neighbours
- ``clocks``: message times, drift, and errors of a hop-by-hop time synchronisation
- ``waveforms``: pins and what they mean, as a value change dump
- ``export``: profiles for speedscope and callgrind viewers
- ``pictures``, ``report``: figures as pictures, tables, JSON and Parquet
"""
