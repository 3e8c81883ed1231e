"""Scenes leave the library: a file in the format that its name ends in."""

from tangere.scene.export.formats import FORMATS, check_export_file, export

__all__ = ["FORMATS", "check_export_file", "export"]
