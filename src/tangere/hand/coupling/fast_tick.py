"""One tick of the fast loop, as one kernel: coupling, projection on the contacts, force.

Question: a device is here now; where does the part that it holds go, and which force does the hand feel?
Method:   the error e between where the device wants the part (`metaphor`) and where it is stretches a spring and a
          damper. The part, of a mass m that may be zero, moves by one implicit step: the wanted motion is
          dx = T (m v + T k e + T b v_h) / D with D = m + T b + T^2 k. It is projected, in the metric D, on what the
          contacts of the last slow tick allow: J (moved + dx) >= -(gap - security), gaps going on linearly, less what
          turning may take of them (`bend_of`). The part goes no farther from there than contacts are known. Force:
          (6.4) or (6.5), within what the tank holds.
Sound:    where contacts that are too near ask for more than there is room for, they are asked only not to come nearer,
          which can always be had.
Known as: god-object and proxy methods (Zilles and Salisbury 1995; Ortega, Redon and Coquillart 2007), virtual coupling
          (Colgate 1995; Redon 2002, section 6.5), Gauss's principle of least constraint.
"""

from __future__ import annotations

from typing import Literal

import warp as wp

from tangere.dynamics.solver import SOLVED, mat66d, project_one_body, vec6d
from tangere.hand.coupling.frames import (
    PlacedFrame,
    angular,
    linear,
    motion_between,
    orthonormal,
    rotation_of,
    six,
)
from tangere.hand.coupling.metaphor import INCREMENTAL, image_of
from tangere.hand.coupling.passivity import EnergyAccount, after_work, damping_for, work_on
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

ForceLaw = Literal["coupling", "drag"]
#: Numbers of laws in kernels: (6.4), the damper between device and part; (6.5), the damper on the device.
LAWS: tuple[ForceLaw, ...] = ("coupling", "drag")
DRAG = wp.constant(1)

#: What a hand does: nothing yet, holds the part, moves freely, is lost.
WAITING, HOLDING, CLUTCHED, LOST = 0, 1, 2, 3
_WAITING, _HOLDING, _CLUTCHED, _LOST = (wp.constant(mode) for mode in (WAITING, HOLDING, CLUTCHED, LOST))
#: Why a device is lost.
SILENT, NOT_FINITE, JUMP = 1, 2, 3
_SILENT, _NOT_FINITE, _JUMP = (wp.constant(why) for why in (SILENT, NOT_FINITE, JUMP))
#: Of what a contact lacks: how much is asked back until the next slow tick.
RECOVERY = wp.constant(wp.float64(0.5))
#: Of the security distance, or of a gap that is less: what the bend of a motion may take.
SPARED = wp.constant(wp.float64(0.3))
_SOLVED = wp.constant(SOLVED)
#: Ticks that a force may take until it acts, at most.
MOST_DELAY = 63


@wp.struct
class CouplingSettings:
    """What does not change while a part is held."""

    period: wp.float64  # of the fast loop [s]
    stiffness: vec6d  # of the coupling [N/m], [N m/rad]
    damping: vec6d  # [N s/m], [N m s/rad]
    mass: vec6d  # of the part as the coupling sees it [kg], [kg m^2]
    radius: wp.float64  # no point of the part is farther from the grip [m]
    security: wp.float64  # how far contacts are kept apart [m]; 0: they are none that a walk asks for
    lever: wp.float64  # that turns are compared with ways by [m]
    scale: wp.float64  # of the device's ways
    most_force: wp.float64  # [N]
    most_change: wp.float64  # of the force in a tick, where the part's own motion changes it [N]
    fading: wp.float64  # how long forces take to come and go [s]
    most_way: wp.float64  # of the device in one tick [m]
    most_turn: wp.float64  # [rad]
    capacity: wp.float64  # of the tank [J]
    most_damping: wp.float64  # that the tank may add [N s/m]
    delay: wp.int32  # ticks until a force acts
    metaphor: wp.int32
    law: wp.int32
    forced: vec6d  # 1 for axes on which the device can push
    free: vec6d  # 1 for axes along which the part can go


@wp.struct
class DeviceRecord:
    """What a device told."""

    frame: PlacedFrame
    velocity: vec6d
    answered: wp.int32
    clutch: wp.int32


@wp.struct
class CouplingState:
    """What a tick changes."""

    grip: PlacedFrame  # where the part is
    velocity: vec6d
    image: PlacedFrame  # where the device wants it
    device: PlacedFrame  # at the last tick
    device_taken: PlacedFrame  # when the part was taken
    grip_taken: PlacedFrame
    base: PlacedFrame  # where the part was when contacts were looked for
    load: vec6d  # on the part there, from what yields [N], [N m]
    load_stiffness: vec6d  # how much less it is for each way from there [N/m], [N m/rad]
    most_load: wp.float64  # what it is at most [N]
    reach: wp.float64  # how far from there it may go [m]
    most_step: wp.float64  # how far in a tick [m]
    pull: vec6d  # of the coupling on the device's image [N], [N m]
    force: vec6d  # on the device [N], [N m]
    faded: vec6d  # what is left of the force that acted when the hand let go
    fade_step: vec6d
    gain: wp.float64  # of the coupling's force, 0 to 1
    mode: wp.int32
    lost_why: wp.int32
    account: EnergyAccount
    told: wp.int32  # forces told so far
    relaxed: wp.int32  # ticks in which contacts asked for more than there was room for
    held_back: wp.int32  # ticks in which the part was stopped where contacts are not known any more


@wp.struct
class CoupledRows:
    """Contacts of the part as rows, and room for the projection."""

    count: wp.array[wp.int32]
    rows: wp.array[vec6d]  # (normal, arm x normal)
    room: wp.array[wp.float64]  # gap without the security distance [m]
    need: wp.array[wp.float64]
    unit: wp.array[vec6d]
    gap: wp.array[wp.float64]
    scale: wp.array[wp.float64]
    pool: wp.array[wp.int32]
    motion: wp.array[vec6d]
    impulse: wp.array[wp.float64]
    sent: wp.array[vec6d]  # the last forces, round and round: what acts now was told some ticks ago


@wp.func
def is_placed(frame: PlacedFrame, velocity: vec6d) -> bool:
    """Whether all numbers are finite and the rotation is one."""
    total = wp.dot(frame.position, frame.position) + wp.dot(velocity, velocity)
    off = wp.float64(0.0)
    product = wp.transpose(frame.rotation) * frame.rotation
    for i in range(3):
        for j in range(3):
            d = product[i, j]
            if i == j:
                d -= wp.float64(1.0)
            off += d * d
    # comparisons with what is no number are false
    return total < wp.float64(1.0e12) and off < wp.float64(1.0e-8) and wp.determinant(frame.rotation) > wp.float64(0.0)


@wp.func
def way_of(motion: vec6d, radius: wp.float64) -> wp.float64:
    """How far no point of the part goes beyond."""
    return wp.length(linear(motion)) + radius * wp.length(angular(motion))


@wp.func
def fault_of_device(told: DeviceRecord, settings: CouplingSettings, state: CouplingState) -> int:
    """Why a device cannot be followed, 0 if it can."""
    why = int(0)
    if told.answered == 0:
        why = _SILENT
    elif not is_placed(told.frame, told.velocity):
        why = _NOT_FINITE
    elif state.mode != _WAITING:
        way = motion_between(state.device, told.frame)
        if wp.length(linear(way)) > settings.most_way or wp.length(angular(way)) > settings.most_turn:
            why = _JUMP
    return why


@wp.func
def let_go(state: CouplingState, mode: int, settings: CouplingSettings) -> CouplingState:
    """The force that acts now fades; the part stays."""
    state.mode = mode
    state.gain = wp.float64(0.0)
    state.faded = state.force
    state.fade_step = state.force * (settings.period / settings.fading)
    state.velocity = vec6d()
    return state


@wp.func
def taken(state: CouplingState, device: PlacedFrame) -> CouplingState:
    """The part is held from here on."""
    state.mode = _HOLDING
    state.device_taken = device
    state.grip_taken = state.grip
    state.velocity = vec6d()
    state.pull = vec6d()
    return state


@wp.func
def without_fade(fade: vec6d, step: vec6d) -> vec6d:
    """What is left of a force after one more tick."""
    left = vec6d()
    if wp.length(fade) > wp.length(step):
        left = fade - step
    return left


@wp.func
def bend_of(motion: vec6d, settings: CouplingSettings) -> wp.float64:
    """By how much gaps may be less after a motion than going on linearly says: points turn on circles, and so do faces.

    To second order in the angle, theta^2 r / 2 for a point of the part at an arm r, and theta times the way for a
    point that stands before a face of the part.
    """
    bend = wp.float64(0.0)
    if settings.security > wp.float64(0.0):
        angle = wp.length(angular(motion))
        bend = angle * (wp.float64(0.5) * angle * settings.radius + wp.length(linear(motion)))
    return bend


@wp.func
def projected(
    wanted: vec6d,
    moved: vec6d,
    metric: vec6d,
    arrays: CoupledRows,
    recovery: wp.float64,
    bend: wp.float64,
    security: wp.float64,
) -> int:
    """The allowed motion nearest to a wanted one, written to motion[0]; tells what became of it."""
    count = arrays.count[0]
    factor = mat66d()
    for k in range(6):
        factor[k, k] = wp.float64(1.0) / wp.sqrt(metric[k])
    for i in range(count):
        room = arrays.room[i]
        spared = SPARED * wp.clamp(room + security, wp.float64(0.0), security)
        if room < wp.float64(0.0):
            room = recovery * room
        arrays.need[i] = wp.max(bend - spared, wp.float64(0.0)) - room - wp.dot(arrays.rows[i], moved)
    return project_one_body(
        count, False, wanted, factor, arrays.rows, arrays.need, arrays.unit, arrays.gap, arrays.scale, arrays.pool,
        arrays.motion, arrays.impulse,
    )  # fmt: skip


@wp.func
def metric_of(state: CouplingState, settings: CouplingSettings) -> vec6d:
    """What a motion costs: m + T b + T^2 k, and what yields counts as springs do."""
    period = settings.period
    metric = vec6d()
    for k in range(6):
        springs = settings.stiffness[k] + state.load_stiffness[k]
        metric[k] = settings.mass[k] + period * (settings.damping[k] + period * springs)
    return metric


@wp.func
def load_on(moved: vec6d, state: CouplingState) -> vec6d:
    """What yields, as a spring that pushes no more than it can: its force where the part has moved so far."""
    load = state.load
    for k in range(6):
        load[k] = load[k] - state.load_stiffness[k] * moved[k]
    size = wp.length(linear(load))
    if size > state.most_load:
        for k in range(3):
            load[k] = load[k] * (state.most_load / size)
    return load


@wp.func
def coupled_motion(
    error: vec6d, velocity: vec6d, moved: vec6d, metric: vec6d, state: CouplingState, settings: CouplingSettings
) -> vec6d:
    """Where the coupling and the load take the part in a tick, without contacts."""
    period = settings.period
    wanted = vec6d()
    load = load_on(moved, state)
    for k in range(6):
        pull = settings.stiffness[k] * error[k] + settings.damping[k] * velocity[k] + load[k]
        push = settings.mass[k] * state.velocity[k] + period * pull
        wanted[k] = settings.free[k] * period * push / metric[k]
    return wanted


@wp.func
def within_reach(moved: vec6d, motion: vec6d, reach: wp.float64, radius: wp.float64) -> wp.float64:
    """How much of a motion keeps a part, that has moved already, within reach: all of it, or what bisection finds."""
    part = wp.float64(1.0)
    if way_of(moved + motion, radius) > reach:
        low = wp.float64(0.0)
        high = wp.float64(1.0)
        for _k in range(20):
            middle = wp.float64(0.5) * (low + high)
            if way_of(moved + middle * motion, radius) > reach:
                high = middle
            else:
                low = middle
        part = low
    return part


@wp.func
def pull_of(error: vec6d, velocity: vec6d, motion: vec6d, settings: CouplingSettings) -> vec6d:
    """The force on the device's image, (6.4) or (6.5), where a motion of the part leaves an error."""
    pull = vec6d()
    for k in range(6):
        damped = velocity[k]
        if settings.law != DRAG:
            damped -= motion[k] / settings.period
        pull[k] = -settings.stiffness[k] * error[k] - settings.damping[k] * damped
    return pull


@wp.func
def force_change(error: vec6d, velocity: vec6d, motion: vec6d, before: vec6d, settings: CouplingSettings) -> vec6d:
    """How a motion of the part changes the force; torques as forces at the lever."""
    change = pull_of(error - motion, velocity, motion, settings) - before
    for k in range(3):
        change[3 + k] = change[3 + k] / settings.lever
    return change


@wp.func
def gentle_part(goes_on: vec6d, turns: vec6d, most: wp.float64) -> wp.float64:
    """How much of a change of motion changes the force by no more than it may change in a tick, or by the least.

    Args:
        goes_on: change of the force where the part goes on as before.
        turns: and where it goes the new motion.
    """
    b = turns - goes_on
    square = wp.dot(b, b)
    part = wp.float64(1.0)
    if square > wp.float64(0.0):
        middle = -wp.dot(goes_on, b) / square
        spread = middle * middle - (wp.dot(goes_on, goes_on) - most * most) / square
        part = wp.clamp(middle + wp.sqrt(wp.max(spread, wp.float64(0.0))), wp.float64(0.0), wp.float64(1.0))
    return part


@wp.func
def sent_before(arrays: CoupledRows, told: int, ticks: int) -> vec6d:
    """The force that was told so many ticks before the last one; nothing before the first."""
    force = vec6d()
    number = told - 1 - ticks
    if number >= 0:
        force = arrays.sent[number % arrays.sent.shape[0]]
    return force


@wp.kernel
def tick(
    first: int,
    settings: CouplingSettings,
    told: wp.array[DeviceRecord],
    states: wp.array[CouplingState],
    arrays: CoupledRows,
):
    """One tick."""
    device = told[0]
    state = states[0]
    period = settings.period
    why = fault_of_device(device, settings, state)
    if state.mode != _WAITING and why == 0:
        work = work_on(sent_before(arrays, state.told, settings.delay), state.device, device.frame)
        state.account = after_work(state.account, work, settings.capacity)
    if state.mode != _LOST and why != 0:
        state = let_go(state, _LOST, settings)
        state.lost_why = why
    elif state.mode == _HOLDING and device.clutch != 0:
        state = let_go(state, _CLUTCHED, settings)
    elif (state.mode == _CLUTCHED or state.mode == _WAITING) and device.clutch == 0:
        state = taken(state, device.frame)
    elif state.mode == _WAITING:
        state.mode = _CLUTCHED
    state.faded = without_fade(state.faded, state.fade_step)
    force = state.faded
    if state.mode == _HOLDING:
        image = image_of(device.frame, state.device_taken, state.grip_taken, settings.scale)
        velocity = six(settings.scale * linear(device.velocity), angular(device.velocity))
        if settings.metaphor == INCREMENTAL:
            image = image_of(device.frame, state.device, state.grip, settings.scale)
            if state.gain == wp.float64(0.0):  # just taken: there was no tick before
                image = state.grip
            velocity = motion_between(state.grip, image) / period
        state.image = image
        moved = motion_between(state.base, state.grip)
        error = motion_between(state.grip, image)
        metric = metric_of(state, settings)
        wanted = coupled_motion(error, velocity, moved, metric, state, settings)
        goes = wp.min(state.most_step / wp.max(way_of(wanted, settings.radius), state.most_step), wp.float64(1.0))
        bend = bend_of(moved + goes * wanted, settings)
        recovery = RECOVERY
        status = projected(wanted, moved, metric, arrays, recovery, bend, settings.security)
        if status != _SOLVED:
            state.relaxed += 1
            recovery = wp.float64(0.0)
            bend = wp.float64(0.0)
            status = projected(wanted, moved, metric, arrays, recovery, bend, settings.security)
        motion = vec6d()
        if status == _SOLVED:
            motion = arrays.motion[0]
        way = way_of(motion, settings.radius)
        if way > state.most_step:
            # less of it would take less of what contacts ask for
            motion = motion * (state.most_step / way)
            if bend > wp.float64(0.0):
                if projected(motion, moved, metric, arrays, recovery, bend, settings.security) == _SOLVED:
                    motion = arrays.motion[0]
        # who slips off an edge would take all of the force away at once: it goes on as it went, and turns gently
        change = force_change(error, velocity, motion, state.pull, settings)
        if wp.length(change) > settings.most_change:
            same = period * state.velocity
            status = projected(same, moved, metric, arrays, wp.float64(0.0), bend, settings.security)
            if status == _SOLVED:
                same = arrays.motion[0]
                kept = force_change(error, velocity, same, state.pull, settings)
                motion = same + gentle_part(kept, change, settings.most_change) * (motion - same)
        part = within_reach(moved, motion, state.reach, settings.radius)
        if part < wp.float64(1.0):
            state.held_back += 1
            motion = part * motion
        state.grip.position = state.grip.position + linear(motion)
        state.grip.rotation = orthonormal(rotation_of(angular(motion)) * state.grip.rotation)
        state.velocity = motion / period
        error = motion_between(state.grip, image)
        state.gain = wp.min(state.gain + period / settings.fading, wp.float64(1.0))
        pull = pull_of(error, velocity, motion, settings)
        state.pull = pull
        size = wp.length(linear(pull)) + wp.length(angular(pull)) / settings.lever
        if size > settings.most_force:
            pull = pull * (settings.most_force / size)
        force = force + state.gain * six(settings.scale * linear(pull), angular(pull))
    if why == 0:
        acts = force
        if settings.delay > 0:
            acts = sent_before(arrays, state.told, settings.delay - 1)
        damping = damping_for(state.account, acts, device.velocity, settings.lever, period, settings.most_damping)
        if damping > wp.float64(0.0):
            drag = damping * six(linear(device.velocity), settings.lever * settings.lever * angular(device.velocity))
            force = force - drag
            state.account.withheld += period * wp.dot(drag, device.velocity)
            state.account.limited += 1
        state.device = device.frame
    for k in range(6):
        force[k] = force[k] * settings.forced[k]
    state.force = force
    arrays.sent[state.told % arrays.sent.shape[0]] = force
    state.told += 1
    states[0] = state
