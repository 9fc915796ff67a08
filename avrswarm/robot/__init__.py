"""What hangs on which pin? The Kilobot around its chip.

- ``messages``: infrared messages as bytes and as light pulses
- ``controller_packets``: what a PC sends to the overhead controller
- ``eeprom_map``: calibration values of one robot
"""
