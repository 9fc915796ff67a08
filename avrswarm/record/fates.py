"""What became of every frame: sent by one robot, and then received, spoiled or missed by others.

Frames and heard messages are collected while a run goes on, together with the places of the robots
at that time, and settled in batches: each frame is paired with every robot in earshot, each heard
message with the frame it came from, and for a frame that was not heard the reason is looked up in
what else was on the air. When batches are settled does not change what they say.

Who *might* have heard is a question to the optical model with the gains of both robots, without
noise. Who *did* hear is what the simulation reports: what an attentive receiver in the robot's
place hears, which firmware need not have taken in.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from avrswarm.robot.distance import estimate_distances, tables_of
from avrswarm.robot.eeprom_map import TX_MASK
from avrswarm.robot.infrared import LED_PINS, led_power
from avrswarm.robot.messages import MESSAGE_BYTES
from avrswarm.scene.build import Robots, make_scene_optics
from avrswarm.scene.model import Scene
from avrswarm.world import optics
from avrswarm.world.neighbours import allocate_neighbours, find_neighbours

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Records = NDArray[Any]

SENT = np.dtype(
    [
        ("robot", np.int32),  # -1 = overhead controller
        ("start_s", np.float64),
        ("end_s", np.float64),
        ("pulses", np.int32),
        ("complete", np.int8),
        ("data", np.uint8, (MESSAGE_BYTES,)),
    ]
)
HEARD = np.dtype(
    [
        ("robot", np.int32),
        ("time_s", np.float64),
        ("data", np.uint8, (MESSAGE_BYTES,)),
        ("crc_ok", np.int8),
        ("high_gain", np.int32),
        ("low_gain", np.int32),
    ]
)


class Fate(IntEnum):
    """What became of a frame at one robot in earshot; where several are true the first counts."""

    RECEIVED = 0
    CRC_BAD = 1  # twelve bytes were heard, but not those
    ABORTED = 2  # the sender broke off: it heard another one
    DEAF = 3  # the receiver was sending
    WEAK = 4  # too little light, or hardly enough
    MERGED = 5  # another frame was on the air at the receiver
    LOST = 6  # none of these: receiver switched off or asleep, random loss


FATE_NAMES = [fate.name.lower() for fate in Fate]
CONTROLLER = -1

FRAMES_SCHEMA = pa.schema(
    [
        ("start_s", pa.float64()),
        ("end_s", pa.float64()),
        ("sender", pa.int32()),
        ("complete", pa.bool_()),
        ("pulses", pa.int32()),
        ("x_mm", pa.float64()),
        ("y_mm", pa.float64()),
        ("in_earshot", pa.int32()),
        ("received", pa.int32()),
        ("payload", pa.string()),
    ]
)
PAYLOAD = pa.dictionary(pa.int32(), pa.string())
MESSAGES_SCHEMA = pa.schema(
    [
        ("time_s", pa.float64()),
        ("sender", pa.int32()),
        ("receiver", pa.int32()),
        ("fate", pa.dictionary(pa.int8(), pa.string())),
        ("distance_mm", pa.float64()),
        ("high_gain", pa.int16()),
        ("low_gain", pa.int16()),
        ("estimate_mm", pa.int16()),
        ("payload", PAYLOAD),
    ]
)

SETTLE_S = 0.02
"""A frame is settled so long after its end: all that overlaps with it is known by then."""

MATCH_S = 60e-6
"""A message is heard a few microseconds after its last pulse; a bit lasts 34, a byte 339."""

MERGE_S = 34e-6
"""So long at most a pulse keeps the comparator high: another one is not seen."""

RECOVERY_S = 380e-6
"""After a pulse that leads nowhere a receiver is busy for 2959 cycles, and 16 more."""


SURE_LEVEL, DISTURBING_LEVEL = 1.1, 0.5
"""Amplitudes as multiples of what a receiver just hears. Near 1, noise and small movements decide
whether a frame is heard; light that is too weak alone still shifts or swallows pulses of others."""


class Earshot(NamedTuple):
    """Who can hear whom.

    Attributes
    ----------
    curve
        Amplitude against distance for unit gains.
    transmit_gain, receive_gain, limit_counts
        One per robot; an amplitude above the receiver's limit is heard.
    reach_mm, disturbed_mm
        Beyond these distances nobody hears anybody, and nobody disturbs anybody.
    noise, pulse_noise
        Deviations of a message's amplitude, as a fraction, and of a pulse's, in limits.
    low_table, high_table
        Distance tables in each robot's EEPROM.
    """

    curve: optics.Optics
    transmit_gain: Floats
    receive_gain: Floats
    limit_counts: Floats
    reach_mm: float
    disturbed_mm: float
    noise: float
    pulse_noise: float
    low_table: Integers
    high_table: Integers

    @classmethod
    def of(cls, scene: Scene, robots: Robots) -> Earshot:
        """Return who can hear whom in a scene."""
        curve = make_scene_optics(scene)
        limit = optics.LIMIT_COUNTS * robots.threshold_gain
        mask = robots.eeprom[:, TX_MASK].astype(np.int64)
        mask = np.where(mask & ~LED_PINS, 1, mask)  # firmware does not trust other pins
        transmit_gain = robots.transmit_gain * led_power()[mask]
        noise = scene.optics.amplitude_noise_percent / 100
        best = float(transmit_gain.max() * robots.receive_gain.max()) * (1 + 4 * noise)
        reach_mm, disturbed_mm = (
            optics.reach_mm(curve, best, level * float(limit.min()))
            + 4 * scene.optics.distance_noise_mm
            for level in (1.0, DISTURBING_LEVEL)
        )
        low_table, high_table = tables_of(robots.eeprom)
        return cls(
            curve=curve,
            transmit_gain=transmit_gain,
            receive_gain=robots.receive_gain,
            limit_counts=limit,
            reach_mm=reach_mm,
            disturbed_mm=disturbed_mm,
            noise=noise,
            pulse_noise=scene.optics.pulse_noise_percent / 100,
            low_table=low_table,
            high_table=high_table,
        )

    def levels(self, sender: Integers, receiver: Integers, distance_mm: Floats) -> Floats:
        """Return for each pair the amplitude as a multiple of what the receiver just hears."""
        gain = self.transmit_gain[sender] * self.receive_gain[receiver]
        counts = optics.amplitudes(self.curve, distance_mm) * gain
        return np.asarray(counts / self.limit_counts[receiver])


class _Pairs(NamedTuple):
    """Each frame with each robot that it may disturb, in the order of frames, then of receivers."""

    frame: Integers
    receiver: Integers
    distance_mm: Floats
    near: Flags  # in earshot
    strong: Flags  # heard for sure if nothing disturbs
    disturbing: Flags  # strong enough to disturb others


_FRAME = np.dtype([*SENT.descr, ("place", np.int64)])


class Ledger:
    """Collects frames and heard messages and settles what became of them."""

    def __init__(self, count: int, earshot: Earshot) -> None:
        self._count = count
        self._earshot = earshot
        self._frames: list[Records] = []
        self._heard: list[Records] = []
        self._x: list[Floats] = []  # places of the robots whenever they changed
        self._y: list[Floats] = []
        self._settled_s = -np.inf
        self._lists = allocate_neighbours(count)

    def warm_up(self) -> None:
        """Load or compile what settling needs, so that it does not count as time of the run."""
        place = np.zeros(self._count)
        frames = np.zeros(1, _FRAME)
        self._note_place(place, place)
        self._pairs(frames)
        _payloads(frames)
        self._x, self._y = [], []

    def add(self, x_mm: Floats, y_mm: Floats, sent: Records, heard: Records) -> None:
        """Take what ended in one step of the world, and where robots are."""
        if len(sent):
            frames = np.empty(len(sent), _FRAME)
            for name in SENT.names or ():
                frames[name] = sent[name]
            frames["place"] = self._note_place(x_mm, y_mm)
            self._frames.append(frames)
        if len(heard):
            self._heard.append(heard)

    def settle(self, until_s: float) -> tuple[pa.Table, pa.Table]:
        """Return the tables of frames and messages for all frames that ended up to a time."""
        frames = _joined(self._frames, _FRAME)
        frames = frames[np.lexsort((frames["robot"], frames["end_s"]))]
        heard = _joined(self._heard, HEARD)
        heard = heard[np.lexsort((heard["robot"], heard["time_s"]))]
        pairs = self._pairs(frames)
        hit = _match(frames, pairs, heard)
        fate = self._fates(frames, pairs, heard, hit)

        due = (frames["end_s"] > self._settled_s) & (frames["end_s"] <= until_s)
        hit_end = np.append(frames["end_s"][pairs.frame], np.nan)[hit]
        told_s = np.where(hit < 0, heard["time_s"], hit_end)
        heard_due = (told_s > self._settled_s) & (told_s <= until_s)
        tables = (
            self._frames_table(frames, pairs, fate, due),
            self._messages_table(frames, pairs, heard, hit, fate, due, heard_due),
        )
        self._settled_s = until_s
        since_s = until_s - SETTLE_S
        self._keep(frames[frames["end_s"] > since_s], heard[told_s > since_s])
        return tables

    # ---- places ----------------------------------------------------------------------------------

    def _note_place(self, x_mm: Floats, y_mm: Floats) -> int:
        x, y = x_mm[: self._count], y_mm[: self._count]
        same = self._x and np.array_equal(self._x[-1], x) and np.array_equal(self._y[-1], y)
        if not same:
            self._x.append(x.copy())
            self._y.append(y.copy())
        return len(self._x) - 1

    def _keep(self, frames: Records, heard: Records) -> None:
        """Hold back what is not settled, or may yet disturb what is not."""
        first = int(frames["place"].min()) if len(frames) else len(self._x) - 1
        self._x, self._y = self._x[max(first, 0) :], self._y[max(first, 0) :]
        frames["place"] -= max(first, 0)
        self._frames, self._heard = [frames], [heard]

    def _pairs(self, frames: Records) -> _Pairs:
        senders = np.flatnonzero(frames["robot"] >= 0)
        if len(senders) == 0:
            none = np.zeros(0, np.int64)
            return _Pairs(none, none, np.zeros(0), none > 0, none > 0, none > 0)
        x, y = np.stack(self._x), np.stack(self._y)
        moved = float(np.sqrt((x - x[-1]) ** 2 + (y - y[-1]) ** 2).max())
        margin = 2 * moved + 1e-6
        earshot = self._earshot
        reach = earshot.disturbed_mm
        lists = find_neighbours(x[-1], y[-1], self._count, reach + margin, self._lists)
        self._lists = lists
        robot = frames["robot"][senders].astype(np.int64)
        first = lists.first[robot]
        number = lists.first[robot + 1] - first
        frame = np.repeat(senders, number)
        within = np.arange(len(frame)) - np.repeat(np.cumsum(number) - number, number)
        receiver = lists.index[np.repeat(first, number) + within]
        sender = frames["robot"][frame].astype(np.int64)
        place = frames["place"][frame]
        distance = np.hypot(
            x[place, sender] - x[place, receiver], y[place, sender] - y[place, receiver]
        )
        inside = distance <= reach
        frame, receiver, distance = frame[inside], receiver[inside], distance[inside]
        level = earshot.levels(sender[inside], receiver, distance)
        return _Pairs(
            frame,
            receiver,
            distance,
            near=distance <= earshot.reach_mm,
            strong=level * (1 - 3 * earshot.noise) >= max(SURE_LEVEL, 1 + 4 * earshot.pulse_noise),
            disturbing=level >= DISTURBING_LEVEL,
        )

    # ---- reasons ---------------------------------------------------------------------------------

    def _fates(self, frames: Records, pairs: _Pairs, heard: Records, hit: Integers) -> Integers:
        best = np.full(len(pairs.frame), len(Fate))
        got = hit >= 0
        np.minimum.at(
            best, hit[got], np.where(heard["crc_ok"][got] != 0, Fate.RECEIVED, Fate.CRC_BAD)
        )
        fate = np.full(len(best), int(Fate.LOST))  # from the last reason to the first
        fate[_is_disturbed(frames, pairs, best < len(Fate))] = Fate.MERGED
        fate[~pairs.strong] = Fate.WEAK
        fate[_is_sending(frames, pairs)] = Fate.DEAF
        fate[frames["complete"][pairs.frame] == 0] = Fate.ABORTED
        return np.asarray(np.minimum(best, fate))

    # ---- tables ----------------------------------------------------------------------------------

    def _frames_table(self, frames: Records, pairs: _Pairs, fate: Integers, due: Flags) -> pa.Table:
        size = len(frames)
        place, robot = frames["place"][due], frames["robot"][due].astype(np.int64)
        own = robot >= 0
        x, y = np.zeros(len(robot)), np.zeros(len(robot))
        if own.any():
            x[own] = np.stack(self._x)[place[own], robot[own]]
            y[own] = np.stack(self._y)[place[own], robot[own]]
        received = fate == Fate.RECEIVED
        return pa.table(
            [
                frames["start_s"][due],
                frames["end_s"][due],
                frames["robot"][due],
                frames["complete"][due] != 0,
                frames["pulses"][due],
                pa.array(x, mask=~own),
                pa.array(y, mask=~own),
                np.bincount(pairs.frame[pairs.strong], minlength=size)[due].astype(np.int32),
                np.bincount(pairs.frame[received], minlength=size)[due].astype(np.int32),
                _payloads(frames[due]),
            ],
            schema=FRAMES_SCHEMA,
        )

    def _messages_table(
        self,
        frames: Records,
        pairs: _Pairs,
        heard: Records,
        hit: Integers,
        fate: Integers,
        due: Flags,
        heard_due: Flags,
    ) -> pa.Table:
        """Rows for the due pairs, then for heard messages of no frame: the controller's."""
        event = np.full(len(pairs.frame), -1)  # which heard message tells of a pair
        order = np.argsort(heard["crc_ok"], kind="stable")  # a good one beats a bad one
        order = order[hit[order] >= 0]
        event[hit[order]] = order
        chosen = np.flatnonzero(due[pairs.frame] & (pairs.near | (event >= 0)))
        foreign = np.flatnonzero((hit < 0) & heard_due)
        frame = pairs.frame[chosen]
        event = np.concatenate([event[chosen], foreign])
        has_event = event >= 0

        time = np.concatenate([frames["end_s"][frame], heard["time_s"][foreign]])
        sender = np.concatenate([frames["robot"][frame], np.full(len(foreign), CONTROLLER)])
        receiver = np.concatenate([pairs.receiver[chosen], heard["robot"][foreign]])
        bad = np.where(heard["crc_ok"][foreign] != 0, Fate.RECEIVED, Fate.CRC_BAD)
        what = np.concatenate([fate[chosen], bad])
        distance = np.concatenate([pairs.distance_mm[chosen], np.zeros(len(foreign))])
        texts = pa.concat_arrays([_payloads(frames), _payloads(heard[foreign])])
        text = np.concatenate([frame, len(frames) + np.arange(len(foreign))]).astype(np.int32)
        high, low = np.zeros(len(event), np.int64), np.zeros(len(event), np.int64)
        high[has_event] = heard["high_gain"][event[has_event]]
        low[has_event] = heard["low_gain"][event[has_event]]
        estimate = np.zeros(len(event), np.int64)
        known = has_event & (what == Fate.RECEIVED) & (sender != CONTROLLER)
        estimate[known] = estimate_distances(
            low[known],
            high[known],
            self._earshot.low_table[receiver[known]],
            self._earshot.high_table[receiver[known]],
        )
        order = np.lexsort((receiver, sender, time))
        columns = [
            pa.array(time),
            pa.array(sender.astype(np.int32)),
            pa.array(receiver.astype(np.int32)),
            pa.DictionaryArray.from_arrays(pa.array(what.astype(np.int8)), FATE_NAMES),
            pa.array(distance, mask=sender == CONTROLLER),
            pa.array(high.astype(np.int16), mask=~has_event),
            pa.array(low.astype(np.int16), mask=~has_event),
            pa.array(estimate.astype(np.int16), mask=~known),
            pa.DictionaryArray.from_arrays(pa.array(text), texts),
        ]
        rows = pa.array(order)
        return pa.table([column.take(rows) for column in columns], schema=MESSAGES_SCHEMA)


def _joined(parts: list[Records], dtype: np.dtype[Any]) -> Records:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


_HEX = np.array([f"{byte:02x}".encode() for byte in range(256)], "S2")


def _payloads(records: Records) -> pa.Array:
    """Return twelve bytes as hexadecimal digits; nothing for a frame that was broken off."""
    strings = _HEX[records["data"]].view(f"S{2 * MESSAGE_BYTES}").reshape(len(records))
    if "complete" in (records.dtype.names or ()):
        strings = np.where(records["complete"] != 0, strings, b"")
    return pa.array(strings, pa.binary()).cast(pa.string())


# ---- who and when --------------------------------------------------------------------------------


def _keys(who: Integers, when_s: Floats, base_s: float, span_s: float) -> Floats:
    """One number that sorts by robot, then by time."""
    return np.asarray(who * span_s + (when_s - base_s))


def _frame_span(frames: Records) -> tuple[float, float]:
    """Return a time before all frames, and how much room each robot gets in keys."""
    if len(frames) == 0:
        return 0.0, 1.0
    base = float(frames["start_s"].min()) - 0.1
    return base, float(frames["end_s"].max()) - base + 0.2


def _match(frames: Records, pairs: _Pairs, heard: Records) -> Integers:
    """Return for each heard message the pair it tells of: the nearest in time, then in space."""
    result = np.full(len(heard), -1)
    if len(heard) == 0 or len(pairs.frame) == 0:
        return result
    base, span = _frame_span(frames)
    keys = _keys(pairs.receiver, frames["end_s"][pairs.frame], base, span)
    order = np.argsort(keys, kind="stable")
    inside = (heard["time_s"] > base) & (heard["time_s"] < base + span)
    wanted = _keys(heard["robot"].astype(np.int64), heard["time_s"], base, span)
    first = np.searchsorted(keys[order], wanted - MATCH_S)
    number = np.where(inside, np.searchsorted(keys[order], wanted + MATCH_S) - first, 0)
    event = np.repeat(np.arange(len(heard)), number)
    within = np.arange(len(event)) - np.repeat(np.cumsum(number) - number, number)
    pair = order[np.repeat(first, number) + within]
    frame = pairs.frame[pair]
    same = (frames["data"][frame] == heard["data"][event]).all(axis=1)
    fits = (frames["complete"][frame] != 0) & (same | (heard["crc_ok"][event] == 0))
    event, pair, frame = event[fits], pair[fits], frame[fits]
    late = np.abs(frames["end_s"][frame] - heard["time_s"][event])
    best = np.lexsort((pair, pairs.distance_mm[pair], late, event))[::-1]
    result[event[best]] = pair[best]  # the last one written is the nearest
    return result


def _is_sending(frames: Records, pairs: _Pairs) -> Flags:
    """Tell for each pair whether the receiver was sending while the frame was on the air."""
    base, span = _frame_span(frames)
    own = np.flatnonzero(frames["robot"] >= 0)
    own = own[np.lexsort((frames["start_s"][own], frames["robot"][own]))]
    if len(own) == 0:
        return np.zeros(len(pairs.frame), bool)
    starts = _keys(frames["robot"][own].astype(np.int64), frames["start_s"][own], base, span)
    ends = _keys(
        frames["robot"][own].astype(np.int64), frames["end_s"][own] + RECOVERY_S, base, span
    )
    frame_start = _keys(pairs.receiver, frames["start_s"][pairs.frame], base, span)
    frame_end = _keys(pairs.receiver, frames["end_s"][pairs.frame], base, span)
    last = np.searchsorted(starts, frame_end) - 1  # its last frame that began before the end
    return np.asarray((last >= 0) & (ends[np.maximum(last, 0)] > frame_start))


def _is_disturbed(frames: Records, pairs: _Pairs, heard: Flags) -> Flags:
    """Tell for each pair whether another frame was on the air that the receiver could hear.

    A receiver that got a frame to its end is soon ready for the next one; after one that it did not
    get, it is busy for a while.
    """
    disturbed = np.zeros(len(pairs.frame), bool)
    if len(pairs.frame) == 0:
        return disturbed
    base, span = _frame_span(frames)
    start, end = frames["start_s"], frames["end_s"]
    loud = np.flatnonzero(pairs.disturbing)
    starts = _keys(pairs.receiver[loud], start[pairs.frame[loud]], base, span)
    order = np.argsort(starts, kind="stable")
    loud, starts = loud[order], starts[order]
    ends = _keys(pairs.receiver[loud], end[pairs.frame[loud]], base, span)
    until = np.maximum.accumulate(ends + np.where(heard[loud], MERGE_S, RECOVERY_S))
    disturbed[loud[1:]] |= until[:-1] > starts[1:]  # by one that began before
    disturbed[loud[:-1]] |= starts[1:] < ends[:-1] + MERGE_S  # by one that begins later
    above = np.flatnonzero(frames["robot"] < 0)
    if len(above):
        last = np.searchsorted(np.sort(start[above]), end[pairs.frame]) - 1
        until_above = np.sort(end[above])[np.maximum(last, 0)]
        disturbed |= (last >= 0) & (until_above > start[pairs.frame])
    return disturbed
