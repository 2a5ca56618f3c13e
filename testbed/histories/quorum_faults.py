"""Random faults of the metadata quorum: controllers, their disks, and the voters."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from backends.simulator.messages import UpdateFeature
from backends.simulator.network import controller
from backends.simulator.quorum.quorum_log import KRAFT_VERSION
from backends.simulator.world import World
from recovery.membership.voter_changes import RemoveRaftVoter

Fault = Callable[[World, Random], None]


def _any_controller(world: World, random: Random) -> int:
    return random.choice(world.topology.every_controller)


def _kill_controller(world: World, random: Random) -> None:
    world.kill_controller(_any_controller(world, random))


def _kill_leader(world: World, _random: Random) -> None:
    if world.quorum.leader is not None:
        world.kill_controller(world.quorum.leader.id)


def _start_controllers(world: World, _random: Random) -> None:
    for number in world.topology.every_controller:
        world.start_controller(number)


def _cut_a_controller(world: World, random: Random) -> None:
    alone = controller(_any_controller(world, random))
    others = [controller(number) for number in world.topology.every_controller]
    if random.random() < 0.3:
        others = world.nodes()
    world.network.cut([alone], others, one_way=random.random() < 0.3)


def _split_the_controllers(world: World, random: Random) -> None:
    everybody = [controller(number) for number in world.topology.every_controller]
    random.shuffle(everybody)
    at = random.randrange(1, len(everybody))
    world.network.cut(everybody[:at], everybody[at:])


def _lose_a_controllers_disk(world: World, random: Random) -> None:
    """Seldom so many that no leader can be elected: the rest of the run would be idle."""
    number = _any_controller(world, random)
    leader = world.quorum.leader
    if leader is not None:
        disks = world.quorum.disks.values()
        others = [key for key in leader.voters.keys if key.id != number]
        left = sum(key in (disk.key for disk in disks) for key in others)
        if left < leader.voters.majority and random.random() < 0.9:
            return
    if random.random() < 0.5:
        world.break_controller_disk(number)
        return
    world.kill_controller(number)
    world.replace_controller_disk(number)
    world.start_controller(number)


def _replace_controller_disks(world: World, _random: Random) -> None:
    for number, disk in world.quorum.disks.items():
        if disk.broken:
            world.kill_controller(number)
            world.replace_controller_disk(number)
    _start_controllers(world, _random)


def _add_voter(world: World, random: Random) -> None:
    world.send_to_quorum(world.quorum.add(_any_controller(world, random)))


def _remove_voter(world: World, random: Random) -> None:
    leader = world.quorum.leader
    if leader is not None and len(leader.voters.voters) > random.choice((1, 2, 2, 3)):
        key = random.choice(leader.voters.keys)
        world.send_to_quorum(RemoveRaftVoter(key, world.quorum.context.cluster_id))


def _upgrade(world: World, _random: Random) -> None:
    world.send_to_quorum(UpdateFeature(KRAFT_VERSION, 1))


def _move_controller(world: World, random: Random) -> None:
    number = _any_controller(world, random)
    world.kill_controller(number)
    world.quorum.configure(number, port=random.choice((9093, 9094)))
    world.start_controller(number)


QUORUM_FAULTS: dict[str, tuple[int, Fault]] = {
    "kill a controller": (3, _kill_controller),
    "kill the leader of the quorum": (2, _kill_leader),
    "start the controllers": (8, _start_controllers),
    "cut a controller": (3, _cut_a_controller),
    "split the controllers": (2, _split_the_controllers),
    "lose a controller's disk": (2, _lose_a_controllers_disk),
    "replace controllers' disks": (3, _replace_controller_disks),
    "add a voter": (5, _add_voter),
    "remove a voter": (3, _remove_voter),
    "kraft.version": (1, _upgrade),
    "move a controller": (1, _move_controller),
}
"""Name → (relative frequency, the fault)."""
