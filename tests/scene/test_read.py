"""Scenes are read, changed by --set, and refused with messages that help."""

import json
import math
import re
import shlex

import numpy as np
import pytest
from PIL import Image

from avrswarm.errors import SceneError
from avrswarm.scene import find_scene, list_scenes, place_robots, read_scene
from avrswarm.scene.describe import describe_keys, describe_text
from avrswarm.scene.model import Scene
from avrswarm.scene.shipped import firmware_names
from avrswarm.world.optics import PRESETS

ROBOT = '[[robots]]\nfirmware = "blink"\n'


@pytest.fixture
def scene_file(tmp_path):
    def write(text, name="my.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def complaint(path, *overrides):
    with pytest.raises(SceneError) as caught:
        place_robots(read_scene(path, overrides))
    assert caught.value.exit_code == 3
    return str(caught.value)


# ---- what is read -------------------------------------------------------------------------------


def test_the_least_scene(scene_file):
    scene = read_scene(scene_file(ROBOT))
    assert scene.scene.name == "my"
    assert scene.robot_count == 1
    assert scene.robots[0].firmware.name == "blink.hex"
    assert [(c.at_s, c.command) for c in scene.controller] == [(0.5, "run")]
    assert scene.optics.preset == "lab"
    assert scene.world.step_ms == 4


def test_presets_fill_only_what_is_not_given(scene_file):
    scene = read_scene(scene_file(ROBOT + '[optics]\npreset = "long"\nadc_noise_counts = 3\n'))
    filled = {**PRESETS["long"]._asdict(), "adc_noise_counts": 3}
    assert {key: getattr(scene.optics, key) for key in filled} == filled
    assert filled["range_mm"] > 1.5 * read_scene(scene_file(ROBOT)).optics.range_mm
    ideal = read_scene(scene_file(ROBOT), ["optics.preset=ideal"]).optics
    quiet = {key: value for key, value in ideal.model_dump().items() if "noise" in key}
    quiet |= {key: value for key, value in ideal.model_dump().items() if "spread" in key}
    assert set(quiet.values()) == {0}
    assert ideal.range_mm == 100


def test_an_empty_list_of_commands_is_not_the_default(scene_file):
    assert read_scene(scene_file("controller = []\n" + ROBOT)).controller == []


def test_commands_are_sorted(scene_file):
    text = ROBOT + "".join(f'[[controller]]\nat_s = {t}\ncommand = "run"\n' for t in (3, 1, 2))
    assert [c.at_s for c in read_scene(scene_file(text)).controller] == [1, 2, 3]


def test_paths_are_relative_to_the_scene(scene_file, tmp_path):
    (tmp_path / "places.csv").write_text("x_mm,y_mm,heading_deg\n1,2,90\n# comment\n50,2,0\n")
    path = scene_file(ROBOT + '[robots.placement]\nkind = "file"\npath = "places.csv"\n')
    placed = place_robots(read_scene(path))
    assert placed.x_mm.tolist() == [1, 50]
    assert placed.heading_rad[0] == pytest.approx(math.pi / 2)


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("motion.speed_mm_s=8", lambda s: s.motion.speed_mm_s == 8),
        ("robots.0.count=5", lambda s: s.robots[0].count == 5),
        ("scene.name=two words", lambda s: s.scene.name == "two words"),
        ('scene.name="7"', lambda s: s.scene.name == "7"),
        ("robots.0.placement.kind=ring", lambda s: s.robots[0].placement.kind == "ring"),
        ("controller=[]", lambda s: s.controller == []),
        ("robots.0.eeprom.erased=true", lambda s: s.robots[0].eeprom.erased),
        ('lights=[{kind="ambient", lux=2}]', lambda s: s.lights[0].lux == 2),
    ],
)
def test_overrides(scene_file, override, value):
    assert value(read_scene(scene_file(ROBOT), [override]))


# ---- what is refused ----------------------------------------------------------------------------

BAD = {
    "unknown section": (
        "[motoin]\nspeed_mm_s = 3",
        r"motoin: unknown key; did you mean 'motion'\?",
    ),
    "unknown key": ("[motion]\nspeed = 3", r"motion\.speed = 3: unknown key; .*'speed_mm_s'"),
    "known keys are listed": ("[motion]\nspeed = 3", r"known keys: .*turn_deg_s, .*leg_angle_deg"),
    "key of a placement": (
        '[robots.placement]\nkind = "grid"\npitch = 3',
        r"robots\.0\.placement\.pitch = 3: unknown key; did you mean 'pitch_mm'",
    ),
    "kind": (
        '[robots.placement]\nkind = "gird"',
        r"robots\.0\.placement: kind must be one of at, grid, .*; did you mean 'grid'",
    ),
    "no kind": ("[robots.placement]\npitch_mm = 3", r"needs a key 'kind': one of at, grid"),
    "choice": ('[optics]\npreset = "labb"', r"optics\.preset = \"labb\": must be one of 'ideal', "),
    "nan": ("[motion]\nspeed_mm_s = nan", r"speed_mm_s = nan: must be an ordinary number"),
    "inf": ("[scene]\nseconds = inf", r"scene\.seconds = inf: must be an ordinary number"),
    "nan in a list": (
        '[robots.placement]\nkind = "at"\npoints_mm = [[0, nan]]',
        r"placement\.points_mm\.0\.1 = nan: must be an ordinary number",
    ),
    "negative size": ("[arena]\nwidth_mm = -5", r"width_mm = -5: must be more than 0 and at most"),
    "zero robots": ("count = 0", r"robots\.0\.count = 0: must be at least 1"),
    "half a robot": ("count = 1.5", r"robots\.0\.count = 1\.5: .*whole|integer"),
    "too many robots": (
        "count = 65536",
        r"robots: 65536 robots in all; at most 65535 are possible",
    ),
    "text for a number": ('[motion]\nspeed_mm_s = "8"', r"speed_mm_s = \"8\": .*valid number"),
    "a table for a number": ("[motion.speed_mm_s]\nx = 1", r"motion\.speed_mm_s: .*valid number"),
    "byte": (
        "[robots.eeprom]\ntx_mask = 300",
        r"tx_mask = 300: must be at least 0 and at most 255",
    ),
    "no such file": ('[arena]\nimage = "no.png"', r"arena\.image = \"no\.png\": there is no such"),
    "not an image": ('[arena]\nimage = "my.toml"', r"arena\.image = \"my\.toml\": .*not a picture"),
    "overlap": (
        '[robots.placement]\nkind = "at"\npoints_mm = [[0, 0], [20, 0]]',
        r"robots\.0\.placement: robot 1 .* overlaps robot 0 .* 20\.0 mm apart, 33 mm are needed",
    ),
    "outside": (
        '[robots.placement]\nkind = "at"\npoints_mm = [[490, 0]]',
        r"robot 0 at x = 490\.0 mm.* 6\.5 mm too close to .*the arena is 1000 x 1000 mm",
    ),
    "inside a box": (
        '[[objects]]\nkind = "box"\nwidth_mm = 500',
        r"too close to a wall, an object",
    ),
    "on a disc": (
        '[[objects]]\nkind = "disc"\nx_mm = 40',
        r"robot 0 .* too close to a wall, an obj",
    ),
    "discs in each other": (
        '[[objects]]\nkind = "disc"\nx_mm = 200\n'
        '[[objects]]\nkind = "disc"\nx_mm = 210\npushable = true',
        r"objects\.1: the disc at x = 210 mm, y = 0 mm is 50\.0 mm too close to .*another object",
    ),
    "a disc outside": (
        '[[objects]]\nkind = "disc"\nx_mm = 480\npushable = true',
        r"objects\.0: the disc at x = 480 mm.* 10\.0 mm too close to .*the rim",
    ),
    "far away": (
        '[robots.placement]\nkind = "at"\npoints_mm = [[1e300, 0]]',
        r"points_mm\.0\.0 = 1e\+300: must be less than or equal to 1000000",
    ),
    "no room": (
        'count = 1000\n[robots.placement]\nkind = "random"',
        r"room for only \d+ of 1000 robots at random .*kind = \"hex\" helps",
    ),
    "random in the open": (
        '[robots.placement]\nkind = "random"\n[arena]\nshape = "open"',
        r"an open arena has no size: give width_mm and height_mm",
    ),
    "count against points": (
        'count = 3\n[robots.placement]\nkind = "at"\npoints_mm = [[0, 0]]',
        r"robots\.0: count is 3, but placement gives 1 places",
    ),
    "same uid": (
        ROBOT + "[robots.eeprom]\nfirst_uid = 0",
        r"robots\.1 and robots\.0 both have UID 0; set eeprom\.first_uid",
    ),
    "uid beyond the last": (
        "count = 2\n[robots.eeprom]\nfirst_uid = 65534",
        r"the last one is 65534",
    ),
    "message without data": (
        '[[controller]]\nat_s = 1\ncommand = "message"',
        r"controller\.0: command 'message' also needs data, type",
    ),
    "calibration without its mode": (
        '[[controller]]\nat_s = 1\ncommand = "calibrate"\nuid = 3',
        r"controller\.0: command 'calibrate' also needs mode$",
    ),
    "calibration without its value": (
        '[[controller]]\nat_s = 1\ncommand = "calibrate"\nmode = "uid"',
        r"controller\.0: command 'calibrate' with mode 'uid' also needs uid$",
    ),
    "turn without its value": (
        '[[controller]]\nat_s = 1\ncommand = "calibrate"\nmode = "turn_left"',
        r"with mode 'turn_left' also needs left$",
    ),
    "turn with the other's value": (
        '[[controller]]\nat_s = 1\ncommand = "calibrate"\nmode = "turn_right"\nright = 1\nleft = 1',
        r"with mode 'turn_right' does not take left$",
    ),
    "half of straight": (
        '[[controller]]\nat_s = 1\ncommand = "calibrate"\nmode = "straight"\nleft = 1',
        r"with mode 'straight' also needs right$",
    ),
    "save with a value": (
        '[[controller]]\nat_s = 1\ncommand = "calibrate"\nmode = "save"\nuid = 1',
        r"with mode 'save' does not take uid$",
    ),
    "run with data": (
        '[[controller]]\nat_s = 1\ncommand = "run"\ndata = [1]',
        r"controller\.0: command 'run' does not take data",
    ),
    "half a circle": (
        '[[controller]]\nat_s = 1\ncommand = "run"\nradius_mm = 50',
        r"a circle takes all of x_mm, y_mm and radius_mm",
    ),
    "table without file": ('[optics]\nmodel = "table"', r"the key table must name a CSV file"),
    "comparator": (
        "[optics]\ncomparator_high_us = 34",
        r"comparator_high_us = 34: must be at least 1 and at most 30$",
    ),
    "nan heading": ("heading_deg = nan", r"heading_deg = nan: must be an ordinary number, .*inf$"),
    "heading in words": (
        'heading_deg = "outwards"',
        r"heading_deg = \"outwards\": must be one of 'random', .*did you mean 'outward'\?$",
    ),
    "polygon with two corners": (
        '[[objects]]\nkind = "polygon"\npoints_mm = [[50, 50], [90, 50]]',
        r"objects\.0\.points_mm: list should have at least 3 items",
    ),
    "polygon with a corner twice": (
        '[[objects]]\nkind = "polygon"\npoints_mm = [[50, 50], [90, 50], [90, 50.0]]',
        r"objects\.0\.points_mm: two corners are in one place$",
    ),
    "flat polygon": (
        '[[objects]]\nkind = "polygon"\npoints_mm = [[50, 50], [90, 50], [70, 50]]',
        r"objects\.0\.points_mm: sides touch or cross each other, or there is nothing",
    ),
    "polygon like an 8": (
        '[[objects]]\nkind = "polygon"\npoints_mm = [[50, 50], [90, 90], [90, 50], [50, 90]]',
        r"objects\.0\.points_mm: sides touch or cross each other",
    ),
    "dead duty": ("[motion]\ndead_duty = 70", r"dead_duty 70 is not below the calibrated duties"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_scenes(scene_file, name):
    text, pattern = BAD[name]
    path = scene_file(ROBOT + text)
    message = complaint(path)
    assert re.search(pattern, message), message
    assert message.startswith(str(path)), message
    assert "\n" not in message  # one line for one mistake


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("", r"robots: is missing: a scene needs at least one \[\[robots\]\]"),
        ("robots = []", r"robots: has no entries: a scene needs at least one robot"),
        ("[[robots]]", r"robots\.0\.firmware: is missing"),
        ('[[robots]]\nfirmware = "blnk"', r"firmware = \"blnk\": .* did you mean 'blink'\?"),
        ('[[robots]]\nfirmware = "a/b.hex"', r"firmware = \"a/b\.hex\": there is no such file"),
        ("[arena\n", r"is not TOML: .*line 1"),
        ("robots = 3", r"robots = 3: .*list"),
    ],
)
def test_without_robots(scene_file, text, pattern):
    path = scene_file(text)
    message = complaint(path)
    assert re.search(pattern, message), message
    assert message.startswith(str(path)), message


@pytest.mark.parametrize(
    ("override", "pattern"),
    [
        ("motion.speed_mms=8", r"^--set motion\.speed_mms=8: .*did you mean 'speed_mm_s'"),
        ("scene.seconds=-1", r"^--set scene\.seconds=-1: .*must be more than 0"),
        ("robots.3.count=1", r"^--set robots\.3\.count=1: robots of .* has 1 entries"),
        ("robots.x.count=1", r"there is no 'x'"),
        ("scene.seconds", r"write key=value"),
        ("=3", r"write key=value"),
        ("robots.0.firmware.x=1", r"robots\.0\.firmware is a value and has no keys"),
        ("motion=3", r"^--set motion=3: motion = 3: must be a table"),
    ],
)
def test_bad_overrides(scene_file, override, pattern):
    message = complaint(scene_file(ROBOT), override)
    assert re.search(pattern, message), message


@pytest.mark.parametrize(
    ("key", "content", "pattern"),
    [
        ("firmware", "hello", r"no\.hex: not a firmware: text that is not Intel HEX"),
        ("firmware", ":00000001FE\n", r"no\.hex, line 1: .*checksum"),
        ("firmware", "", r"no\.hex: the file is empty"),
        ("eeprom.image", "hello", r"no\.hex: an EEPROM file has to be Intel HEX"),
        ("eeprom.image", ":020400000000FA\n:00000001FF\n", r"line 1: .*beyond the 1 KiB of EEPROM"),
    ],
)
def test_firmware_and_eeprom_that_are_none(scene_file, tmp_path, key, content, pattern):
    (tmp_path / "no.hex").write_text(content)
    path = scene_file(f'[[robots]]\n{key} = "no.hex"\n')
    if key != "firmware":
        path = scene_file(f'{ROBOT}{key} = "no.hex"\n')
    message = complaint(path)
    assert message.startswith(f'{path}: robots.0.{key} = "no.hex": '), message
    assert re.search(pattern, message), message
    assert "\n" not in message


def test_an_image_without_floor(scene_file, tmp_path):
    Image.new("L", (20, 20), 0).save(tmp_path / "night.png")
    message = complaint(scene_file(ROBOT + '[arena]\nimage = "night.png"\n'))
    assert re.search(r"arena\.image: .*night\.png has no floor: .*image_wall_below = 0\.5", message)


def test_all_mistakes_are_told_at_once(scene_file):
    lines = complaint(scene_file(ROBOT + "[motion]\na = 1\nb = 2\n[scene]\nseconds = 0\n")).split(
        "\n"
    )
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        ("x_mm\n1\n", r"column 'y_mm' is missing"),
        ("x_mm,y_mm\n1\n", r"row 2 has 1 values, not 2"),
        ("x_mm,y_mm\n1,b\n", r"row 2, y_mm: 'b' is not a number"),
        ("x_mm,y_mm\n1,nan\n", r"row 2, y_mm: 'nan' is not a number"),
        ("x_mm,y_mm\n", r"has no rows"),
        ("x_mm,y_mm\n0,0\n1e7,0\n", r"row 3, x_mm: 1e\+07 is not between -1e\+06 and 1e\+06"),
        ("x_mm,y_mm,heading_deg\n1,2,1e300\n", r"row 2, heading_deg: 1e\+300 is not between"),
        ("", r"column 'x_mm' is missing"),
    ],
)
def test_bad_tables(scene_file, tmp_path, content, pattern):
    (tmp_path / "places.csv").write_text(content)
    path = scene_file(ROBOT + '[robots.placement]\nkind = "file"\npath = "places.csv"\n')
    message = complaint(path)
    assert re.search(pattern, message), message


# ---- shipped scenes -----------------------------------------------------------------------------

LESSONS = [
    "blink",
    "move",
    "speaker_listener",
    "gradient",
    "orbit",
    "edge_following",
    "follow_leader",
    "sync",
    "disperse",
    "move_to_light",
    "links",
    "thousand",
]


def test_lessons_come_in_order():
    assert [scene.name for scene in list_scenes()] == LESSONS


def tries():
    """Every line 'avrswarm run NAME --set ...' in the comments of shipped scenes."""
    for scene in list_scenes():
        yield scene.name, []
        for line in scene.path.read_text().splitlines():
            if line.startswith("#   avrswarm run "):
                words = shlex.split(re.sub(r"   +[^-'].*$", "", line[4:]))
                sets = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
                yield words[2], sets


@pytest.mark.parametrize(("name", "overrides"), list(tries()))
def test_shipped_scenes_and_what_they_suggest_are_valid(name, overrides):
    scene = read_scene(name, overrides)
    placed = place_robots(scene)
    assert len(placed.x_mm) == scene.robot_count
    assert scene.scene.name == name
    assert scene.scene.description


def test_a_scene_is_found_by_name_number_and_path():
    path = find_scene("orbit")
    assert path.name == "05_orbit.toml"
    assert find_scene("05_orbit") == find_scene(path) == path


@pytest.mark.parametrize("name", ["orbti", "scenes/orbti.toml", "05_orbti.toml"])
def test_a_wrong_name_is_met_with_a_better_one(name):
    assert "did you mean 'orbit'?" in complaint(name)


def test_thousand_has_twelve_neighbours():
    placed = place_robots(read_scene("thousand"))
    distance = np.hypot(placed.x_mm[:, None] - placed.x_mm, placed.y_mm[:, None] - placed.y_mm)
    neighbours = (distance <= 100).sum(axis=1) - 1
    assert np.median(neighbours) == 12


def test_firmware_names_are_programs():
    assert {"blink", "gradient", "random_walk"} <= set(firmware_names())


# ---- the list of keys ---------------------------------------------------------------------------


def test_every_key_is_described():
    keys = describe_keys()
    assert len({key.path for key in keys}) == len(keys)
    missing = [key.path for key in keys if not key.meaning]
    assert missing == []
    by_path = {key.path: key for key in keys}
    assert by_path["motion.speed_mm_s"].unit == "mm/s"
    assert by_path["motion.speed_mm_s"].default == "10"
    assert by_path["robots[].placement(grid).pitch_mm"].unit == "mm"
    assert by_path["optics.range_mm"].default == "from the preset"
    assert "speed_mm_s" in describe_text()


def test_a_resolved_scene_can_be_read_again():
    scene = read_scene("orbit")
    again = Scene.model_validate(json.loads(scene.model_dump_json()))
    assert again.model_dump() == scene.model_dump()
