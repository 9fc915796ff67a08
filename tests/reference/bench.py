"""The reference chip as a bench for the rows (see rows.py)."""

from .machine import RefChip


class RefView:
    def __init__(self, words, stimuli=(), eeprom=()):
        self.chip = RefChip(words, stimuli, eeprom)

    @property
    def cycle(self):
        return self.chip.cycle

    def run(self, cycles):
        end = self.chip.cycle + cycles
        while self.chip.cycle < end:
            self.chip.step()

    def until(self, word, limit=300_000):
        """Run until the instruction at `word` is about to start; at least one step if it is now."""
        end = self.chip.cycle + limit
        while self.chip.cycle < end:
            if self.chip.pc == word and not self.chip.about_to_interrupt():
                return self.chip.cycle
            self.chip.step()
        raise AssertionError(f"word 0x{word:X} was not reached")

    def data(self, address):
        return self.chip.peek(address)

    def pin(self, name):
        return self.chip.pin(name)

    def eeprom(self, address):
        return self.chip.eeprom.memory[address]
