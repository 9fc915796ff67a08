"""Looking at a chip from outside changes nothing in it, whatever sleeps or is under way."""

import pytest

from tests.chip.section11 import put, put_io, run_to, vector
from tests.chip.test_sleep_modes import ADC_NOISE, ALL, DEEP, sleeper
from tests.reference.assemble import (
    ADCSRA,
    DDRB,
    PCICR,
    PCMSK1,
    TCCR0B,
    TCCR1B,
    TCCR2A,
    TCCR2B,
    TCNT0,
    UCSR0B,
    UDR0,
)

LOOKS = {
    "data": lambda chip: chip.data,
    "pin": lambda chip: chip.pin("PB3"),
    "timers": lambda chip: [chip.read(name) for name in ("TCNT0", "TIFR0", "TCNT2", "TIFR1")],
    "high bytes": lambda chip: chip.read("TCNT1L"),
    "pins": lambda chip: [chip.read(name) for name in ("PINB", "PIND", "EIFR", "PCIFR")],
    "converter": lambda chip: [chip.read(name) for name in ("ADCSRA", "ADCH")],
    "others": lambda chip: [chip.read(name) for name in ("UCSR0A", "SPCR", "TWCR", "EECR")],
}


@pytest.mark.parametrize("mode", sorted(ALL))
@pytest.mark.parametrize("look", LOOKS)
def test_looking_changes_nothing(look, mode):
    """Timers that drive pins, a conversion and a byte being sent are under way at the SLEEP."""
    busy = [*put_io(DDRB, 0xFF), *put(TCCR2A, 0x42), *put(TCCR2B, 1), *put_io(TCCR0B, 1)]
    busy += [*put(TCCR1B, 1), *put(UCSR0B, 0x08), *put(UDR0, 0x55), *put(ADCSRA, 0xC7)]
    busy += [*put(PCMSK1, 4), *put(PCICR, 2)]
    digests = []
    for looks in (False, True):
        chip, place = sleeper(mode, busy)
        chip.set_pin("PC2", 0, at=90_000)
        run_to(chip, place)
        for stretch in (10, 1, 5000, 60_000, 30_000):
            chip.run(cycles=stretch)
            before = chip.digest()
            for _ in range(3 if looks else 0):
                LOOKS[look](chip)
                if look != "high bytes":  # that one has an effect, as for the CPU
                    assert chip.digest() == before
        if look != "high bytes":
            digests.append(chip.digest())
        assert chip.pc == vector(4)
        digests.append([chip.read(name) for name in ("TCNT0", "TCNT1", "TCNT2", "ADCSRA")])
    assert digests[: len(digests) // 2] == digests[len(digests) // 2 :]


@pytest.mark.parametrize("mode", sorted(DEEP | {ADC_NOISE}))
def test_what_stands_still_looks_so(mode):
    chip, place = sleeper(mode, [*put_io(TCCR0B, 1), *put(TCCR1B, 1)])
    run_to(chip, place)
    chip.step()
    still = [chip.read(name) for name in ("TCNT0", "TIFR0", "TCNT1")]
    chip.run(cycles=1234)
    assert [chip.read(name) for name in ("TCNT0", "TIFR0", "TCNT1")] == still
    assert chip.data[TCNT0] == still[0]
