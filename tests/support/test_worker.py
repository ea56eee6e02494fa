"""The worker process: what passes through, what is contained, and that it always comes back."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hkc.support import reproducer, worker
from hkc.support.errors import HkcBug, HkcError, HkcUsageError


@pytest.fixture(autouse=True)
def bug_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HKC_BUG_DIR", str(tmp_path))
    return tmp_path


def test_a_call_runs_in_another_process_that_stays():
    first = worker.call("os:getpid")
    assert first != os.getpid()
    assert worker.call("os:getpid") == first


def test_large_arguments_and_results_pass():
    content = os.urandom(5_000_000)
    assert worker.call("operator:concat", content, b"!") == content + b"!"


def test_the_users_errors_pass_through_and_leave_nothing(bug_folder):
    with pytest.raises(HkcUsageError) as caught:
        worker.call("hkc.support.llvm:emit", "", "gfx000")
    assert caught.value.diagnostics[0].code == "HK652"
    with pytest.raises(HkcError, match="empty"):
        worker.call("hkc.machine.elf:Elf", b"")
    assert not list(bug_folder.iterdir())


def test_a_crash_is_a_bug_with_a_reproducer_and_the_next_call_works(bug_folder):
    before = worker.call("os:getpid")
    with pytest.raises(HkcBug, match="the worker died of SIGABRT") as caught:
        worker.call("os:abort", replay={"kernel.mlir": "module {}"})
    folder = caught.value.reproducer
    assert folder.parent == bug_folder and re.fullmatch("hkc-bug-[0-9a-f]{12}", folder.name)
    assert (folder / "kernel.mlir").read_text() == "module {}"
    report = (folder / "report.txt").read_text()
    assert "Fatal Python error: Aborted" in report
    assert f"python -m hkc.support.worker_main --replay {folder}" in report
    assert worker.call("os:getpid") not in (before, os.getpid())


@pytest.mark.parametrize(
    ("target", "args", "words"),
    [
        ("os:_exit", (3,), "the worker left with 3"),
        ("signal:raise_signal", (int(signal.SIGSEGV),), "the worker died of SIGSEGV"),
        ("operator:truediv", (1, 0), "ZeroDivisionError"),
        ("hkc.support.nowhere:nothing", (), "ModuleNotFoundError"),
        ("threading:Lock", (), "the answer can't be sent"),
    ],
)
def test_every_other_end_is_a_bug(target, args, words):
    with pytest.raises(HkcBug, match=words):
        worker.call(target, *args)
    assert worker.call("operator:add", 1, 2) == 3


def test_the_same_failure_gets_the_same_folder(bug_folder):
    for _ in range(2):
        with pytest.raises(HkcBug):
            worker.call("operator:truediv", 1, 0)
    assert len(list(bug_folder.iterdir())) == 1


def test_an_unwritable_folder_is_no_reason_to_lose_the_reproducer(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HKC_BUG_DIR", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    with pytest.raises(HkcBug) as caught:
        worker.call("operator:truediv", 1, 0)
    assert caught.value.reproducer.parent == tmp_path / "elsewhere"


def test_a_time_out_says_where_the_worker_hung():
    hung = worker.call("os:getpid")
    with pytest.raises(HkcBug, match=r"no answer after 0\.3 seconds") as caught:
        worker.call("signal:pause", timeout=0.3)  # which ends by a signal only
    with pytest.raises(ProcessLookupError):
        os.kill(hung, 0)
    assert "_outcome" in caught.value.details
    assert worker.call("operator:add", 1, 2) == 3


def test_stray_output_can_not_spoil_the_answers():
    assert worker.call("os:write", 1, b"\0" * 100_000) == 100_000
    assert worker.call("builtins:print", "to stdout") is None
    assert worker.call("operator:add", 1, 2) == 3


def test_a_report_quotes_the_output_of_its_own_call_only():
    worker.call("os:write", 2, b"of an earlier call")
    with pytest.raises(HkcBug) as caught:
        worker.call("os:_exit", 3)
    assert "earlier" not in caught.value.details


def test_threads_share_the_worker():
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda i: worker.call("operator:mul", i, i), range(200))) == [i * i for i in range(200)]


def test_the_worker_outlives_the_thread_that_started_it():
    worker.shutdown()
    thread = threading.Thread(target=worker.call, args=("os:getpid",))
    thread.start()
    thread.join()
    time.sleep(0.1)
    pid = worker.call("os:getpid")
    assert worker.call("os:getpid") == pid


def test_start_imports_ahead_and_survives_a_module_that_can_not_be_imported():
    worker.shutdown()
    worker.start("hkc.machine.codeobject", "hkc.support.nowhere")
    assert worker.call("builtins:eval", "'hkc.machine.codeobject' in __import__('sys').modules")
    assert worker.call("operator:add", 1, 2) == 3


def test_a_call_inside_the_worker_stays_there():
    nested = "__import__('hkc.support.worker', fromlist=['call']).call('os:getpid')"
    assert worker.call("builtins:eval", nested) == worker.call("os:getpid")


def test_shutdown_ends_the_process():
    pid = worker.call("os:getpid")
    worker.shutdown()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def run(script: str, *, check: bool = True) -> str:
    """The output of a Python script that may use hkc."""
    environment = os.environ | {"PYTHONPATH": str(Path(worker.__file__).parents[2])}
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, env=environment, check=check
    )
    return ran.stdout + ran.stderr


def wait_for_end(pid: int) -> None:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":  # ended; its new parent hasn't looked yet
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} still runs")


def test_the_worker_dies_with_a_killed_parent():
    words = run(
        """
        import os
        from hkc.support import worker
        print(worker.call("os:getpid"), flush=True)
        os.kill(os.getpid(), 9)
        """,
        check=False,
    )
    wait_for_end(int(words.split()[0]))


def test_a_forked_child_gets_its_own_worker():
    words = run(
        """
        import os
        from hkc.support import worker
        parent = worker.call("os:getpid")
        if os.fork() == 0:
            child = worker.call("os:getpid")
            worker.shutdown()
            os._exit(0 if child != parent else 1)
        _, status = os.wait()
        print(status, worker.call("os:getpid") == parent)
        """
    )
    assert words.split() == ["0", "True"]


def test_the_worker_finds_what_the_caller_finds(tmp_path):
    (tmp_path / "only_here.py").write_text("def answer():\n    return 42\n")
    words = run(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from hkc.support import worker
        print(worker.call("only_here:answer"))
        """)
    assert words.strip() == "42"


def test_the_caller_imports_neither_mlir_nor_llvm():
    words = run("""
        import sys
        from hkc.machine.disassemble import disassemble
        print(disassemble(bytes.fromhex("000081bf"), "gfx942", 0)[0].text)
        loaded = open("/proc/self/maps").read()
        print("libLLVM" in loaded, "TorchMLIR" in loaded, "torch_mlir" in sys.modules)
        """)
    assert words.splitlines() == ["s_endpgm", "False False False"]


def replay(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(worker.__file__).parents[2])}
    command = reproducer.command(folder).split()
    return subprocess.run([sys.executable, *command[1:]], capture_output=True, text=True, env=environment, check=False)


def test_a_saved_call_replays():
    with pytest.raises(HkcBug) as caught:
        worker.call("hkc.support.llvm:emit", "no IR at all", "gfx942")
    again = replay(caught.value.reproducer)
    assert again.returncode == HkcBug.exit_code
    assert "expected top-level entity" in again.stderr


def test_a_saved_call_may_use_hkc_only(tmp_path):
    with pytest.raises(HkcBug) as caught:
        worker.call("os:_exit", 0)
    assert replay(caught.value.reproducer).returncode == HkcUsageError.exit_code
    assert replay(tmp_path / "nowhere").returncode == HkcError.exit_code
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / reproducer.CALL).write_bytes(b"cos\nsystem\n(S'echo evil'\ntR.")
    again = replay(evil)
    assert again.returncode == HkcUsageError.exit_code
    assert "evil" not in again.stdout
