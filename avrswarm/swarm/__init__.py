"""How N chips and one world advance together.

* ``window``: one short window of time for all chips, exact and parallel; where light passes between
  robots;
* ``overhead``: the overhead controller's commands as real infrared frames;
* ``simulation``: ``Simulation``, which builds all from a scene and advances the world step by step.
"""
