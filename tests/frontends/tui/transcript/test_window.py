"""What is in sight, whatever happens: checked against all blocks drawn one below the other."""

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from textual.strip import Strip

from hilt.frontends.tui.look import DARK, Look
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.window import KEPT, Line, Place, Window
from support.properties import patient

LOOK = Look.of(DARK)


class Sample(Block):
    """So many cells of text, which fill rows; its guess is as wrong as one likes."""

    def __init__(self, name: int, cells: int, wrong: int = 0) -> None:
        self.name, self.cells, self._wrong = name, cells, wrong
        self.draws = self.forgotten = 0

    def rows(self, width: int, look: Look) -> list[Strip]:
        self.draws += 1
        return [Strip([Segment(f"{self.name}/{row}")]) for row in range(-(-self.cells // width))]

    def guess(self, width: int) -> int:
        return max(0, self.cells // width + self._wrong)

    def forget(self) -> None:
        self.forgotten += 1

    def change(self, cells: int) -> None:
        self.cells = cells
        self.touch()


def naive(blocks: list[Sample], width: int) -> list[tuple[int, int]]:
    """Every row there is, by its block and its place in it; 0 is the gap above."""
    rows = []
    for block in blocks:
        height = -(-block.cells // width)
        rows += [(block.name, row) for row in range(height + 1)] if height else []
    return rows


def seen(lines: list[Line], window: Window) -> list[tuple[int, int]]:
    found = []
    for line in lines:
        block = window[line.block]
        assert isinstance(block, Sample)
        assert line.strip.text == (f"{block.name}/{line.row - 1}" if line.row else "")
        found.append((block.name, line.row))
    return found


CELLS = st.integers(0, 120)
OPS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.tuples(CELLS, st.integers(-3, 9)), min_size=1, max_size=6)),
    st.tuples(st.just("change"), st.tuples(st.integers(0, 50), CELLS)),
    st.tuples(st.just("remove"), st.sets(st.integers(0, 50), max_size=4)),
    st.tuples(st.just("scroll"), st.integers(-40, 40)),
    st.tuples(st.just("go"), st.integers(0, 50)),
    st.tuples(st.just("height"), st.integers(1, 20)),
    st.tuples(st.just("width"), st.integers(1, 30)),
    st.tuples(st.just("end"), st.none()),
    st.tuples(st.just("start"), st.none()),
)


@patient
@given(st.lists(OPS, max_size=25))
def test_what_is_in_sight_is_what_drawing_everything_would_show_there(ops: list[tuple[str, object]]) -> None:
    window = Window(LOOK, 10, 8)
    blocks: list[Sample] = []
    window.show(blocks)
    made = 0
    for name, value in ops:
        before = seen(window.in_sight(), window)
        was_following, rows_before = window.following, naive(blocks, window.width)
        match name, value:
            case "append", list():
                for cells, wrong in value:
                    made += 1
                    blocks.append(Sample(made, cells, wrong))
                window.show(blocks)
            case "change", (int(index), int(cells)):
                if blocks:
                    blocks[index % len(blocks)].change(cells)
                window.show(blocks)
            case "remove", set():
                blocks = [block for at, block in enumerate(blocks) if at not in value]
                window.show(blocks)
            case "scroll", int(by):
                window.scroll(by)
            case "go", int(index):
                window.go_to(index)
            case "height", int(height):
                window.resize(window.width, height)
            case "width", int(width):
                window.resize(width, window.height)
            case "end", _:
                window.following = True
            case "start", _:
                window.to_start()
        after = seen(window.in_sight(), window)
        rows = naive(blocks, window.width)
        first = rows.index(after[0]) if after else 0
        last = max(0, len(rows) - window.height)
        assert after == rows[first : first + window.height], "they follow each other"
        assert len(after) == min(window.height, len(rows)), "nothing is left blank that could be filled"
        assert window.following == (first == last), "the end is followed when it is in sight, and only then"
        if isinstance(value, int) and name == "scroll" and before:
            start = rows.index(before[0])
            assert first == min(max(start + value, 0), last)
        elif name in ("append", "change", "remove", "height") and not was_following and before[0] in rows:
            assert first == min(rows.index(before[0]), last), "what is being read does not move"
        elif name == "width" and not was_following and before and rows:
            names = [one for one, _ in rows]
            assert first == last or after[0][0] == before[0][0] or before[0][0] not in names
        elif name in ("append", "change") and was_following and rows_before:
            assert first == last, "the end stays in sight"


def filled(count: int, cells: int = 30) -> tuple[Window, list[Sample]]:
    window = Window(LOOK, 10, 8)
    blocks = [Sample(at, cells) for at in range(count)]
    window.show(blocks)
    return window, blocks


def test_only_what_is_in_sight_is_drawn() -> None:
    window, blocks = filled(5_000)
    window.in_sight()
    assert [block.name for block in blocks if block.draws] == [4_998, 4_999]
    window.resize(20, 8)
    window.in_sight()
    assert sum(block.draws for block in blocks) < 10


def test_a_frame_draws_no_block_twice_and_none_that_has_not_changed() -> None:
    window, blocks = filled(100, 5)
    window.in_sight()
    blocks[-1].change(6)
    for _ in range(3):
        window.show(blocks)
        window.in_sight()
    assert [block.draws for block in blocks[-4:]] == [1, 1, 1, 2]


def test_a_change_out_of_sight_draws_nothing() -> None:
    window, blocks = filled(100)
    window.in_sight()
    blocks[3].change(90)
    window.show(blocks)
    window.in_sight()
    assert blocks[3].draws == 0
    assert window.extent[1] > 400


def test_blocks_long_out_of_sight_are_forgotten() -> None:
    window, blocks = filled(600)
    for _ in range(300):
        window.in_sight()
        window.scroll(-8)
    kept = [block for block in blocks if block.draws > block.forgotten]
    assert len(kept) <= KEPT
    many, long_ones = filled(150, 2_000)
    for _ in range(150):
        many.in_sight()
        many.scroll(-200)
    assert len([block for block in long_ones if block.draws > block.forgotten]) < 100, "few of those with many rows"


def test_it_says_how_much_is_new_below() -> None:
    window, blocks = filled(20)
    window.in_sight()
    assert window.new == 0
    window.scroll(-10)
    window.in_sight()
    assert window.new == 0
    blocks.append(Sample(20, 25, wrong=40))
    blocks[19].change(50)
    window.show(blocks)
    window.in_sight()
    assert window.new == 4 + 2
    window.following = True
    window.in_sight()
    assert window.new == 0


def test_replacing_everything_shows_the_end_of_what_is_there_now() -> None:
    window, _ = filled(20)
    window.scroll(-30)
    window.in_sight()
    others = [Sample(at, 30) for at in range(100, 120)]
    window.show(others)
    assert seen(window.in_sight(), window)[-1] == (119, 3)
    assert window.following


def test_what_a_replaced_block_becomes_changes_nothing_any_more() -> None:
    window, blocks = filled(3)
    blocks[1].change(50)
    window.show([])
    blocks[0].change(100)
    window.show([])
    assert window.in_sight() == []
    assert window.extent == (0, 0)


def test_a_place_far_down_is_found_by_fraction() -> None:
    window, _ = filled(1_000)
    window.to_fraction(0.5)
    name, _ = seen(window.in_sight(), window)[0]
    assert 490 <= name <= 510
    window.to_fraction(1.0)
    window.in_sight()
    assert window.following


def test_rows_between_two_places_are_read_without_drawing_others() -> None:
    window, blocks = filled(5_000)
    window.go_to(100)
    first = window.in_sight()[0]
    window.go_to(103)
    last = window.in_sight()[0]
    drawn = sum(block.draws for block in blocks)
    rows = list(window.between(Place(first.serial, 1, 2), Place(last.serial, 1, 3)))
    texts = [strip.text[left:right] for strip, left, right in rows]
    assert texts[:5] == ["0/0", "100/1", "100/2", "", "101/0"]
    assert texts[-3:] == ["102/2", "", "103"]
    assert sum(block.draws for block in blocks) <= drawn + 4


def test_what_takes_long_to_lay_out_is_come_upon_from_below() -> None:
    class Slow(Sample):
        unready = True

        def rows(self, width: int, look: Look) -> list[Strip]:
            return [Strip([Segment("…")])] if self.unready else super().rows(width, look)

    slow = Slow(0, 1_000)
    blocks: list[Sample] = [slow, *[Sample(at, 30) for at in range(1, 10)]]
    window = Window(LOOK, 10, 8)
    window.show(blocks)
    window.scroll(-29)
    assert [(line.block, line.row) for line in window.in_sight()][:3] == [(0, 1), (1, 0), (1, 1)]
    slow.unready = False
    slow.touch()
    assert seen(window.in_sight(), window)[:3] == [(0, 100), (1, 0), (1, 1)]


def test_blocks_that_go_leave_what_is_being_read_where_it_is() -> None:
    window, blocks = filled(50)
    window.go_to(20)
    window.scroll(1)
    assert seen(window.in_sight(), window)[0] == (20, 2)
    window.show(blocks := [*blocks[:5], *blocks[9:22], *blocks[25:]])
    assert seen(window.in_sight(), window)[:4] == [(20, 2), (20, 3), (21, 0), (21, 1)]
    window.show([block for block in blocks if block.name not in (19, 20)])
    assert seen(window.in_sight(), window)[0] == (18, 0), "what stood before it comes into sight"


def test_another_width_keeps_the_place_within_a_long_block() -> None:
    window = Window(LOOK, 10, 8)
    window.show([Sample(0, 10_000), Sample(1, 1_000)])
    window.go_to(0)
    window.scroll(500)
    window.in_sight()
    window.resize(20, 8)
    name, row = seen(window.in_sight(), window)[0]
    assert (name, abs(row - 250) <= 1) == (0, True)
