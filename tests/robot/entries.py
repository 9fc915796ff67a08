"""Kernels of robots as functions that tests can call, for all robots at once."""

from avrswarm.jit import entry
from avrswarm.robot.battery import drain_batteries
from avrswarm.robot.motors import read_drives
from avrswarm.robot.sensors import put_sensors


@entry
def update_drives(boards, motors, dt_s, left, right):
    read_drives(boards, motors, dt_s, left, right, 0, len(left))


@entry
def drain(boards, battery, duty, pulses, dt_s):
    drain_batteries(boards, battery, duty, pulses, dt_s, 0, len(pulses))


@entry
def apply_sensors(chips, boards, shown, lux, volts, celsius, microvolts_per_lux):
    put_sensors(chips, boards, shown, lux, volts, celsius, microvolts_per_lux, 0, len(chips))
