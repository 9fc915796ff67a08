"""Where robots stand: patterns, random places, and the laws they keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrswarm.scene.build import (
    Trait,
    make_robots,
    make_scene_light,
    make_scene_motors,
    make_scene_optics,
    make_scene_world,
)
from avrswarm.scene.model import Scene
from avrswarm.scene.place import place_robots


def scene(*groups, **sections):
    robots = [{"firmware": "blink", **group} for group in groups]
    return Scene.model_validate({"robots": robots, **sections})


def nearest(placed):
    x, y = placed.x_mm, placed.y_mm
    distance = np.hypot(x[:, None] - x, y[:, None] - y)
    np.fill_diagonal(distance, np.inf)
    return distance.min()


@settings(max_examples=30)
@given(
    st.integers(1, 90),
    st.floats(0, 20),
    st.integers(0, 2**62),
    st.sampled_from([{}, {"radius_mm": 420.0}, {"width_mm": 900.0, "height_mm": 500.0}]),
)
def test_random_places_keep_their_distance(count, gap_mm, seed, region):
    group = {"count": count, "placement": {"kind": "random", "gap_mm": gap_mm, **region}}
    other = {"placement": {"kind": "at", "points_mm": [[0, 0]]}, "radius_mm": 60.0}
    one = scene(other, group, scene={"seed": seed})
    placed = place_robots(one)
    assert len(placed.x_mm) == count + 1
    if count > 1:
        assert nearest(placed._replace(x_mm=placed.x_mm[1:], y_mm=placed.y_mm[1:])) >= 33 + gap_mm
    assert (np.hypot(placed.x_mm[1:], placed.y_mm[1:]) >= 76.5 + gap_mm).all()
    assert np.abs(placed.x_mm).max() <= 500 - 16.5
    again = place_robots(one)
    assert again.x_mm.tobytes() == placed.x_mm.tobytes()
    assert again.heading_rad.tobytes() == placed.heading_rad.tobytes()


def test_seeds_and_groups_differ():
    group = {"count": 20, "heading_deg": "random", "placement": {"kind": "random"}}
    one = place_robots(scene(group, group))
    other = place_robots(scene(group, group, scene={"seed": 2}))
    assert len(set(one.x_mm)) == 40
    assert not set(one.x_mm) & set(other.x_mm)
    assert one.heading_rad.std() > 1
    assert one.group.tolist() == [0] * 20 + [1] * 20


@pytest.mark.parametrize(
    ("kind", "pitch"),
    [("grid", {"pitch_mm": 40}), ("line", {"pitch_mm": 40}), ("hex", {"pitch_mm": 40})],
)
@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_patterns_have_their_pitch(kind, pitch, count):
    placed = place_robots(scene({"count": count, "placement": {"kind": kind, **pitch}}))
    assert len(placed.x_mm) == count
    if count > 1:
        assert nearest(placed) == pytest.approx(40)


def test_hexagons_are_dense():
    placed = place_robots(scene({"count": 7, "placement": {"kind": "hex", "pitch_mm": 40}}))
    assert np.hypot(placed.x_mm[1:], placed.y_mm[1:]) == pytest.approx(np.full(6, 40))


def test_rings_and_headings():
    ring = {"kind": "ring", "radius_mm": 100, "x_mm": 50}
    for heading, turn in [
        ("outward", 0),
        ("inward", 180),
        ("clockwise", -90),
        ("counterclockwise", 90),
    ]:
        placed = place_robots(scene({"count": 6, "placement": ring, "heading_deg": heading}))
        angle = np.arctan2(placed.y_mm, placed.x_mm - 50) + np.deg2rad(turn)
        assert np.cos(placed.heading_rad - angle) == pytest.approx(np.ones(6))
        assert np.hypot(placed.x_mm - 50, placed.y_mm) == pytest.approx(np.full(6, 100))
    assert np.abs(placed.heading_rad).max() <= np.pi


def test_given_headings_win():
    points = [[0, 0, 90], [50, 0]]
    group = {"placement": {"kind": "at", "points_mm": points}, "heading_deg": 10}
    placed = place_robots(scene(group))
    assert np.rad2deg(placed.heading_rad) == pytest.approx([90, 10])


def test_robots_may_touch_but_not_overlap():
    place_robots(scene({"placement": {"kind": "at", "points_mm": [[0, 0], [33, 0]]}}))


def test_65535_robots_are_possible():
    wide = {"width_mm": 20_000, "height_mm": 20_000}
    placed = place_robots(scene({"count": 65_535, "placement": {"kind": "grid"}}, arena=wide))
    assert len(placed.x_mm) == 65_535


# ---- what robots are like -----------------------------------------------------------------------


def test_every_robot_has_its_own_uid_and_calibration():
    one = scene({"count": 30}, {"count": 2, "eeprom": {"first_uid": 500}, "placement": FAR})
    placed = place_robots(one)
    robots = make_robots(one, placed)
    assert robots.uid.tolist() == [*range(30), 500, 501]
    stored = robots.eeprom[:, 0xB0] + 256 * robots.eeprom[:, 0xB1].astype(int)
    assert stored.tolist() == robots.uid.tolist()
    motor_values = robots.eeprom[:, [0x05, 0x09, 0x0C, 0x14]]
    assert np.abs(motor_values - robots.calibration).max() <= 0.5
    assert 1 < robots.calibration[:, 0].std() < 6
    assert abs(robots.calibration[:, 0].mean() - 73) < 3
    assert np.abs(robots.clock_hz / 8e6 - 1).max() <= 0.015
    motors = make_scene_motors(one, robots)
    assert motors.calibration.shape == (32, 4)


FAR = {"kind": "line", "y_mm": 300}


def test_given_values_and_erased_robots():
    one = scene(
        {"eeprom": {"turn_left": 200, "tx_mask": 0x81, "distance_tables": "example"}},
        {"eeprom": {"erased": True}, "placement": FAR},
    )
    robots = make_robots(one, place_robots(one))
    assert robots.eeprom[0, 0x05] == 200
    assert robots.eeprom[0, 0x90] == 0x81
    assert (robots.eeprom[1] == 0xFF).all()
    assert robots.uid.tolist() == [0, 0xFFFF]


def test_distance_tables_fit_the_optics():
    ideal = scene({}, optics={"preset": "ideal"})
    robots = make_robots(ideal, place_robots(ideal))
    assert robots.eeprom[0, 0x20:0x24].tolist() == [277 >> 8, 277 & 255, 273 >> 8, 273 & 255]
    assert robots.eeprom[0, 0x6A:0x6C].tolist() == [568 >> 8, 568 & 255]
    other = scene({}, optics={"preset": "ideal", "model": "inverse_square"})
    robots = make_robots(other, place_robots(other))
    assert int(robots.eeprom[0, 0x20]) * 256 + robots.eeprom[0, 0x21] == 138


def test_traits_are_drawn_from_separate_numbers():
    one = scene({"count": 50}, optics={"preset": "long"})
    robots = make_robots(one, place_robots(one))
    drawn = [robots.transmit_gain, robots.receive_gain, robots.threshold_gain, robots.clock_hz]
    drawn += [robots.light_gain, *robots.motor_gain.T, *robots.calibration.T]
    for a in range(len(drawn)):
        for b in range(a):
            assert abs(np.corrcoef(drawn[a], drawn[b])[0, 1]) < 0.6
    assert len(set(Trait)) == len(Trait)


def test_no_spread_makes_all_alike():
    zero = dict.fromkeys(["clock_percent", "start_delay_s", "motor_values", "motor_percent"], 0)
    one = scene({"count": 5}, spread=zero, optics={"preset": "ideal"})
    robots = make_robots(one, place_robots(one))
    assert set(robots.clock_hz) == {8e6}
    assert set(robots.start_s) == {0}
    assert robots.calibration.tolist() == [[73, 68, 65, 62]] * 5


def test_the_world_has_robots_first_then_discs():
    one = scene(
        {"count": 2},
        objects=[
            {"kind": "disc", "x_mm": 200, "pushable": True, "mass_g": 20.0},
            {"kind": "disc", "x_mm": -200, "radius_mm": 50.0},
            {"kind": "box", "y_mm": 200},
            {"kind": "wall", "from_mm": [0, -300], "to_mm": [100, -300]},
        ],
        arena={"shape": "circle"},
    )
    world = make_scene_world(one, place_robots(one))
    assert world.robots == 2
    assert world.radius_mm.tolist() == [16.5, 16.5, 30, 50]
    assert world.inverse_mass.tolist() == [0.1, 0.1, 0.05, 0]
    assert len(world.walls) == 5
    assert world.bounds[0] == 2


def test_light_and_optics_of_a_scene(tmp_path):
    (tmp_path / "curve.csv").write_text("distance_mm,low_gain_counts\n30,300\n90,20\n")
    one = Scene.model_validate(
        {
            "robots": [{"firmware": "blink"}],
            "optics": {"model": "table", "table": "curve.csv"},
            "lights": [
                {"kind": "ambient", "lux": 1.0},
                {"kind": "ambient", "lux": 2.0},
                {"kind": "lamp"},
                {"kind": "gradient", "direction_deg": 90},
            ],
        },
        context={"folder": tmp_path},
    )
    assert make_scene_optics(one).end_mm == 90
    light = make_scene_light(one)
    assert light.ambient_lux == 3
    assert light.lamps.tolist() == [[0, 0, 300, 0.5]]
    assert light.gradients[0] == pytest.approx([2, 0, 0.004])
