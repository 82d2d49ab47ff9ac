"""The server: who may ask, and what the list answers."""

import http.client
import json
from urllib.parse import urlencode

import pytest
from decodes import write_run
from viewing import recordings, server, serving, viewer  # noqa: F401 - fixtures

from c4.errors import RunError
from c4.store.writer import RunWriter
from c4.tasks import AnswerReading, Grade, Verdict
from c4.view import Viewer
from c4.view.listing import EXITS, SORTS, Query, list_message, marks_message

MMLU = "model=made/task=mmlu/method=baseline"


def ask(server, path, *, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=sent)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_every_answer_says_what_the_page_may_do(server):
    for path in ("/", "/static/app.js", "/api/overview", "/nowhere", "/api/list?sort=luck"):
        answer, _ = ask(server, path)
        policy = answer.getheader("content-security-policy")
        assert "default-src 'none'; script-src 'self'" in policy, path
        assert answer.getheader("x-content-type-options") == "nosniff"
    assert ask(server, "/nowhere")[0].status == 404
    assert ask(server, "/static/..%2f..%2fpyproject.toml")[0].status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": ""},
        {"Host": "10.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "[x"},
        {"Origin": "http://[x"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "navigate"},
    ],
)
def test_foreign_pages_and_names_are_refused(server, headers):
    answer, body = ask(server, "/api/overview", **headers)
    assert answer.status == 403
    assert answer.getheader("x-content-type-options") == "nosniff"
    assert "error" in json.loads(body)


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "[::1]:8044"])
def test_a_tunnel_may_have_another_port(server, host):
    assert ask(server, "/api/overview", Host=host)[0].status == 200


def test_a_link_from_elsewhere_opens_the_page_but_asks_nothing(server):
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert ask(server, "/", **link)[0].status == 200
    assert ask(server, "/api/overview", **link)[0].status == 403


def test_beyond_loopback_nothing_is_told_without_the_token(viewer):
    with serving(viewer, host="0.0.0.0") as server:
        for path in (
            "/",
            "/api/overview",
            "/static/app.js",
            "/?token=guess",
            "/api/overview?token=",
        ):
            assert ask(server, path)[0].status == 403, path
        assert ask(server, "/api/overview", Cookie="c4-view=guess")[0].status == 403
        answer, _ = ask(server, f"/?token={server.token}")
        assert (answer.status, answer.getheader("location")) == (303, "/")
        kept = answer.getheader("set-cookie")
        assert "HttpOnly" in kept
        assert "SameSite=strict" in kept
        cookie = kept.partition(";")[0]
        assert ask(server, "/api/overview", Cookie=cookie)[0].status == 200
        # Some other site's name for this machine.
        assert ask(server, "/api/overview", Cookie=cookie, Host="evil.example")[0].status == 403
        assert server.token in server.address


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"path": "trajectory", "run": "nowhere", "t": 1}, "no run 'nowhere'"),
        ({"path": "trajectory", "run": "../..", "t": 1}, "no run '../..'"),
        ({"path": "trajectory", "run": "model=made/task=mmlu/method=baseline", "t": 99}, "no traj"),
        ({"path": "trajectory", "run": "model=made/task=mmlu/method=baseline", "t": "x"}, "whole"),
        ({"path": "trajectory", "t": 1}, "invalid request"),
        ({"path": "marks", "run": "x", "t": "one"}, "invalid request"),
        ({"path": "cohort", "run": MMLU, "gate": "os:system"}, "no gate named 'os:system'"),
        ({"path": "list", "sort": "luck"}, "no order named 'luck'"),
        ({"path": "list", "set": "cvee.tau=7", "exits": "fired"}, "tau from 0 to 1"),
        ({"path": "list", "set": "cvee.tau=oops", "exits": "fired"}, "tau"),
        ({"path": "list", "set": "os:system.x=1", "exits": "fired"}, "GATE.NAME=VALUE"),
    ],
)
def test_what_makes_no_sense_is_answered_in_words(server, question, words):
    path = question.pop("path")
    answer, body = ask(server, f"/api/{path}?{urlencode(question)}")
    assert answer.status == 400
    assert words in json.loads(body)["error"]


def test_programs_are_run_by_a_post_alone(server):
    question = urlencode({"run": "model=made/task=humaneval/method=baseline", "t": 40, "step": 1})
    assert ask(server, f"/api/grade?{question}")[0].status == 405
    refused, _ = ask(server, f"/api/grade?{question}", method="POST", Origin="http://evil.example")
    assert refused.status == 403


@pytest.mark.parametrize("step", [0, 25, 10**9])
def test_programs_are_run_at_recorded_steps_alone(server, step):
    run = "model=made/task=humaneval/method=baseline"
    question = urlencode({"run": run, "t": 40, "step": step})
    answer, body = ask(server, f"/api/grade?{question}", method="POST")
    assert answer.status == 400
    assert f"steps 1 to 24, not {step}" in json.loads(body)["error"]


def keys(found):
    return [(row["run"], row["t"]) for row in found["rows"]]


def test_the_list_comes_in_windows(viewer):
    whole = keys(list_message(viewer, Query(), 0, 500))
    assert len(whole) == 24
    pieces = [keys(list_message(viewer, Query(), start, 5)) for start in range(0, 30, 5)]
    assert [key for piece in pieces for key in piece] == whole


@pytest.mark.parametrize("gate", ["cvee", "prophet", "oracle"])
def test_filters_ask_the_gates(viewer, gate):
    every = list_message(viewer, Query(), 0, 500)
    marks = marks_message(viewer, keys(every), {})
    facts = dict(zip(keys(every), marks, strict=True))
    kinds = {kind: set() for kind in EXITS}
    for key, mark in facts.items():
        at = mark["exits"].get(gate)
        settled = mark["stabilization"]
        if at is None or at == 0:
            kinds["never"].add(key)
            continue
        kinds["fired"].add(key)
        if settled is not None:
            kinds["premature" if at < settled else "sound"].add(key)
    for kind, expected in kinds.items():
        found = list_message(viewer, Query(exits=kind, gate=gate), 0, 500)
        assert set(keys(found)) == expected, kind


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("descending", [False, True])
def test_every_order_holds_every_trajectory_once(viewer, sort, descending):
    found = list_message(viewer, Query(sort=sort, descending=descending), 0, 500)
    assert sorted(keys(found)) == sorted(keys(list_message(viewer, Query(), 0, 500)))
    if sort in ("stabilization", "exit"):
        marks = marks_message(viewer, keys(found), {})
        values = [
            m["stabilization"] if sort == "stabilization" else m["exits"].get("cvee") for m in marks
        ]
        known = [value for value in values if value]
        assert known == sorted(known, reverse=descending)
        assert not any(values[len(known) :])  # those without one come last


def test_words_are_found_wherever_they_stand(viewer):
    assert {t for _, t in keys(list_message(viewer, Query(search="PROBLEM 43"), 0, 500))} == {43}
    assert list_message(viewer, Query(search="<script>"), 0, 500)["total"] == 0
    right = list_message(viewer, Query(verdict="right", tasks=["mmlu"]), 0, 500)
    assert right["rows"]
    assert all(row["correct"] for row in right["rows"])


def test_what_is_recorded_meanwhile_appears(tmp_path):
    write_run(tmp_path, "mmlu", [1])
    viewer = Viewer(tmp_path)
    assert list_message(viewer, Query(), 0, 9)["total"] == 1
    write_run(tmp_path, "gsm8k", [1, 2])
    viewer.refresh()
    assert list_message(viewer, Query(), 0, 9)["total"] == 3


def test_what_is_graded_meanwhile_counts(tmp_path):
    folder = write_run(tmp_path, "mmlu", [1, 2])
    viewer = Viewer(tmp_path)
    (cache,) = viewer.runs.values()
    before = [row.correct for row in cache.run.rows()]
    right = Query(verdict="right")
    assert list_message(viewer, right, 0, 9)["total"] == sum(before)
    cohort = viewer.cohort(cache)
    verdicts = {True: Verdict.WRONG, False: Verdict.RIGHT}
    with RunWriter(folder) as writer:
        given = {1: Grade("B", verdicts[before[0]])}
        writer.go_on(cache.run.manifest)
        writer.add_grades(given, AnswerReading())
    viewer.refresh()
    (cache,) = viewer.runs.values()
    assert cache.row(1).correct is not before[0]
    assert list_message(viewer, right, 0, 9)["total"] == sum([not before[0], before[1]])
    assert viewer.cohort(cache) is not cohort
    kept = viewer.cohort(cache)
    viewer.refresh()  # nothing has changed since
    assert viewer.cohort(*viewer.runs.values()) is kept


def test_an_empty_folder_is_told_what_to_do(tmp_path):
    with pytest.raises(RunError, match="c4 record --task math"):
        Viewer(tmp_path)
