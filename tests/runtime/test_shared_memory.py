"""Processes that write and read at once: no torn record, nothing cut off, whoever dies is noticed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

from tangere.runtime import InputError
from tangere.runtime.pacer import LoopProcess, ProcessLostError, SharedRecord, SharedRows
from tests.runtime.paced_loops import HEAD, ROW, WORDS, Counter, follow_rows, hammer, orphan, refuse

SPAWN = multiprocessing.get_context("spawn")


def until(what, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("checked", "reads"),
    [(False, 100_000), (True, 50_000), pytest.param(False, 1_000_000, marks=pytest.mark.slow)],
)
def test_reads_beside_a_writer_that_never_rests_are_whole_and_never_go_back(checked, reads, effort):
    if not checked and os.uname().machine not in ("x86_64", "i686"):
        pytest.skip("this machine reorders stores, and so always has checksums")
    with SharedRecord(WORDS, checked=checked) as shared, SharedRecord(HEAD) as stop:
        reader = SharedRecord(WORDS, shared.name, checked=checked)
        writer = SPAWN.Process(target=hammer, args=(shared.name, stop.name, checked), daemon=True)
        writer.start()
        until(lambda: reader.newest)
        last, changes, made, wanted = 0, 0, 0, effort(reads)
        end = time.monotonic() + 60.0
        while made < wanted or changes <= 10:  # where cores are few, the writer has to get its turn
            assert time.monotonic() < end, "the writer did not write meanwhile"
            made += 1
            words = reader.read()["words"]
            number = int(words[0])
            assert words[95] == number
            assert words[47] == number
            assert number >= last
            changes += number != last
            last = number
        stop.write(np.array((1,), HEAD))
        writer.join(10.0)
        assert writer.exitcode == 0
        assert reader.writer == writer.pid
        reader.close()


def test_a_reader_sees_a_slot_that_is_overwritten_while_it_copies_and_copies_again():
    with SharedRecord(WORDS, slots=2) as shared:
        record = np.zeros(1, WORDS)
        shared.write(record)
        genuine, disturbed = shared._bytes, []

        class Disturbing:
            """Memory whose first reading is overtaken by two writes."""

            def __getitem__(self, where):
                taken = bytes(genuine[where])
                if not disturbed:
                    disturbed.append(1)
                    shared._bytes = genuine
                    for number in (1, 2):
                        record["words"] = number
                        shared.write(record)
                return taken

        shared._bytes = Disturbing()
        assert (shared.read()["words"] == 2).all()
        assert shared.again == 1


def test_a_slot_whose_bytes_do_not_fit_its_checksum_is_not_believed():
    with SharedRecord(WORDS, checked=True) as shared:
        shared.write(np.ones(1, WORDS))
        genuine, torn = shared._bytes, []

        class Torn:
            """Memory whose first reading misses a store."""

            def __getitem__(self, where):
                taken = bytearray(genuine[where])
                if not torn:
                    torn.append(1)
                    taken[40] ^= 1
                return bytes(taken)

        shared._bytes = Torn()
        assert (shared.read()["words"] == 1).all()
        shared._bytes = genuine
        assert shared.again == 1


def test_rows_that_outgrow_their_memory_arrive_all_and_with_the_record_they_belong_to():
    with SharedRows(HEAD, ROW, capacity=1) as shared, SharedRecord(HEAD) as answer:
        shared.write(np.array((0,), HEAD), np.zeros(0, ROW))
        wanted = 600
        reader = SPAWN.Process(target=follow_rows, args=(shared.name, answer.name, wanted), daemon=True)
        reader.start()
        until(lambda: answer.newest or reader.is_alive())
        for number in range(1, wanted + 1):
            rows = np.zeros(number, ROW)
            rows["number"], rows["place"] = number, np.arange(number)
            shared.write(np.array((number,), HEAD), rows)
            time.sleep(0.001)
        until(lambda: answer.newest)
        assert int(answer.read()["number"]) > 0
        assert shared.capacity == 1024
        reader.join(10.0)


def test_a_reader_knows_whether_there_is_something_new_also_when_the_rows_have_moved():
    with SharedRows(HEAD, ROW, capacity=2) as shared, SharedRows(HEAD, ROW, shared.name) as reader:
        assert reader.read() is None
        assert reader.age == float("inf")
        for number, rows in ((1, 2), (2, 1), (3, 9), (4, 9)):
            shared.write(np.array((number,), HEAD), np.zeros(rows, ROW))
            assert reader.fresh
            record, told = reader.read()
            assert (int(record["number"]), len(told)) == (number, rows)
            assert not reader.fresh
        assert reader.age < 60.0


def test_what_cannot_be_shared_is_refused_by_name():
    with pytest.raises(InputError, match="dtype"):
        SharedRecord(object)
    with pytest.raises(InputError, match="no longer"):
        SharedRecord(HEAD, "tangere-nobody")
    with SharedRecord(HEAD) as shared:
        assert shared.read() is None
        assert shared.age == float("inf")
        with pytest.raises(InputError, match="bytes"):
            SharedRecord(WORDS, shared.name)
        with pytest.raises(InputError, match="record"):
            shared.write(np.zeros(2, HEAD))
        with pytest.raises(InputError, match="rows"), SharedRows(HEAD, ROW) as rows:
            rows.write(np.zeros(1, HEAD), np.zeros(3))
    shared.close()


def test_a_loop_in_its_own_process_ticks_and_tells_how_it_kept_its_rate():
    with SharedRecord(HEAD) as told, LoopProcess(Counter, (told.name,), rate=200.0, mode="hard") as loop:
        until(lambda: loop.ticks >= 20)
        loop.check()
        assert loop.alive
        assert loop.scheduling == "fifo 10" or loop.scheduling.startswith("refused")
        report = loop.stop()
        assert report.ticks == int(told.read()["number"]) >= 20
        assert (report.rate, report.mode, report.scheduling) == (200.0, "hard", loop.scheduling)
        assert loop.stop() is report
        assert not loop.alive
        loop.check()


@pytest.mark.parametrize(("ends", "words"), [("error", "had enough"), ("exit", "exit code 7")])
def test_a_loop_that_ends_by_itself_is_noticed_with_its_last_words(ends, words):
    with SharedRecord(HEAD) as told, LoopProcess(Counter, (told.name, ends, 5), rate=200.0, priority=None) as loop:
        until(lambda: not loop.alive)
        with pytest.raises(ProcessLostError, match=words):
            loop.check()


def test_a_loop_that_is_killed_is_noticed_and_what_it_wrote_last_is_whole():
    with SharedRecord(HEAD) as told, LoopProcess(Counter, (told.name,), rate=500.0, priority=None) as loop:
        until(lambda: loop.ticks >= 10)
        os.kill(loop.pid, signal.SIGKILL)
        until(lambda: not loop.alive)
        with pytest.raises(ProcessLostError, match="exit code -9"):
            loop.check()
        assert int(told.read()["number"]) >= 10
        assert not told.closed


def test_a_loop_that_cannot_be_made_says_why():
    with pytest.raises(ProcessLostError, match="no such device"):
        LoopProcess(refuse)


def test_a_loop_whose_parent_dies_ends():
    with SharedRecord(HEAD) as told:
        parent = SPAWN.Process(target=orphan, args=(told.name,))
        parent.start()
        parent.join(60.0)
        assert told.newest
        pid = told.writer

        def gone() -> bool:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            with open(f"/proc/{pid}/stat", encoding="ascii") as status:
                return status.read().rpartition(")")[2].split()[0] == "Z"  # nobody takes its exit code

        until(gone)
