"""What became of frames, in situations that are made up one by one."""

import numpy as np
import pytest

from avrswarm.record.fates import Earshot, Ledger
from avrswarm.robot.messages import Message

from .fake_simulation import FRAME_S, FakeSimulation, make_scene

LINE = [(0, 0), (60, 0), (120, 0), (180, 0)]  # range 100 mm: neighbours hear each other


def settle(simulation, *, every=1, until=100):
    """All frames and messages as lists of rows, settled after every so many steps."""
    ledger = Ledger(len(simulation.robots), Earshot.of(simulation.scene, simulation.traits))
    frames, messages = [], []
    for number in range(until):
        simulation.step()
        world = simulation.world
        ledger.add(world.x_mm, world.y_mm, simulation.drain_sent(), simulation.drain_heard())
        if number % every == 0 or number == until - 1:
            end = simulation.time_s - 0.02 if number < until - 1 else np.inf
            tables = ledger.settle(end)
            frames += tables[0].to_pylist()
            messages += tables[1].to_pylist()
    return frames, messages


def fates(messages):
    return {(row["sender"], row["receiver"]): row["fate"] for row in messages}


@pytest.fixture
def line():
    return FakeSimulation(make_scene(LINE))


def test_a_received_message_has_distance_gains_and_estimate(line):
    line.send(0, 0.1, b"\x01\x02", to=[1], gains=(681, 148))
    frames, messages = settle(line)
    payload = Message.make(0, b"\x01\x02").pack().hex()
    assert messages == [
        {
            "time_s": pytest.approx(0.1 + FRAME_S),
            "sender": 0,
            "receiver": 1,
            "fate": "received",
            "distance_mm": 60.0,
            "high_gain": 681,
            "low_gain": 148,
            "estimate_mm": 83,
            "payload": payload,
        }
    ]
    assert len(frames) == 1
    assert (frames[0]["sender"], frames[0]["complete"]) == (0, True)
    assert (frames[0]["in_earshot"], frames[0]["received"]) == (1, 1)
    assert (frames[0]["x_mm"], frames[0]["payload"]) == (0.0, payload)


def test_bad_checksum_and_loss(line):
    line.send(1, 0.1, bad=[0])
    _, messages = settle(line)
    assert fates(messages) == {(1, 0): "crc_bad", (1, 2): "lost"}
    assert messages[0]["high_gain"] == 700
    assert messages[0]["estimate_mm"] is None
    assert messages[1]["high_gain"] is None


def test_a_broken_frame_is_aborted_for_all(line):
    line.send(1, 0.1, pulses=2)
    frames, messages = settle(line)
    assert fates(messages) == {(1, 0): "aborted", (1, 2): "aborted"}
    assert messages[0]["payload"] == ""
    assert not frames[0]["complete"]


def test_two_at_once_are_deaf_and_the_third_hears_a_mixture(line):
    line.send(0, 0.1, b"\x01")
    line.send(1, 0.1001, b"\x02")
    _, messages = settle(line)
    assert fates(messages) == {(0, 1): "deaf", (1, 0): "deaf", (1, 2): "lost"}


def test_hidden_terminals_meet_at_the_middle_robot_only(line):
    line.send(0, 0.1, b"\x01")
    line.send(2, 0.102, b"\x02", to=[3])
    _, messages = settle(line)
    assert fates(messages) == {(0, 1): "merged", (2, 1): "merged", (2, 3): "received"}


def test_one_of_two_may_get_through(line):
    line.send(0, 0.1, b"\x01", to=[1])
    line.send(2, 0.1, b"\x02", to=[3])
    _, messages = settle(line)
    assert fates(messages) == {(0, 1): "received", (2, 1): "merged", (2, 3): "received"}


def test_an_aborted_frame_spoils_what_follows_at_once(line):
    line.send(0, 0.1, pulses=2)
    line.send(2, 0.1 + 2420 / 8e6 + 200e-6, to=[3])
    line.send(2, 0.2, to=[1, 3])
    line.send(0, 0.2 - 2420 / 8e6 - 400e-6, pulses=2)
    _, messages = settle(line)
    by_time = [(row["fate"]) for row in messages if row["sender"] == 2 and row["receiver"] == 1]
    assert by_time == ["merged", "received"]


def test_beyond_the_range_of_this_pair_it_is_weak():
    scene = make_scene(
        [(0, 0), (99, 0), (0, 300), (100.2, 300)],
        optics={"preset": "ideal", "threshold_spread_percent": 20.0},
        scene={"name": "fake", "seed": 3},
    )
    simulation = FakeSimulation(scene)
    simulation.traits.threshold_gain[:] = [1.0, 4.0, 1.0, 0.5]
    simulation.send(0, 0.1)
    simulation.send(2, 0.2, to=[3])
    _, messages = settle(simulation)
    assert fates(messages) == {(0, 1): "weak", (2, 3): "received"}


def test_the_controller_is_sender_minus_one(line):
    frame = np.frombuffer(Message.make(0x88).pack(), np.uint8)
    for receiver in range(4):
        line.heard.append((receiver, 0.1, frame, 1, 690, 150))
    _, messages = settle(line)
    assert fates(messages) == {(-1, receiver): "received" for receiver in range(4)}
    assert messages[0]["distance_mm"] is None
    assert messages[0]["estimate_mm"] is None
    assert messages[0]["payload"] == Message.make(0x88).pack().hex()


def test_the_controller_disturbs_everybody(line):
    line.sent.append((-1, 0.099, 0.1035, 74, 1, np.zeros(12, np.uint8)))
    line.send(1, 0.1)
    frames, messages = settle(line)
    assert fates(messages) == {(1, 0): "merged", (1, 2): "merged"}
    assert [row["sender"] for row in frames] == [-1, 1]
    assert frames[0]["x_mm"] is None


def test_distance_is_that_at_the_time_of_the_frame(line):
    ledger = Ledger(4, Earshot.of(line.scene, line.traits))
    distances = []
    line.send(0, 0.0005, to=[1])
    line.send(0, 0.1005, to=[1])
    for number in range(50):
        line.step()
        if number == 10:
            line.world.x_mm[1] = 90.0
        if number == 40:
            line.world.x_mm[1] = 700.0  # far away when all is settled
        ledger.add(line.world.x_mm, line.world.y_mm, line.drain_sent(), line.drain_heard())
    distances = ledger.settle(np.inf)[1]["distance_mm"].to_pylist()
    assert distances == [60.0, 90.0]


def random_traffic(seed):
    draw = np.random.default_rng(seed)
    points = [(70.0 * (k % 5), 70.0 * (k // 5)) for k in range(20)]
    simulation = FakeSimulation(make_scene(points))
    for _ in range(300):
        sender = int(draw.integers(20))
        near = [k for k in range(20) if 0 < np.hypot(*np.subtract(points[k], points[sender])) < 100]
        to = [k for k in near if draw.random() < 0.7]
        bad = [k for k in near if k not in to and draw.random() < 0.5]
        data = bytes(draw.integers(0, 256, 9, np.uint8))
        start = float(draw.uniform(0, 0.38))
        simulation.send(sender, start, data, pulses=draw.choice([None, None, 2]), to=to, bad=bad)
    return simulation


@pytest.mark.parametrize("seed", [1, 2])
def test_when_batches_are_settled_changes_nothing(seed):
    whole = settle(random_traffic(seed), every=1000)
    assert len(whole[0]) == 300
    for every in (1, 2, 7, 30):
        assert settle(random_traffic(seed), every=every) == whole


def test_every_heard_message_is_told_once():
    simulation = random_traffic(3)
    heard = sorted((row[0], bytes(row[2]).hex()) for row in simulation.heard if row[3])
    complete = {bytes(row[5]).hex() for row in simulation.sent if row[4]}
    _, messages = settle(simulation, every=3)
    told = [(m["receiver"], m["payload"]) for m in messages if m["fate"] == "received"]
    assert sorted(told) == heard
    own = {m["payload"] for m in messages if m["fate"] == "received" and m["sender"] >= 0}
    assert own <= complete
