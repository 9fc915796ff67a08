"""Where are the bodies, and what reaches whom? The table that robots stand on; it knows no chips.

What comes in: two motor drives per robot. What goes out: positions, who is near whom, the amplitude
of infrared light over a distance, the illuminance at a place.

- ``state``: bodies (robots first, then discs) and what they may bump into, as arrays
- ``motion``: from drives to a new position, about the leg that stands still
- ``collisions``: bodies that touch push each other; walls do not give way
- ``neighbours``: who is within a range, by a grid of cells
- ``optics``: infrared amplitude as a function of distance
- ``light``: lamps, gradients and images as visible light on the table
- ``shapes``: walls, boxes, polygons and images made into what ``collisions`` works with
- ``build``: a world from plain numbers
- ``step``: one step of the world, the order in which the above happen

Millimetres, radians, seconds; the origin is the middle of the arena, x to the right, y up, headings
count counter-clockwise from x. The same drives give the same bits on every machine.
"""
