"""Queues of tables: one order for everybody, whatever order they are asked for in."""

from itertools import permutations

from omnigraph.commit.parts import QueueKey, WriteQueueManager

KEYS: list[QueueKey] = [("edge:Knows", "main"), ("node:Person", "june"), ("node:Person", "main")]


def test_queues_are_taken_in_one_order() -> None:
    manager = WriteQueueManager()

    orders = {tuple(map(id, manager._sorted(keys))) for keys in permutations(KEYS)}

    assert len(orders) == 1
    assert len(next(iter(orders))) == len(KEYS)


def test_a_queue_that_is_asked_for_twice_is_taken_once() -> None:
    manager = WriteQueueManager()

    with manager.acquire_many([*KEYS, *KEYS]), manager.try_one(KEYS[0]) as is_held:
        assert not is_held
