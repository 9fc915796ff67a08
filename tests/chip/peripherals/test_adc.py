"""ADC: every trigger source, free running, and what stands still (DS 24; timing reference 4)."""

import pytest

from avrswarm.chip.peripherals import adc
from avrswarm.chip.peripherals.analog_comparator import ACO_SYNC_CYCLES
from avrswarm.chip.peripherals.gpio import CAPTURE_DELAY, INT_DELAY
from tests.chip.peripherals.bench import first_seen, go_to, idle_chip

pytestmark = pytest.mark.jit_off

N = 8  # ADPS = 3
ADEN, ADSC, ADATE, ADIF = 0x80, 0x40, 0x20, 0x10
FREE_RUNNING, ACI, INTF0, OCF0A, TOV0, OCF1B, TOV1, ICF1 = range(8)
FLAGS = {
    ACI: ("ACSR", 0x10), INTF0: ("EIFR", 1), OCF0A: ("TIFR0", 2), TOV0: ("TIFR0", 1),
    OCF1B: ("TIFR1", 4), TOV1: ("TIFR1", 1), ICF1: ("TIFR1", 0x20),
}  # fmt: skip


def warm_chip():
    """A chip whose first, long conversion is over, at a cycle below 300."""
    chip = idle_chip()
    chip.write("ADCSRA", ADEN | ADSC | 3)
    go_to(chip, 250)
    assert chip.read("ADCSRA") == ADEN | ADIF | 3
    return chip


def provoke(chip, source):
    """Set everything up for the selected flag to rise; return the cycle in which it does."""
    now = chip.cycle
    match source:
        case 1:
            chip.write("ACSR", 0x03)
            chip.set_comparator(1, at=now + 100)
            return now + 100 + ACO_SYNC_CYCLES
        case 2:
            chip.write("EICRA", 3)
            chip.set_pin("PD2", 1, at=now + 100)
            return now + 100 + INT_DELAY
        case 3 | 4:
            chip.write("OCR0A", 99)
            chip.write("TCNT0", 0 if source == OCF0A else 156)
            chip.write("TCCR0B", 1)
            return now + 100
        case 5 | 6:
            chip.write("OCR1B", 99)
            chip.write("TCNT1", 0 if source == OCF1B else 0x10000 - 100)
            chip.write("TCCR1B", 1)
            return now + 100
        case _:
            chip.write("TCCR1B", 0x40)
            chip.set_pin("PB0", 1, at=now + 100)
            return now + 100 + CAPTURE_DELAY


@pytest.mark.parametrize("source", FLAGS)
def test_trigger(source):
    """13.5 ADC clocks and 3 cycles from the flag to the end, with the sample after 2 clocks."""
    chip = warm_chip()
    chip.set_adc("ADC0", 0.5)
    chip.write("TIFR0", 7)
    chip.write("TIFR1", 0x27)
    chip.write("ADCSRB", source)
    chip.write("ADCSRA", ADEN | ADATE | ADIF | 3)
    chip.step()
    flag = provoke(chip, source)
    name, bit = FLAGS[source]
    first_seen(chip, flag, lambda: chip.read(name) & bit)
    assert chip.read("ADCSRA") == ADEN | ADSC | ADATE | 3
    start = flag + adc.TRIGGER_SYNC_CYCLES
    chip.set_adc("ADC0", 1.5, at=start + 2 * N)  # this very edge still takes the old voltage
    chip.set_adc("ADC0", 2.5, at=start + 2 * N + 1)
    done = start + 27 * N // 2
    first_seen(chip, done, lambda: chip.read("ADCSRA") & ADIF)
    assert chip.read("ADCSRA") == ADEN | ADATE | ADIF | 3
    assert chip.read("ADC") == 0.5 * 1024 // 3
    chip.write("ADCSRA", ADEN | ADATE | ADIF | 3)
    chip.run(cycles=300)  # the flag stays set: no second edge
    assert chip.read("ADCSRA") == ADEN | ADATE | 3


@pytest.mark.parametrize("source", FLAGS)
def test_no_trigger_by_another_source_or_without_adate(source):
    for other, control in ((source % 7 + 1, ADEN | ADATE | 3), (source, ADEN | 3)):
        chip = warm_chip()
        chip.write("TCNT0", 100)  # away from the flags of TCNT = OCR = 0
        chip.write("TCNT1", 100)
        chip.write("OCR0A", 50)
        chip.write("OCR1B", 50)
        chip.write("ADCSRB", other)
        chip.write("ADCSRA", control | ADIF)
        chip.step()
        if {source, other} & {OCF0A, OCF1B} and source + other in (7, 11):
            continue  # OCF0A and TOV0, OCF1B and TOV1: one counter sets both in the end
        flag = provoke(chip, source)
        go_to(chip, flag + 40)
        assert chip.read("ADCSRA") == control


@pytest.mark.parametrize("select", range(8))
def test_free_running(select):
    """13 ADC clocks each after the first of 25; ADSC stays 1, and each sample is of its time."""
    clock = max(2, 1 << select)
    chip = idle_chip()
    chip.write("ADCSRA", ADEN | ADSC | ADATE | select)
    done = 25 * clock
    for number in range(4):
        volts = 0.5 * number
        chip.set_adc("ADC0", volts)
        first_seen(chip, done, lambda: chip.read("ADCSRA") & ADIF)
        assert chip.read("ADCSRA") == ADEN | ADSC | ADATE | ADIF | select
        if number:
            assert chip.read("ADC") == volts * 1024 // 3
        chip.write("ADCSRA", ADEN | ADATE | ADIF | select)
        done += 13 * clock


def test_free_running_ends_when_adate_is_cleared():
    chip = idle_chip()
    chip.write("ADCSRA", ADEN | ADSC | ADATE | 3)
    go_to(chip, 300)
    chip.write("ADCSRA", ADEN | ADIF | 3)
    first_seen(chip, (25 + 13) * N, lambda: not chip.read("ADCSRA") & ADSC)
    chip.run(cycles=500)
    assert chip.read("ADCSRA") == ADEN | ADIF | 3


def test_selecting_a_set_flag_is_an_edge_but_free_running_is_not():
    chip = warm_chip()
    chip.write("OCR0A", 5)
    chip.write("TCCR0B", 1)
    go_to(chip, 280)
    chip.write("ADCSRA", ADEN | ADATE | ADIF | 3)
    chip.write("ADCSRB", TOV0)
    assert chip.read("ADCSRA") & ADSC == 0
    chip.write("ADCSRB", OCF0A)
    assert chip.read("ADCSRA") & ADSC
    go_to(chip, 500)
    chip.write("ADCSRB", FREE_RUNNING)
    chip.run(cycles=10)
    assert chip.read("ADCSRA") & ADSC == 0


def test_temperature_sensor_at_25_degrees():
    """DS 24.8: 314 mV, about 292 with the 1.1 V reference."""
    chip = idle_chip()
    chip.write("ADMUX", 0xC8)
    chip.write("ADCSRA", ADEN | ADSC | 3)
    chip.run(cycles=300)
    assert chip.read("ADC") == 0.314 * 1024 // 1.1 == 292
