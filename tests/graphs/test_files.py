import functools
import hashlib
import http.server
import threading

import pytest

from hyperboloid.errors import InputError
from hyperboloid.graphs.files import find

CONTENT = b"some data\n"
MD5 = hashlib.md5(CONTENT).hexdigest()
NOBODY_LISTENS = "http://127.0.0.1:9/some/file.txt"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HYPERBOLOID_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache" / "hyperboloid"


def put(folder, content=CONTENT):
    path = folder / "some" / "file.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def server(tmp_path):
    """The address of a local web server, and the folder that it serves."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    root = tmp_path / "server"
    root.mkdir()
    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", root
        httpd.shutdown()
        thread.join()


def test_order_is_option_then_environment_then_cache(tmp_path, monkeypatch, cache):
    option, environment, cached = put(tmp_path / "option"), put(tmp_path / "environment"), put(cache)
    assert find("some/file.txt", MD5, None) == cached
    monkeypatch.setenv("HYPERBOLOID_DATA", str(tmp_path / "environment"))
    assert find("some/file.txt", MD5, None) == environment
    assert find("some/file.txt", MD5, None, tmp_path / "option") == option
    assert find("some/file.txt", MD5, None, tmp_path / "empty") == cached


def test_another_checksum_names_file_and_both_sums(tmp_path):
    path = put(tmp_path / "data", b"tampered")
    with pytest.raises(InputError) as caught:
        find("some/file.txt", MD5, None, tmp_path / "data")
    for part in (str(path), MD5, hashlib.md5(b"tampered").hexdigest()):
        assert part in str(caught.value)


@pytest.mark.parametrize("url", [None, NOBODY_LISTENS])
def test_absent_and_offline_says_what_to_put_where(tmp_path, cache, url):
    with pytest.raises(InputError) as caught:
        find("some/file.txt", MD5, url, tmp_path / "data")
    message = str(caught.value)
    for part in (MD5, str(tmp_path / "data/some/file.txt"), str(cache / "some/file.txt"), "--data-dir"):
        assert part in message
    assert "\n" not in message
    assert not (tmp_path / "data").exists()


def test_download_goes_to_the_cache_and_is_used_again(server, tmp_path, cache):
    address, root = server
    original = put(root)
    (tmp_path / "data").mkdir()
    path = find("some/file.txt", MD5, f"{address}/some/file.txt", tmp_path / "data")
    assert path == cache / "some/file.txt"
    assert path.read_bytes() == CONTENT
    original.unlink()
    assert find("some/file.txt", MD5, f"{address}/some/file.txt") == path
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize("content", [b"a login page", None])
def test_a_bad_download_leaves_nothing(server, cache, content):
    address, root = server
    if content is not None:
        put(root, content)
    with pytest.raises(InputError, match=MD5):
        find("some/file.txt", MD5, f"{address}/some/file.txt")
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_unwritable_cache(tmp_path, monkeypatch):
    (tmp_path / "blocked").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    with pytest.raises(InputError, match="cannot write to the cache folder"):
        find("some/file.txt", MD5, NOBODY_LISTENS)
