"""How do we run a program fast without changing a bit? By translating it to native code.

``flow.py`` finds out which words of a flash image are instructions and where control may enter;
``emit.py`` writes LLVM IR for what lies between two entries; ``translate.py`` compiles that once per
flash image, in the background, and keeps it on disk. ``avrswarm.chip.native`` is where the core
goes in and out.
"""
