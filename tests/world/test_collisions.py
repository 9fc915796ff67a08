"""Bodies never overlap, whoever pushes whom; the order of robots does not matter."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrswarm.world.build import make_world
from avrswarm.world.collisions import TOLERANCE_MM
from avrswarm.world.shapes import box_corners, image_depth, polygon_walls
from tests.world.bodies import EXAMPLES, grid_world, overlaps, run

pytestmark = pytest.mark.jit_off

SMALL = TOLERANCE_MM * 1.0001


@st.composite
def crowds(draw):
    """A grid of robots with discs among them, in an arena with a box, and drives."""
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    count = rows * columns
    angles = st.floats(-3.2, 3.2)
    world = grid_world(
        rows,
        columns,
        draw(st.floats(33.0, 40.0)),
        draw(st.lists(angles, min_size=count, max_size=count)),
        robots=count - draw(st.integers(0, min(2, count - 1))),
        inverse_mass=np.array(
            draw(st.lists(st.sampled_from([0.0, 0.2, 1.0]), min_size=count, max_size=count))
        ),
        bounds=draw(st.sampled_from([(0, 0, 0), (1, 110, 120), (2, 160, 160)])),
        walls=polygon_walls(box_corners(0, 150, 80, 40, 20)),
        speed_mm_s=draw(st.sampled_from([10, 40])),
    )
    drives = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=count, max_size=count)
    return world, np.array(draw(drives)), np.array(draw(drives))


def copy_of(world, order=None):
    order = np.arange(len(world.x_mm)) if order is None else order
    robots = order[order < world.robots]
    names = ["x_mm", "y_mm", "heading_rad", "radius_mm", "inverse_mass"]
    per_robot = ["speed_mm_s", "turn_rad_s", "leg_ahead_mm", "leg_aside_mm"]
    changed = {name: getattr(world, name)[order].copy() for name in names}
    changed |= {name: getattr(world, name)[robots].copy() for name in per_robot}
    return world._replace(**changed)


@settings(max_examples=EXAMPLES)
@given(crowds(), st.integers(1, 60))
def test_never_overlapping(crowd, steps):
    world, left, right = crowd
    before = overlaps(world)
    run(world, left[: world.robots], right[: world.robots], steps)
    assert overlaps(world) <= max(SMALL, before)


@settings(max_examples=EXAMPLES)
@given(crowds(), st.randoms(use_true_random=False))
def test_the_order_of_robots_does_not_matter(crowd, random):
    world, left, right = crowd
    robots = list(range(world.robots))
    others = list(range(world.robots, len(world.x_mm)))
    random.shuffle(robots)
    random.shuffle(others)
    order = np.array(robots + others)
    shuffled = copy_of(world, order)
    run(world, left[: world.robots], right[: world.robots], 20)
    run(shuffled, left[robots], right[robots], 20)
    assert world.x_mm[order].tobytes() == shuffled.x_mm.tobytes()
    assert world.y_mm[order].tobytes() == shuffled.y_mm.tobytes()
    assert world.heading_rad[order].tobytes() == shuffled.heading_rad.tobytes()


@settings(max_examples=EXAMPLES)
@given(crowds())
def test_work_arrays_are_not_part_of_the_state(crowd):
    world, left, right = crowd
    again = copy_of(world)
    left, right = left[: world.robots], right[: world.robots]
    run(world, left, right, 30)
    for start in range(0, 30, 10):  # fresh work arrays every ten steps
        run(again, left, right, 10, first_step=start)
    assert world.x_mm.tobytes() == again.x_mm.tobytes()


def test_a_robot_pushes_another_and_is_slowed_down():
    world = make_world(np.array([0.0, 33.0]), np.zeros(2), np.zeros(2))
    run(world, [1, 0], [1, 0], 250)
    assert 33.0 - SMALL <= world.x_mm[1] - world.x_mm[0] <= 33.1
    assert 4 < world.x_mm[0] < 6  # half the speed: both move the same mass
    assert world.y_mm[1] == pytest.approx(0, abs=1e-6)


def test_a_heavy_disc_moves_less_and_a_fixed_one_not_at_all():
    def pushed(inverse_mass):
        world = make_world(
            np.array([0.0, 46.5]),
            np.zeros(2),
            np.zeros(2),
            robots=1,
            radius_mm=np.array([16.5, 30.0]),
            inverse_mass=np.array([1.0, inverse_mass]),
        )
        run(world, [1], [1], 250)
        return world.x_mm[1] - 46.5

    assert pushed(1.0) > 2 * pushed(0.2) > 0
    assert pushed(0.0) == 0


def test_a_large_disc_meets_all_its_neighbours():
    angle = np.linspace(0, 2 * np.pi, 30, endpoint=False)
    world = make_world(
        np.append(218 * np.cos(angle), 0),
        np.append(218 * np.sin(angle), 0),
        np.append(angle + np.pi, 0),
        robots=30,
        radius_mm=np.append(np.full(30, 16.5), 200.0),
    )
    run(world, np.ones(30), np.ones(30), 200)
    assert overlaps(world) <= SMALL
    assert np.hypot(world.x_mm[30], world.y_mm[30]) < 1  # pushed evenly from all sides


@pytest.mark.parametrize("bounds", [(1, 50.0, 60.0), (2, 50.0, 50.0)])
def test_the_rim_holds(bounds):
    world = make_world(np.zeros(1), np.zeros(1), np.array([0.4]), bounds=bounds)
    run(world, [2], [2], 500)
    assert overlaps(world) <= SMALL
    assert np.hypot(world.x_mm[0], world.y_mm[0]) > 30


def test_thin_walls_hold_from_both_sides():
    wall = np.array([[0.0, -50.0, 0.0, 50.0]])
    world = make_world(np.array([-20.0, 20.0]), np.zeros(2), np.array([0.0, np.pi]), walls=wall)
    run(world, [1, 1], [1, 1], 500)
    assert world.x_mm[0] == pytest.approx(-16.5, abs=SMALL)
    assert world.x_mm[1] == pytest.approx(16.5, abs=SMALL)


def test_walls_of_an_image_hold():
    grey = np.ones((40, 60))
    grey[:, 40:] = 0.0  # right third is wall: x > 100 mm
    depth, frame = image_depth(grey, 600, 400)
    world = make_world(
        np.zeros(1),
        np.zeros(1),
        np.array([0.2]),
        depth_mm=depth,
        depth_frame=frame,
        speed_mm_s=100,
    )
    run(world, [1], [1], 600)
    assert world.x_mm[0] == pytest.approx(100 - 16.5, abs=0.5)
    assert world.y_mm[0] > 15  # it slid along


def test_image_depth_is_the_distance_to_the_nearest_wall():
    rng = np.random.Generator(np.random.PCG64(5))
    grey = (rng.random((12, 17)) > 0.1).astype(float)
    depth, frame = image_depth(grey, 170, 240)
    wall = grey[::-1] < 0.5
    x = frame[0] + np.arange(17) * frame[2]
    y = frame[1] + np.arange(12) * frame[3]
    assert (frame[2], frame[3]) == (10, 20)
    rows, columns = np.nonzero(wall)
    for row in range(12):
        for column in range(17):
            if not wall[row, column]:
                to_wall = np.hypot(x[columns] - x[column], y[rows] - y[row]).min()
                assert depth[row, column] == pytest.approx(to_wall - 7.5)
            else:
                assert depth[row, column] < 0


def test_same_bits_compiled_or_not_and_on_every_machine():
    world = grid_world(
        4,
        5,
        33.0,
        np.linspace(-3, 3, 20),
        robots=18,
        bounds=(1, 90.0, 80.0),
        walls=polygon_walls([(85.0, 75.0), (20.0, 79.0), (80.0, 60.0)]),
        speed_noise=0.1,
        heading_noise_rad=0.2,
        noise_key=11,
    )
    run(world, np.linspace(0, 2, 18), np.linspace(1.5, 0, 18), 40)
    content = world.x_mm.tobytes() + world.y_mm.tobytes() + world.heading_rad.tobytes()
    assert hashlib.sha256(content).hexdigest()[:16] == "0978da5e6c62a81c"
