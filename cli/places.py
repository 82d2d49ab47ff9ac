"""How commands take places: where runs are kept may be an object store, other files are local."""

from typing import Any

from c4.errors import RunError
from c4.store.locations import Location, parse_local_path, parse_location

ANY_PLACE: dict[str, Any] = {"parser": parse_location, "metavar": "PATH"}
"""For an option that takes a folder or an address such as s3://bucket/runs."""
LOCAL_PLACE: dict[str, Any] = {"parser": parse_local_path, "metavar": "PATH"}
"""For an option that takes a file or folder of this machine."""
RUNS_HELP = "Folder that holds all runs, or its address, such as s3://bucket/runs."


def require_folder(place: Location) -> None:
    """Refuse a place that is not there, where finding nothing would look like good news."""
    from c4.store.runs import refuse_file
    from c4.store.storage import folder_exists

    refuse_file(place)
    if not folder_exists(place):
        raise RunError(f"{place}: no such folder")


def nothing_found(place: Location, wanted: str) -> RunError:
    """The error where a place holds nothing that is wanted, or is not there at all.

    Args:
        wanted: what it says of a place that is there, such as `nothing below runs to draw from`.
    """
    from c4.store.storage import file_exists, folder_exists

    start = "start with: c4 record --task math"
    if folder_exists(place) or file_exists(place):
        return RunError(f"{wanted}; {start}")
    if place.suffix == ".parquet":  # as `c4 import` writes it
        return RunError(f"{place}: no such file")
    return RunError(f"{place}: no such folder; {start}")
