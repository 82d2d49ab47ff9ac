"""Programs that look for the expected answer."""

from hostile._program import Hostile, Kind

LOOK = (
    "import re\n"
    "found = []\n"
    "def look(text): found.extend(re.findall('71' + r'\\d{10}', text))\n"
    "def answer():\n"
    "    try: search()\n"
    "    except Exception: pass\n"
    "    return int(found[0]) if found else None\n"
)
THIEVES = {
    "frames and garbage": (
        "import gc, sys\n"
        "def everything():\n"
        "    for frame in list(sys._current_frames().values()):\n"
        "        while frame:\n"
        "            yield frame.f_locals, frame.f_globals, frame.f_code.co_consts\n"
        "            frame = frame.f_back\n"
        "    yield from gc.get_objects()\n"
        "def search():\n"
        "    for thing in everything():\n"
        "        try: text = repr(thing)\n"
        "        except Exception: continue\n"
        "        look(text)\n"
    ),
    "trace and profile": (
        "import sys, threading\n"
        "def trace(frame, event, argument):\n"
        "    look(repr((frame.f_locals, frame.f_code.co_consts, argument)))\n"
        "    return trace\n"
        "def search():\n"
        "    sys.settrace(trace); sys.setprofile(trace)\n"
        "    for depth in (1, 2):\n"
        "        try: sys._getframe(depth).f_trace = trace\n"
        "        except ValueError: pass\n"
        "    threading.settrace(trace)\n"
        "search()\n"
    ),
    "audit hook": (
        "import sys\n"
        "sys.addaudithook(lambda event, arguments: look(repr(arguments)))\n"
        "def search(): pass\n"
    ),
    "descriptors, files and arguments": (
        "import os, sys\n"
        "def search():\n"
        "    look(repr((sys.argv, sys.orig_argv, dict(os.environ))))\n"
        "    for fd in range(256):\n"
        "        try: look(os.pread(fd, 2**20, 0).decode(errors='replace'))\n"
        "        except OSError: pass\n"
        "    for folder, _, names in os.walk('.'):\n"
        "        for name in names: look(open(os.path.join(folder, name)).read())\n"
    ),
    "the stack": (
        "import inspect\n"
        "def search():\n"
        "    for record in inspect.stack():\n"
        "        look(repr((record.frame.f_locals, record.frame.f_code.co_consts)))\n"
    ),
    "a traceback": (
        "import sys\n"
        "def search():\n"
        "    try: raise ValueError\n"
        "    except ValueError: frame = sys.exc_info()[2].tb_frame\n"
        "    while frame:\n"
        "        look(repr((frame.f_locals, frame.f_code.co_consts)))\n"
        "        frame = frame.f_back\n"
    ),
    "memory": (
        "import ctypes, os\n"
        "def search():\n"
        "    for line in open('/proc/self/maps'):\n"
        "        place, rights = line.split()[:2]\n"
        "        first, last = (int(x, 16) for x in place.split('-'))\n"
        "        if rights.startswith('rw'):\n"
        "            try: text = ctypes.string_at(first, min(last - first, 2**24))\n"
        "            except Exception: continue\n"
        "            look(text.decode('latin-1'))\n"
    ),
}
"""Ways to look for a number that only the tests know."""

THEFTS = [
    Hostile(Kind.THEFT, name, LOOK + thief, "assert answer() == 710293847561\n",
            "def answer(): return 710293847561")
    for name, thief in THIEVES.items()
]  # fmt: skip
