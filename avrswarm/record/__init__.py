"""What is kept of a run: waveforms and instruction traces.

Recorders are told what happened and write it to a text stream; they never look into a chip by
themselves, so the same recorder serves one chip on the bench and a robot in a swarm.
"""
