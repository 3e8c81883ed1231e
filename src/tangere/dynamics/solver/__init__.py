"""Solvers of the frictional contact problem at velocity level: sweeps, interior point, projections of one body."""

from tangere.dynamics.solver.api import Solver, SolverReport
from tangere.dynamics.solver.block_cholesky import mat66d
from tangere.dynamics.solver.one_body import (
    INFEASIBLE,
    SOLVED,
    UNFINISHED,
    OneBodyMotion,
    OneBodyProjection,
    project_one_body,
)
from tangere.dynamics.solver.problem import (
    ContactRowArrays,
    JointRowArrays,
    RigidBodyArrays,
    contact_frame,
    contact_rows,
    frames,
    joint_rows,
    mat36d,
    reserve,
    rigid_bodies,
    vec6d,
)

__all__ = [
    "INFEASIBLE",
    "SOLVED",
    "UNFINISHED",
    "ContactRowArrays",
    "JointRowArrays",
    "OneBodyMotion",
    "OneBodyProjection",
    "RigidBodyArrays",
    "Solver",
    "SolverReport",
    "contact_frame",
    "contact_rows",
    "frames",
    "joint_rows",
    "mat36d",
    "mat66d",
    "project_one_body",
    "reserve",
    "rigid_bodies",
    "vec6d",
]
