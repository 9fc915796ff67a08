"""What the bits of a program mean; no machine state here.

``table`` is the only place that knows a bit pattern, a length or a cycle count. ``decode`` turns a
flash image into one packed integer per word, once per distinct image, shared by all robots that run
it. ``disassemble`` prints the same table's view of a program. Read next: ``avrswarm.chip.core``.
"""
