# SPDX-License-Identifier: Apache-2.0
"""The memory of batches, with both sides in one process: the memory to which a worker writes has pages, and belongs to
no other batch.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from feedline.torch_loader.workers.ring import HEADER, PAGE, Control, Ring
from feedline.torch_loader.workers.ring_reader import RingReader
from feedline.torch_loader.workers.ring_writer import RingWriter

BUDGET = 1 << 40  # nobody waits


class Sides:
    """A ring of one worker, with its writer and its reader."""

    def __init__(self) -> None:
        self.ring = Ring(1)
        self.writer = RingWriter(self.ring, 0, BUDGET, ahead=1)
        self.reader = RingReader(self.ring)

    def missing(self, start: int, size: int) -> int:
        """Returns the bytes of a range that have no page; afterwards, they have pages. SEEK_HOLE cannot be used,
        because it reports allocated but unwritten pages as holes.
        """
        before = os.fstat(self.ring.fd).st_blocks
        os.posix_fallocate(self.ring.fd, self.ring.region_start(0) + start, size)
        return (os.fstat(self.ring.fd).st_blocks - before) * 512

    def send(self, size: int):
        """A block of `size` bytes, including the header, that the reader holds."""
        block = self.writer.allocate(size - HEADER)
        start = self.writer.start_of(block)
        del block
        return start, self.reader.open(0, start, self.writer.send(start))


@pytest.fixture
def sides():
    return Sides()


SIZE = 64 * PAGE


def test_a_block_below_the_keep_line_is_used_again_with_its_pages(sides):
    start, held = sides.send(SIZE)
    sides.writer.end_task()
    assert sides.ring.control(0)[Control.KEEP] >= start + SIZE
    held[:] = 7
    del held
    assert sides.missing(start, SIZE) == 0
    again = sides.writer.allocate(SIZE - HEADER)
    assert sides.writer.start_of(again) == start
    assert (again == 7).all(), "nobody has cleared them"


def test_a_block_above_the_keep_line_is_given_back_at_once(sides):
    start, held = sides.send(SIZE)
    del held
    assert sides.missing(start, SIZE) == SIZE


def test_a_block_that_was_punched_before_the_keep_line_rose_gets_its_pages_again(sides):
    start, held = sides.send(SIZE)
    del held  # above the line, so it is freed
    sides.writer.end_task()  # and only then the line rises above it
    assert sides.ring.control(0)[Control.KEEP] >= start + SIZE
    block = sides.writer.allocate(SIZE - HEADER)
    assert sides.writer.start_of(block) == start
    assert sides.missing(start, SIZE) == 0, "a write would be a page fault, which is SIGBUS where memory is short"


def test_a_block_that_was_never_sent_keeps_its_pages(sides):
    block = sides.writer.allocate(SIZE - HEADER)
    start = sides.writer.start_of(block)
    del block
    again = sides.writer.allocate(SIZE - HEADER)
    assert sides.writer.start_of(again) == start
    assert sides.missing(start, SIZE) == 0


class RingMachine(RuleBasedStateMachine):
    """Any order of the actions of a worker and the loop, one step at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.sides = Sides()
        self.made: dict[int, object] = {}  # start -> block of the worker
        self.held: dict[int, object] = {}  # start -> block of the loop
        self.marks: dict[int, int] = {}
        self.mark = 0

    @rule(pages=st.integers(1, 40))
    def make(self, pages: int) -> None:
        block = self.sides.writer.allocate(pages * PAGE - HEADER)
        start = self.sides.writer.start_of(block)
        assert self.sides.missing(start, pages * PAGE) == 0
        self.mark = self.mark % 250 + 1
        block[:] = self.mark
        self.made[start], self.marks[start] = block, self.mark

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def hand_over(self, data: st.DataObject) -> None:
        start = data.draw(st.sampled_from(sorted(self.made)))
        del self.made[start]
        self.held[start] = self.sides.reader.open(0, start, self.sides.writer.send(start))

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        del self.made[data.draw(st.sampled_from(sorted(self.made)))]

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        del self.held[data.draw(st.sampled_from(sorted(self.held)))]

    @rule()
    def end_task(self) -> None:
        self.sides.writer.end_task()

    @invariant()
    def nothing_has_changed(self) -> None:
        for blocks in (self.made, self.held):
            for start, block in blocks.items():
                assert (block == self.marks[start]).all()


def test_in_whatever_order_blocks_come_and_go():
    run_state_machine_as_test(RingMachine, settings=settings(max_examples=150, stateful_step_count=15, deadline=None))
