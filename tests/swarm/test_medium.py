"""Optical models to choose from, transmit power, loss and noise, as chips hear them."""

import numpy as np
import pytest

from avrswarm.robot.infrared import led_power
from avrswarm.world.optics import LIMIT_COUNTS

from .scenes import group, make_scene, messages, run_and_listen, simulate


def heard_at(distances, seconds=2.0, seed=1, eeprom=None, **optics):
    """Messages sent by a speaker, and for listeners at these distances (mm) the low gains heard.

    Each listener has a speaker of its own, far from the others.
    """
    places = [(0, 600 * k) for k in range(len(distances))]
    scene = make_scene(
        group("speaker", *places, eeprom=eeprom or {}),
        group("listener", *((mm, 600 * k) for k, mm in enumerate(distances))),
        arena={"shape": "open"},
        optics={"preset": "ideal", **optics},
    )
    sent, heard = run_and_listen(simulate(scene, seed=seed), seconds)
    good = messages(heard)
    count = len(distances)
    gains = [good["low_gain"][good["robot"] == count + k] for k in range(count)]
    return [int((sent["robot"] == k).sum()) for k in range(count)], gains


def test_a_disc_ends_sharply_and_reads_the_same_everywhere():
    sent, gains = heard_at([34, 60, 79.9, 80.1], model="disc", range_mm=80, disc_counts=120)
    assert [len(g) for g in gains] == [*sent[:3], 0]
    assert all((g == 120).all() for g in gains[:3])


def test_inverse_square_falls_with_the_distance_squared():
    sent, gains = heard_at([35, 50, 69.5, 70.5], model="inverse_square", range_mm=70)
    assert [len(g) for g in gains] == [*sent[:3], 0]
    expected = [int(LIMIT_COUNTS * (70 / mm) ** 2) for mm in (35, 50)]
    assert [g[0] for g in gains[:2]] == pytest.approx(expected, abs=1)


def test_both_gains_of_the_inverse_square_model_multiply():
    """Four times the gain carries twice as far."""
    sent, gains = heard_at([138, 142], model="inverse_square", range_mm=70, path_gain=4)
    assert [len(g) for g in gains] == [sent[0], 0]


def test_a_table_is_followed_and_ends_with_its_last_row(tmp_path):
    table = tmp_path / "curve.csv"
    table.write_text("distance_mm,low_gain_counts\n33,200\n60,100\n90,20\n")
    sent, gains = heard_at([40, 60, 75, 89.5, 90.5], model="table", table=str(table))
    assert [len(g) for g in gains] == [*sent[:4], 0]
    straight = np.interp([40, 60, 75], [33, 60, 90], [200, 100, 20])
    assert [g[0] for g in gains[:3]] == pytest.approx(straight.astype(int), abs=1)


@pytest.mark.parametrize(
    ("mask", "reach_mm"), [(0x01, 100), (0xC7, 100 * led_power()[0xC7] ** 0.5)]
)
def test_more_pins_reach_farther(mask, reach_mm):
    """Light of all five pins is a quarter stronger (hardware reference 4.6)."""
    assert 1.15 < led_power()[0xC7] < 1.3
    distances = [reach_mm - 1.5, reach_mm + 1.5]
    sent, gains = heard_at(
        distances, model="inverse_square", range_mm=100, eeprom={"tx_mask": mask}
    )
    assert [len(g) for g in gains] == [sent[0], 0]


def test_a_robot_without_transmit_pins_is_mute():
    """It believes that it sends; not even the onlooker sees a pulse."""
    sent, gains = heard_at([40], eeprom={"tx_mask": 0})
    assert (sent, len(gains[0])) == ([0], 0)


def test_extra_loss_takes_its_share_of_messages():
    """Twelve listeners, each with a message in half a second; three deviations are 10 %."""
    sent, gains = heard_at([60] * 12, seconds=8.0, message_loss_percent=30)
    assert sum(len(g) for g in gains) / sum(sent) == pytest.approx(0.7, abs=0.11)


def test_distance_noise_is_what_was_asked_for():
    """At 70 mm the calibrated curve falls by 2 counts per mm: 3 mm make 6 counts."""
    _, gains = heard_at([70] * 12, seconds=8.0, distance_noise_mm=3)
    _, plain = heard_at([65.5, 70, 74.5])
    low, middle, high = (g[0] for g in plain)
    slope = (high - low) / 9
    readings = np.concatenate(gains)
    assert readings.mean() == pytest.approx(middle, abs=3)
    assert readings.std() == pytest.approx(abs(3 * slope), rel=0.25)
