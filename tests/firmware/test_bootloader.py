"""Reprogramming through infrared messages (hardware reference, section 7)."""

import numpy as np
import pytest

from avrswarm.program import Program
from avrswarm.robot import controller_packets as cp
from avrswarm.robot.messages import Message, MessageType

from .bench import IDLE_PASS, MS, RUNNING, Robot, program

BOOTLOADER = 0x7000
PITCH = 35_540  # cycles between the messages of a page, as the public controller sends them
BLUE_FLASH, DIM_BLUE, GREEN = (0, 0, 3), (0, 0, 1), (0, 3, 0)


def with_bootloader(name):
    """Application and bootloader in one flash, symbols of the application."""
    words = program(name).flash.copy()
    boot = program("bootloader").flash
    words[BOOTLOADER // 2 :] = boot[BOOTLOADER // 2 :]
    return Program.from_words([int(word) for word in words])


class Bootable(Robot):
    def __init__(self, name, **options):
        super().__init__(with_bootloader(name), **options)
        self.application = name

    def in_bootloader(self):
        return self.chip.pc >= BOOTLOADER

    def boot(self):
        end = self.hear(Message.make(MessageType.BOOT))
        assert self.chip.run_until(pc=BOOTLOADER, max_cycles=end + 5000) == "breakpoint"
        self.entered = self.cycle - end
        return self.run(5000)

    def upload_page(self, number, content, *, leave_out=()):
        for i, message in enumerate(cp.page_messages(number, content)):
            if i not in leave_out:
                end = self.hear(message, after=PITCH - 34_968)
                self.run(end - self.cycle)
        self.run(20 * MS)

    def say(self, type, data=b"", then=1000):
        end = self.hear(Message.make(type, data))
        self.run(end - self.cycle + then)


def flash_bytes(robot):
    return np.asarray(robot.chip.flash, dtype="<u2").tobytes()


def pages(image):
    total = cp.page_total(image)
    padded = image.ljust(total * 128, b"\0")
    return [padded[i * 128 : i * 128 + 128] for i in range(total)]


def test_it_fits_below_the_end_of_flash_and_starts_at_0x7000():
    used = np.flatnonzero(program("bootloader").programmed) * 2
    assert used[0] == BOOTLOADER
    assert used[-1] < 0x7800


def test_boot_message_jumps_straight_to_it():
    robot = Bootable("blink").boot()
    assert robot.entered < 600  # not 2048 cycles through erased flash
    assert robot.in_bootloader()


def test_the_way_of_the_public_library_leads_there_too():
    """It calls word 0x7000, which is byte 0x6000, and runs through erased flash (Q1)."""
    robot = Bootable("blink").run(5000)
    robot.chip.write("SREG", 0)
    robot.chip.poke(31, 0x70)
    robot.chip.set_pc(0x6000)
    robot.run(2048 + 2000)
    assert robot.in_bootloader()
    robot.say(MessageType.BOOTPGM_SIZE, b"\5")
    assert robot.in_bootloader()
    assert robot.chip.read("MCUCR") & 2  # its own interrupt table


def test_a_chip_without_an_application_runs_into_it():
    robot = Robot(Program.from_bytes(flash_tail(), start=BOOTLOADER))
    robot.run(20_000)
    assert robot.chip.pc >= BOOTLOADER
    assert robot.chip.pin("PD2") == 1


def flash_tail():
    return np.asarray(program("bootloader").flash[BOOTLOADER // 2 :], dtype="<u2").tobytes()


def test_idle_sign_is_a_blue_flash_every_1005_ms():
    robot = Bootable("blink").boot()
    rises, lit = [], robot.led == BLUE_FLASH
    while len(rises) < 2:
        robot.run(1000)
        if (robot.led == BLUE_FLASH) and not lit:
            rises.append(robot.cycle)
        lit = robot.led == BLUE_FLASH
    assert (rises[1] - rises[0]) / MS == pytest.approx(1005, abs=1)


def test_upload_and_run():
    robot = Bootable("blink").boot()
    image = cp.application_image(program("move"))
    robot.say(MessageType.BOOTPGM_SIZE, bytes([cp.page_total(image)]))
    old = flash_bytes(robot)
    *first, last = enumerate(pages(image))
    for number, content in first:
        robot.upload_page(number, content)
        assert robot.in_bootloader()
        assert robot.led == GREEN
    robot.upload_page(*last)
    assert not robot.in_bootloader()
    new = flash_bytes(robot)
    assert new[: len(image)] == image
    assert new[cp.page_total(image) * 128 :] == old[cp.page_total(image) * 128 :]
    robot.program = program("move")
    robot.obey(MessageType.RUN).run(30 * MS)
    assert robot.state == RUNNING
    assert robot.motors == (65, 62)
    assert robot.chip.read("MCUCR") & 2 == 0


def test_a_page_with_a_hole_is_not_written_and_can_come_again():
    robot = Bootable("blink").boot()
    old = flash_bytes(robot)
    content = bytes(range(128))
    robot.upload_page(30, content, leave_out={7})
    assert flash_bytes(robot) == old
    robot.upload_page(31, b"\xaa" * 128, leave_out={21})
    robot.upload_page(30, content)
    assert flash_bytes(robot)[30 * 128 : 31 * 128] == content
    assert flash_bytes(robot)[31 * 128 : 32 * 128] == old[31 * 128 : 32 * 128]


def test_pieces_of_two_passes_make_a_page_only_without_another_page_between():
    robot = Bootable("blink").boot()
    content = bytes(range(128))
    robot.upload_page(30, content, leave_out={7})
    robot.upload_page(30, content, leave_out=set(range(22)) - {7})
    assert flash_bytes(robot)[30 * 128 : 31 * 128] == content


def test_it_never_writes_over_itself():
    robot = Bootable("blink").boot()
    old = flash_bytes(robot)
    robot.upload_page(224, bytes(128))
    robot.upload_page(255, bytes(128))
    assert flash_bytes(robot) == old
    assert robot.in_bootloader()


def test_dim_blue_while_a_page_arrives():
    robot = Bootable("blink").boot()
    robot.say(*page_message(), then=600)
    assert robot.led == DIM_BLUE
    assert robot.run(1100 * MS).led == DIM_BLUE


def page_message():
    message = cp.page_messages(3, bytes(128))[0]
    return message.type, message.data


@pytest.mark.parametrize("command", [MessageType.RUN, MessageType.WAKEUP, MessageType.RESET])
def test_another_command_starts_the_application_if_nothing_was_written(command):
    robot = Bootable("blink").boot()
    robot.say(command, then=IDLE_PASS)
    assert not robot.in_bootloader()


def test_talk_between_robots_does_not_start_the_application():
    robot = Bootable("blink").boot()
    robot.say(MessageType.NORMAL)
    assert robot.in_bootloader()


def test_after_a_page_only_the_rest_of_the_program_will_do():
    robot = Bootable("blink").boot()
    robot.upload_page(0, bytes(128))
    robot.say(MessageType.RUN)
    assert robot.in_bootloader()
    robot.say(MessageType.BOOT)  # forget it
    robot.say(MessageType.BOOTPGM_SIZE, b"\1")
    assert robot.in_bootloader()
    robot.upload_page(0, cp.application_image(program("blink"))[:128])
    assert not robot.in_bootloader()


def test_repeated_messages_of_a_burst_are_all_heard():
    """The controller leaves 570 cycles between the last pulse and the next first one."""
    robot = Bootable("blink").boot()
    start = robot.cycle
    robot.upload_page(5, bytes(range(128)))
    assert flash_bytes(robot)[5 * 128 : 6 * 128] == bytes(range(128))
    assert robot.cycle - start == pytest.approx(22 * PITCH + 20 * MS, abs=2000)


def test_from_the_serial_line_of_the_controller_into_a_running_program():
    """PC, controller and robot: packets, frames, pages; the robot's clock is a per cent fast."""
    image = cp.application_image(program("blink"))
    ohc = Robot("ohc").run(2010 * MS)
    ohc.chip.watch_pins("PD3")
    for packet in cp.upload(image):
        ohc.chip.uart_send(packet)
        ohc.run(160 * MS)
    ohc.chip.uart_send(cp.stop())
    ohc.run(50 * MS)
    robot = Bootable("move").boot()
    start = robot.cycle + 10_000
    pulses = [start + round(1.01 * (cycle - 2010 * MS)) for cycle in ohc.edges("PD3")]
    for i in range(0, len(pulses), 500):
        robot.light(pulses[i : i + 500])
        robot.run(pulses[min(i + 500, len(pulses)) - 1] - robot.cycle)
    robot.run(50 * MS)
    assert not robot.in_bootloader()
    assert flash_bytes(robot)[: len(image)] == image
    robot.program = program("blink")
    robot.obey(MessageType.RUN)
    assert robot.state == RUNNING
