"""Analog comparator: every choice of inputs, interrupt modes, capture (timing reference 5).

A level changes ACO 2 cycles after its inputs crossed, whichever they are, and the capture unit
sees it like its pin, 3 cycles after.
"""

import pytest

from tests.chip.section11 import boot, first_cycle, nops, put, run_to, sled
from tests.reference.assemble import ACSR, ADCSRA, ADCSRB, ADMUX, TCCR1B

pytestmark = pytest.mark.jit_off

ACD, ACBG, ACO, ACI, ACIE, ACIC = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04
TOGGLE, FALLING, RISING = 0, 2, 3
ACME, ADEN = 0x40, 0x80
SYNCHRONISER, CAPTURE, CANCELER = 2, 3, 4


def started(*parts):
    """A chip that has run these instructions and stands in a sled of NOPs."""
    words = [word for part in parts for word in part]
    chip = boot(words, sled())
    run_to(chip, 2 * len(words))
    return chip


def output(chip):
    return chip.read("ACSR") & ACO


@pytest.mark.parametrize("channel", range(8))
def test_multiplexer_gives_the_negative_input(channel):
    chip = started(put(ADCSRB, ACME), put(ADMUX, channel))
    chip.set_adc("AIN0", 1.5)
    for other in range(8):
        chip.set_adc(f"ADC{other}", 0.0 if other == channel else 3.0)
    assert first_cycle(chip, lambda: output(chip)) == chip.cycle
    chip.set_adc(f"ADC{channel}", 2.0, at=500)
    assert first_cycle(chip, lambda: not output(chip), near=500) == 500 + SYNCHRONISER
    chip.set_adc(f"ADC{channel}", 1.5, at=600)  # equal is not higher
    chip.set_adc(f"ADC{channel}", 1.499, at=700)
    assert first_cycle(chip, lambda: output(chip), near=700) == 700 + SYNCHRONISER


def test_adc_takes_the_multiplexer():
    """With ADEN the negative input is AIN1, whatever ACME says: the bench then decides."""
    chip = started(put(ADCSRB, ACME), put(ADCSRA, ADEN))
    chip.set_adc("AIN0", 1.0)
    chip.run(cycles=50)
    assert not output(chip)
    chip.set_comparator(1, at=200)
    assert first_cycle(chip, lambda: output(chip), near=200) == 200 + SYNCHRONISER


def test_band_gap_against_ain1():
    chip = started(put(ACSR, ACBG))
    chip.set_adc("AIN1", 1.2)
    chip.run(cycles=10)
    assert not output(chip)
    chip.set_adc("AIN1", 1.0, at=200)
    assert first_cycle(chip, lambda: output(chip), near=200) == 200 + SYNCHRONISER
    chip.set_comparator(0, at=300)  # AIN0 is not connected now
    chip.run(cycles=200)
    assert output(chip)


def test_band_gap_against_the_multiplexer():
    chip = started(put(ADCSRB, ACME), put(ADMUX, 6), put(ACSR, ACBG))
    chip.set_adc("ADC6", 1.11)
    chip.run(cycles=10)
    assert not output(chip)
    chip.set_adc("ADC6", 1.09)
    chip.run(cycles=10)
    assert output(chip)


def test_pulse_of_one_cycle_passes_the_synchroniser():
    chip = started(put(ACSR, ACBG | RISING))
    chip.set_adc("AIN1", 2.0)
    chip.run(cycles=20)
    chip.write("ACSR", ACBG | ACI | RISING)
    chip.set_adc("AIN1", 0.5, at=200)
    chip.set_adc("AIN1", 2.0, at=201)
    assert first_cycle(chip, lambda: output(chip), near=200) == 202
    assert first_cycle(chip, lambda: not output(chip)) == 203
    assert chip.read("ACSR") == ACBG | ACI | RISING


@pytest.mark.parametrize(
    ("mode", "events"), [(TOGGLE, [302, 402]), (FALLING, [402]), (RISING, [302])]
)
def test_interrupt_modes(mode, events):
    chip = started(put(ACSR, mode))
    chip.set_comparator(1, at=300)
    chip.set_comparator(0, at=400)
    found = []
    while chip.cycle < 500:
        chip.step()
        if chip.read("ACSR") & ACI:
            found.append(chip.cycle)
            chip.write("ACSR", ACI | mode)
    assert found == events


def test_switched_off_reads_0():
    chip = started(nops(1))
    chip.set_comparator(1)
    chip.run(cycles=10)
    assert output(chip)
    chip.write("ACSR", ACD)
    assert not output(chip)
    chip.write("ACSR", 0)
    chip.run(cycles=10)
    assert output(chip)


@pytest.mark.parametrize("canceler", [0, 0x80])
@pytest.mark.parametrize("edge", [0, 0x40])
def test_capture(edge, canceler):
    """ICR1 takes the count before the edge at which the capture unit acts."""
    chip = started(put(ACSR, ACIC), put(TCCR1B, 1 | edge | canceler))
    difference = chip.read("TCNT1") - chip.cycle
    chip.set_comparator(1, at=300)
    chip.set_comparator(0, at=400)
    chip.run(cycles=500)
    level_change = 300 if edge else 400
    acted = level_change + CAPTURE + (CANCELER if canceler else 0)
    assert chip.read("ICR1") == acted - 1 + difference
    assert chip.read("TIFR1") & 0x20


def test_noise_canceler_wants_four_equal_samples():
    chip = started(put(ACSR, ACIC), put(TCCR1B, 0xC1))
    chip.set_comparator(1, at=300)
    chip.set_comparator(0, at=303)
    chip.run(cycles=400)
    assert not chip.read("TIFR1") & 0x20
    chip.set_comparator(1, at=800)
    chip.set_comparator(0, at=804)
    chip.run(cycles=500)
    assert chip.read("TIFR1") & 0x20


def test_capture_has_one_source():
    chip = started(put(ACSR, ACIC), put(TCCR1B, 0x41))
    chip.set_pin("PB0", 0)
    chip.set_pin("PB0", 1, at=300)
    chip.run(cycles=400)
    assert not chip.read("TIFR1") & 0x20
    chip.write("ACSR", 0)
    chip.set_comparator(1, at=1000)
    chip.run(cycles=1000)
    assert not chip.read("TIFR1") & 0x20
    chip.set_pin("PB0", 0, at=2000)
    chip.set_pin("PB0", 1, at=2100)
    chip.run(cycles=1000)
    assert chip.read("TIFR1") & 0x20
