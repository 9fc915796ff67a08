"""Variables have the values and types that the compiler gave them."""

import numpy as np
import pyarrow as pa
import pytest

from avrswarm import Simulation
from avrswarm.errors import UsageError
from avrswarm.record.watch import Watch
from tests.program.firmware import compile_firmware
from tests.swarm.scenes import group, make_scene

pytestmark = pytest.mark.needs_avr_gcc

SOURCE = r"""
#include <stdint.h>
#include <avr/eeprom.h>
#include <avr/pgmspace.h>

typedef struct { uint8_t id; int16_t dist; struct { int32_t x, y; } place; } neighbour_t;
struct { uint16_t gradient; neighbour_t list[3]; float mean; char name[4]; } mydata;
neighbour_t neighbours[4];
int8_t small = -5;
int16_t medium = -1234;
int32_t large = -123456789;
int64_t huge = -5000000000;
uint8_t byte = 200;
uint16_t word = 60000;
uint32_t kilo_ticks = 4000000000;
__int24 odd = -70000;
__uint24 odd_unsigned = 9000000;
float real = -2.5f;
_Bool flag = 1;
enum { RED, GREEN = 7 } colour = GREEN;
struct { int low : 3; unsigned middle : 7; int high : 6; } bits = {-3, 100, -20};
uint8_t *pointer = &byte;
void (*callback)(void);
const uint16_t in_flash[2] PROGMEM = {7, 40000};
uint16_t in_eeprom EEMEM = 0xBEEF;

int main(void)
{
    static int16_t calls = -7;
    neighbours[3].dist = -300;
    neighbours[3].place.y = -70000;
    neighbours[1].id = 250;
    mydata.gradient = 40000;
    mydata.list[2].place.x = 123456;
    mydata.mean = 0.125f;
    mydata.name[0] = 'a';
    calls--;
    mydata.list[0].id = pgm_read_word(&in_flash[1]) == 40000;
    callback = (void (*)(void))main;
    for (;;) {
        asm volatile("" ::: "memory");
    }
}
"""

NUMBERS = {
    "small": (-5, pa.int8()),
    "medium": (-1234, pa.int16()),
    "large": (-123_456_789, pa.int32()),
    "huge": (-5_000_000_000, pa.int64()),
    "byte": (200, pa.uint8()),
    "word": (60_000, pa.uint16()),
    "kilo_ticks": (4_000_000_000, pa.uint32()),
    "odd": (-70_000, pa.int32()),
    "odd_unsigned": (9_000_000, pa.uint32()),
    "real": (-2.5, pa.float32()),
    "flag": (True, pa.bool_()),
    "colour": (7, pa.uint16()),
    "bits.low": (-3, pa.int16()),
    "bits.middle": (100, pa.uint16()),
    "bits.high": (-20, pa.int16()),
    "neighbours[3].dist": (-300, pa.int16()),
    "neighbours[3].place.y": (-70_000, pa.int32()),
    "neighbours[1].id": (250, pa.uint8()),
    "mydata.gradient": (40_000, pa.uint16()),
    "mydata.list[2].place.x": (123_456, pa.int32()),
    "mydata.list[0].id": (1, pa.uint8()),
    "mydata.mean": (0.125, pa.float32()),
    "mydata.name[0]": (ord("a"), pa.uint8()),
    "main::calls": (-8, pa.int16()),
}


@pytest.fixture(scope="module")
def simulation(tmp_path_factory):
    elf = compile_firmware(tmp_path_factory.mktemp("watch"), "-gdwarf-4", source=SOURCE)
    watch = [*NUMBERS, "pointer", "callback"]
    scene = make_scene(group(elf, (0, 0), (100, 0)), record={"watch": watch, "watch_robots": [1]})
    simulation = Simulation(scene, threads=1)
    simulation.run(seconds=0.3)
    return simulation


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_python(simulation, name):
    found = simulation.robots[0].vars[name]
    assert found == NUMBERS[name][0]
    assert type(found) is type(NUMBERS[name][0])


def test_numbers_in_a_table(simulation):
    watch = Watch(simulation.scene, [robot.program for robot in simulation.robots])
    columns = watch.read(simulation.chips.memory)
    assert watch.robots.tolist() == [1]
    table = {
        field.name: (column, field) for field, column in zip(watch.fields, columns, strict=True)
    }
    for name, (value, kind) in NUMBERS.items():
        column, field = table[name]
        assert column.to_pylist() == [value], name
        assert column.type == field.type == kind, name
    symbols = simulation.robots[0].program.symbols
    assert table["pointer"][0].to_pylist() == [symbols.find("byte").address]
    assert table["callback"][0].to_pylist() == [symbols.find("main").address // 2]
    assert table["pointer"][1].type == pa.uint16()


def test_wholes_in_python(simulation):
    values = simulation.robots[1].vars
    assert values["neighbours[3]"] == {"id": 0, "dist": -300, "place": {"x": 0, "y": -70_000}}
    assert [one["id"] for one in values["neighbours"]] == [0, 250, 0, 0]
    assert values["mydata"]["name"] == b"a\0\0\0"
    assert values["in_flash"] == [7, 40_000]
    assert values["in_eeprom"] == 0xFFFF  # a scene gives robots an EEPROM of their own
    assert {"small", "main::calls", "neighbours"} <= set(values)
    assert len(values) == len(list(values))


def test_what_is_not_there(simulation):
    values = simulation.robots[0].vars
    assert "small" in values
    assert "neighbours[4].dist" not in values
    with pytest.raises(UsageError, match="did you mean medium"):
        values["medum"]


def test_two_programs_with_one_name(tmp_path):
    """The column is wide enough for both; who has no such variable has no value."""
    programs = ["int8_t shared = -4;", "uint16_t shared = 50000;", "uint8_t other = 1;"]
    groups = []
    for number, line in enumerate(programs):
        source = f"#include <stdint.h>\n{line}\nint main(void) {{ for (;;) ; }}"
        elf = compile_firmware(tmp_path, "-gdwarf-4", source=source, name=f"part{number}")
        groups.append(group(elf, (100 * number, 0)))
    simulation = Simulation(make_scene(*groups, record={"watch": ["shared"]}), threads=1)
    simulation.run(seconds=0.3)
    watch = Watch(simulation.scene, [robot.program for robot in simulation.robots])
    assert watch.read(simulation.chips.memory)[0].to_pylist() == [-4, 50_000, None]
    assert watch.fields[0].type == pa.from_numpy_dtype(np.dtype(np.int32))


def test_statics_of_two_files_are_told_apart(tmp_path):
    (tmp_path / "other.c").write_text(
        "static volatile int count = 2; int f(void) { return count; }"
    )
    source = "static volatile int count = 1; int f(void);\nint main(void) { return count + f(); }"
    elf = compile_firmware(tmp_path, "-gdwarf-4", "other.c", source=source, name="one")
    simulation = Simulation(make_scene(group(elf, (0, 0))), threads=1)
    simulation.run(seconds=0.3)
    values = simulation.robots[0].vars
    assert (values["one::count"], values["other::count"]) == (1, 2)
    with pytest.raises(UsageError, match=r"ambiguous: .*other::count"):
        values["count"]
