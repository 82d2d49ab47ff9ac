"""Object stores as storage, such as `s3://bucket/runs`.

Needs the extra `c4-dlm[cloud]` and a store with conditional puts, such as S3, Google's or Azure's.
Credentials come from the environment, as for the store's own tools. Messages never repeat a
credential, and quote only the code and the reason of a store's answer.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from typing import Any

from c4.errors import ConfigError, RunError
from c4.store.locations import ObjectPath

RETRY_SECONDS = 60.0
"""Seconds for which a request is tried again while a store cannot be reached or is busy."""
RETRY_VARIABLE = "C4_RETRY_SECONDS"
"""Environment variable that overrides `RETRY_SECONDS`."""
SETTINGS = ("AWS_", "AZURE_", "GOOGLE_", RETRY_VARIABLE)
"""Prefixes of the environment variables that configure access to a store."""
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT")
"""Environment variables that name a server other than the vendor's own."""
BRIEF = timedelta(seconds=5)
"""Timeout for connecting to a server."""


def list_folder(folder: ObjectPath) -> tuple[dict[ObjectPath, int], list[ObjectPath]]:
    """List the objects directly below a folder with their sizes, and its folders, in order."""
    with _explained(folder) as obstore:
        found = obstore.list_with_delimiter(_store(folder), folder.key or None)
    sizes = {_address(folder, entry["path"]): int(entry["size"]) for entry in found["objects"]}
    folders = {_address(folder, path) for path in found["common_prefixes"]}
    return dict(sorted(sizes.items())), sorted(folders)


def list_files(folder: ObjectPath) -> list[ObjectPath]:
    """List the objects directly below a folder, in order."""
    return list(list_folder(folder)[0])


def list_folders(folder: ObjectPath) -> list[ObjectPath]:
    """List the folders in a folder, in order."""
    return list_folder(folder)[1]


def size_of(path: ObjectPath) -> int | None:
    """Return an object's size in bytes; None if it does not exist."""
    with _explained(path) as obstore, suppress(FileNotFoundError):
        return int(obstore.head(_store(path), path.key)["size"])
    return None


def read(path: ObjectPath, at_most: int | None = None) -> bytes:
    """Return an object's bytes, or the first `at_most`; raise FileNotFoundError if missing."""
    with _explained(path) as obstore:
        store = _store(path)
        if at_most is None:
            return bytes(obstore.get(store, path.key).bytes())
        end = min(at_most, int(obstore.head(store, path.key)["size"]))
        return bytes(obstore.get_range(store, path.key, start=0, end=end)) if end else b""


def put_file(path: ObjectPath, data: bytes) -> None:
    """Put an object atomically, replacing any of that name."""
    with _explained(path, writing=True) as obstore:
        # One request: an interrupted multipart upload would leave parts behind that cost money.
        obstore.put(_store(path), path.key, data, use_multipart=False)


note_file = put_file


def put_once(path: ObjectPath, data: bytes) -> bool:
    """Put an object unless one of that name exists. Returns whether it was put."""
    with _explained(path, writing=True) as obstore:
        try:
            obstore.put(_store(path), path.key, data, mode="create")
        except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError):
            return False
    return True


def sign_once(path: ObjectPath, signature: bytes) -> bool:
    """Put a signature unless the object exists. Returns whether the object holds the signature.

    A response may be lost and a request repeated, so the object is read back before the caller is
    told that another process was first.
    """
    failure: RunError | None = None
    try:
        if put_once(path, signature):
            return True
    except RunError as error:
        failure = error
    try:
        is_own = read(path) == signature
    except FileNotFoundError:
        is_own = False
    if failure and not is_own:
        raise failure
    return is_own


def remove_files(paths: Iterable[ObjectPath]) -> None:
    """Delete objects, whether or not they are still there."""
    by_bucket: dict[str, list[ObjectPath]] = {}
    for path in paths:
        by_bucket.setdefault(path.bucket, []).append(path)
    for some in by_bucket.values():
        with _explained(some[0], writing=True) as obstore:
            try:
                obstore.delete(_store(some[0]), [path.key for path in some])
            except FileNotFoundError:  # some stores stop at the first missing object
                for path in some:
                    with suppress(FileNotFoundError):
                        obstore.delete(_store(path), path.key)


def _address(folder: ObjectPath, key: str) -> ObjectPath:
    return ObjectPath(*folder.parts[:2], *key.split("/"))


def _store(path: ObjectPath) -> Any:
    scheme, bucket = path.parts[0].removesuffix(":"), path.parts[1]
    settings = frozenset(item for item in os.environ.items() if item[0].startswith(SETTINGS))
    return _open_store(scheme, bucket, settings)


@cache
def _open_store(scheme: str, bucket: str, settings: frozenset[tuple[str, str]]) -> Any:
    """Open a bucket with the settings of the environment."""
    from obstore.store import AzureStore, GCSStore, S3Store

    seconds = timedelta(seconds=retry_seconds())
    options: dict[str, Any] = {
        "client_options": {"timeout": timedelta(seconds=60), "connect_timeout": BRIEF},
        "retry_config": {"retry_timeout": seconds, "max_retries": 100},
    }
    if any(name in ENDPOINTS and value.startswith("http://") for name, value in settings):
        # A server without TLS is used only if the user has named one.
        options["client_options"]["allow_http"] = True
    if scheme == "s3":
        return S3Store(bucket, **options, **_profile())
    return GCSStore(bucket, **options) if scheme == "gs" else AzureStore(bucket, **options)


def _profile() -> dict[str, Any]:
    """Return credentials of ~/.aws if the environment has none and boto3 is installed."""
    if "AWS_ACCESS_KEY_ID" in os.environ or find_spec("boto3") is None:
        return {}
    from boto3.session import Session
    from obstore.auth.boto3 import Boto3CredentialProvider

    session = Session()
    has_some = session.get_credentials() is not None
    return {"credential_provider": Boto3CredentialProvider(session)} if has_some else {}


def retry_seconds() -> float:
    """Return how long to retry requests, from the environment or by default."""
    text = os.environ.get(RETRY_VARIABLE, "")
    try:
        seconds = float(text) if text else RETRY_SECONDS
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise ConfigError(f"{RETRY_VARIABLE}={text}: give a number of seconds from 0 to 86400")
    return seconds


@contextmanager
def _explained(path: ObjectPath, *, writing: bool = False) -> Iterator[Any]:
    """Yield obstore and turn its errors into c4's; a missing object stays FileNotFoundError."""
    try:
        import obstore
    except ImportError:
        raise ConfigError(
            f"{path}: object stores need an extra: pip install 'c4-dlm[cloud]'"
        ) from None
    try:
        yield obstore
    except FileNotFoundError as error:
        if writing or NO_BUCKET.search(str(error)):
            raise RunError(f"{path}: {_reason(path, error)}") from None
        raise FileNotFoundError(str(path)) from None
    except (obstore.exceptions.BaseError, OSError, ValueError) as error:
        raise RunError(f"{path}: {_reason(path, error)}") from None


CODE = re.compile(r"<Code>(\w+)</Code>\s*<Message>([^<]*)</Message>")
STATUS = re.compile(r"non-2xx status code: (\d{3} [A-Z][\w ]*)")
NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|specified bucket does not exist")
KINDS: Mapping[str, str] = {
    NO_BUCKET.pattern: "there is no such bucket; create it, or check the address",
    "dns error|failed to lookup": "the host of the store is not known; check its address",
    "Connection refused|ConnectionRefused|code: 111": "nothing listens at the address of the store",
    "kind: Timeout|timed out|TimedOut": "the store does not answer; check its address and network",
    "kind: Connect": "the store cannot be reached; check its address and the network",
    "Could not parse path": "an object store takes no such name; choose another",
}
"""Reasons to report, by regular expressions for the library's messages."""
LONGEST_REASON = 200
SECRET = re.compile("KEY|SECRET|TOKEN|PASSWORD|SIGNATURE|SAS|CREDENTIAL", re.IGNORECASE)
"""Environment variables whose values are removed from messages if a store repeats them."""
NO_CREDENTIALS = re.compile(
    r"169\.254\.169\.254|/latest/(api/token|meta-data)|metadata\.google|metadata/identity|"
    r"Account must be specified|CredentialProvider|token endpoint"
)
"""Addresses and phrases in the library's errors when the environment holds no credentials."""
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""Environment variables that usually hold the credentials of a store."""


def _reason(path: ObjectPath, error: Exception) -> str:
    """Return the reason of an error, without addresses, which may contain secrets."""
    text = str(error)
    if NO_CREDENTIALS.search(text):
        usual = CREDENTIALS[path.parts[0].removesuffix(":")]
        return f"the environment holds no credentials for this store, such as {usual}"
    for pattern, reason in KINDS.items():
        if re.search(pattern, text):
            return reason
    if answer := CODE.search(text):
        said = answer[2].partition("\n")[0]
        for name, value in os.environ.items():
            if SECRET.search(name) and len(value) >= 4:
                said = said.replace(value, "…")
        return f"the store answers {answer[1]}: {said[:LONGEST_REASON]}"
    if status := STATUS.search(text):
        return f"the store answers {status[1].strip()}; check the credentials in the environment"
    kind = type(error).__name__.removesuffix("Error")
    return f"the store cannot be used ({kind}); check its address, the credentials and the network"
