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
