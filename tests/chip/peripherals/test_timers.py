"""OC pins in every mode, against the rules of DS 15.7, 16.9 and 18.7 written out tick by tick."""

import pytest

from tests.chip.peripherals.bench import go_to, idle_chip

pytestmark = pytest.mark.jit_off

TOP = 5  # OCRnA where it is TOP
MATCH = 2  # OCRnB
PINS = {0: ("PD6", "PD5"), 1: ("PB1", "PB2"), 2: ("PB3", "PD3")}
CTC, FAST, PHASE = "ctc", "fast", "phase"
MODES = {  # timer, waveform: bits of TCCRnA, of TCCRnB; TOP is OCRnA
    (0, CTC): (2, 0), (0, FAST): (3, 8), (0, PHASE): (1, 8),
    (1, CTC): (0, 8), (1, FAST): (3, 0x18), (1, PHASE): (3, 0x10),
    (2, CTC): (2, 0), (2, FAST): (3, 8), (2, PHASE): (1, 8),
}  # fmt: skip


def act(level, action):
    """Toggle, clear or set: COM 1, 2, 3 of DS table 15-2."""
    return (level, 1 - level, 0, 1)[action]


def expected(waveform, com, compare, ticks):
    """Levels of an OC pin after each tick from a counter at 0, by the tables of DS 15.9.1."""
    count, down, level, levels = 0, False, 0, []
    for _ in range(ticks):
        if waveform == PHASE:
            down = count == TOP or (down and count != 0)
            if count == compare:
                level = act(level, com if com == 1 or not down else 5 - com)
            count += -1 if down else 1
        else:
            if count == compare:
                level = act(level, com)
            if waveform == FAST and count == TOP and com > 1:
                level = act(level, 5 - com)
            count = 0 if count == TOP else count + 1
        levels.append(level)
    return levels


@pytest.mark.parametrize(("timer", "waveform"), MODES)
@pytest.mark.parametrize("com", [1, 2, 3])
@pytest.mark.parametrize("channel", ["A", "B"])
def test_output_pin(timer, waveform, com, channel):
    chip = idle_chip()
    chip.write("DDRB", 0xFF)
    chip.write("DDRD", 0xFF)
    chip.write(f"OCR{timer}A", TOP)
    chip.write(f"OCR{timer}B", MATCH)
    mode_a, mode_b = MODES[timer, waveform]
    shift = 6 if channel == "A" else 4
    chip.write(f"TCCR{timer}A", mode_a | com << shift)
    pin = PINS[timer]["AB".index(channel)]
    chip.write("PORTB", 0xFF)  # shows where a pin is not connected
    chip.write(f"TCCR{timer}B", mode_b | 1)
    chip.run(cycles=2000)  # PWM modes have loaded their buffers, and the pin repeats
    while chip.read(f"TCNT{timer}"):
        chip.step()
    start = chip.cycle
    seen = []
    for tick in range(1, 31):
        go_to(chip, start + tick)
        seen.append(chip.pin(pin))
    if waveform != CTC and com == 1 and channel == "B":  # reserved: the port's own level
        assert seen == [int(pin[1] == "B")] * 30
        return
    levels = expected(waveform, com, TOP if channel == "A" else MATCH, 60)[30:]  # 30 = 0 mod period
    if com == 1 and seen[0] != levels[0]:  # where toggling began is not known
        levels = [1 - level for level in levels]
    assert seen == levels


@pytest.mark.parametrize("timer", [0, 1, 2])
def test_a_connected_pin_drives_only_as_an_output(timer):
    chip = idle_chip()
    chip.write(f"OCR{timer}A", 0)
    chip.write(f"TCCR{timer}A", 0xC0)  # set on match
    chip.write(f"TCCR{timer}B", 1)
    chip.run(cycles=10)
    pin = PINS[timer][0]
    assert chip.pin(pin) == 0
    chip.write("DDRB", 0xFF)
    chip.write("DDRD", 0xFF)
    chip.run(cycles=2)
    assert chip.pin(pin) == 1


@pytest.mark.parametrize("select", [6, 7])
@pytest.mark.parametrize(("timer", "pin"), [(0, "PD4"), (1, "PD5")])
def test_external_clock(timer, pin, select):
    """DS table 15-9: 6 counts falling, 7 rising edges of Tn."""
    chip = idle_chip()
    chip.write(f"TCCR{timer}B", select)
    for number in range(10):
        chip.set_pin(pin, 1, at=100 + 20 * number)
        chip.set_pin(pin, 0, at=110 + 20 * number)
    go_to(chip, 105)
    assert chip.read(f"TCNT{timer}") == (1 if select == 7 else 0)
    go_to(chip, 400)
    assert chip.read(f"TCNT{timer}") == 10
