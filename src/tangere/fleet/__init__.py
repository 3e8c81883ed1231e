"""Fleets: thousands of jobs on many processes or machines, each answered once, whatever happens to workers."""

from tangere.fleet.jobs import Jobs, job_columns
from tangere.fleet.part_store import JobTools
from tangere.fleet.ray_pool import RayCluster
from tangere.fleet.report import FleetReport
from tangere.fleet.runner import run

__all__ = [
    "FleetReport",
    "JobTools",
    "Jobs",
    "RayCluster",
    "job_columns",
    "run",
]
