"""What is kept of a run.

One chip on the bench, told by `observe`:

* ``vcd``: waveforms; ``trace``: executed instructions.

A swarm:

* ``run_folder``: a run on disk, written as it goes, and ``read_run``;
* ``recorded_run``: a whole run, whatever ends it;
* ``tables``: tables that can be read at any time; ``fates``: what became of every message;
  ``watch``: variables of the firmware;
* ``pictures``, ``film`` and ``drawing``: what is seen of it; ``progress``: a bar while it goes on.
"""
