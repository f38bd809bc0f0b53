"""A server and those who attach: other users, signals, a log that nobody reads, a file that is cut."""
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

from system import MIB, Skip, noise, open_program, run_tests, test, write_safetensors

NOBODY, SOMEBODY = 65534, 65533
CONFINED = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}     # which needs what a confined process has given up


def command(user, *arguments):
    """The tool as that user; None: as ourselves."""
    if user is None:
        return [open_program(), *arguments]
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("only root, with setpriv, can become somebody else")
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", open_program(), *arguments]


class Server:
    """tenon serve, from when it is ready to the end of the block."""

    def __init__(self, folder, *options, user=None, size=MIB):
        self.file, self.socket, self.log = (os.path.join(folder, name) for name in ("file.safetensors", "socket", "log"))
        write_safetensors(self.file, {"t": noise(size)})
        os.chmod(folder, 0o777)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command(user, "serve", self.file, "--socket", self.socket, *options), stderr=log, env=CONFINED)
        for _ in range(600):
            if "offered to" in self.said():
                return
            time.sleep(0.05)
        raise AssertionError(f"not ready: {self.said()}")

    def said(self):
        with open(self.log) as log:
            return log.read()

    def attach(self, *options, user=None, code=0):
        done = subprocess.run(command(user, "attach", self.socket, *options), capture_output=True, text=True,
                              timeout=60, env=CONFINED)
        assert done.returncode == code, f"exit {done.returncode}, expected {code}: {done.stderr}"
        return done.stdout if code == 0 else done.stderr

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@test
def other_users_are_kept_out(folder):
    with Server(folder) as server:
        assert "Permission denied" in server.attach(user=NOBODY, code=3)
        assert "1 tensor," in server.attach()


@test
def other_users_than_those_named_are_refused_and_told_so(folder):
    with Server(folder, "--allow-uid", str(SOMEBODY)) as server:
        assert f"user {NOBODY} may not attach here" in server.attach(user=NOBODY, code=3)
        assert "1 tensor," in server.attach(user=SOMEBODY)
        assert f"user {NOBODY} may not attach here" in server.said()


@test
def members_of_a_group_that_is_named_may_attach(folder):
    with Server(folder, "--allow-gid", str(NOBODY)) as server:
        assert "1 tensor," in server.attach(user=NOBODY)
        assert "may not attach here" in server.attach(user=SOMEBODY, code=3)


@test
def what_a_stranger_offers_is_not_taken(folder):
    os.chmod(folder, 0o777)
    with Server(folder, "--allow-uid", str(SOMEBODY), user=NOBODY) as server:
        assert "not trusted" in server.attach(user=SOMEBODY, code=2)
        assert "1 tensor," in server.attach("--allow-uid", str(NOBODY), user=SOMEBODY)


@test
def each_signal_that_asks_to_stop_is_an_ordinary_end(folder):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with Server(folder) as server:
            assert server.stop(number) == 0, server.said()
            assert not os.path.exists(server.socket)


@test
def a_server_whose_log_nobody_reads_goes_on(folder):
    with Server(folder) as server:
        path = server.socket + "2"
        reading, writing = os.pipe()
        process = subprocess.Popen(command(None, "serve", server.file, "--socket", path), stderr=writing, env=CONFINED)
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        server.socket = path
        try:
            for _ in range(3):
                server.attach("--verify")
        finally:
            process.terminate()
        assert process.wait(timeout=60) == 0


def fill(pipe):
    """Until not a byte goes into it; whoever else writes to it waits, as before."""
    os.set_blocking(pipe, False)
    for size in (4096, 1):
        try:
            while os.write(pipe, b"x" * size):
                pass
        except BlockingIOError:
            pass
    os.set_blocking(pipe, True)


@test
def a_server_whose_log_is_full_goes_on_and_stops(folder):
    with Server(folder) as server:
        path = server.socket + "2"
        reading, writing = os.pipe()
        process = subprocess.Popen(command(None, "serve", server.file, "--socket", path), stderr=writing, env=CONFINED)
        try:
            said = b""
            while b"offered to" not in said or not said.endswith(b"\n"):
                said += os.read(reading, 4096)
            fill(writing)
            server.socket = path
            for _ in range(3):
                server.attach("--verify")
            process.terminate()
            assert process.wait(timeout=60) == 0 and not os.path.exists(path)
        finally:
            process.kill()
            process.wait()
            os.close(reading)
            os.close(writing)


@test
def a_file_that_is_cut_under_those_who_have_it_in_place_is_an_error(folder):
    with Server(folder, "--in-place") as server:
        assert "1 tensor," in server.attach("--in-place")
        os.truncate(server.file, MIB // 2)
        said = server.attach("--in-place", "--verify", code=1)
        assert "file.safetensors" in said, said


SILENT = 3000


class Crowd:
    """So many connections that say nothing, made while the block runs; all stay open to its end."""

    def __init__(self, path):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most[1] != resource.RLIM_INFINITY and most[1] < SILENT + 100:
            raise Skip(f"this process may have {most[1]} descriptors only (ulimit -Hn)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (SILENT + 100, most[1]))
        self.path, self.sockets, self.refused = path, [], None
        self.thread = threading.Thread(target=self.come)

    def come(self):
        try:
            for _ in range(SILENT):
                self.sockets.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                self.sockets[-1].settimeout(60)
                self.sockets[-1].connect(self.path)
        except OSError as problem:
            self.refused = problem

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join()
        for each in self.sockets:
            each.close()


def attach_among(server, crowd, user=None, options=()):
    """Attaches again and again until all have come, and some times more; says how long it took."""
    times, most = [], 0
    while crowd.thread.is_alive() or len(times) < 5:
        began = time.monotonic()
        assert "1 tensor," in server.attach(*options, user=user)
        times.append(time.monotonic() - began)
        most = max(most, len(os.listdir(f"/proc/{server.process.pid}/fd")))
    assert not crowd.refused and len(crowd.sockets) == SILENT, f"{len(crowd.sockets)} came: {crowd.refused}"
    assert most < 300, f"the server had {most} descriptors open"
    return f"{len(times)} attached among {SILENT}, within {max(times):.2f} s; {most} descriptors"


@test
def three_thousand_silent_connections_of_the_same_user_keep_nobody_out(folder):
    with Server(folder) as server, Crowd(server.socket) as crowd:
        return attach_among(server, crowd)


@test
def three_thousand_silent_connections_of_the_same_user_keep_no_other_user_out(folder):
    with Server(folder, "--allow-uid", str(NOBODY)) as server, Crowd(server.socket) as crowd:
        return attach_among(server, crowd, user=NOBODY)


@test
def three_thousand_silent_connections_of_another_user_keep_nobody_of_that_user_out(folder):
    with Server(folder, "--allow-uid", str(os.geteuid()), user=NOBODY) as server, \
            Crowd(server.socket) as crowd:
        return attach_among(server, crowd, options=["--allow-uid", str(NOBODY)])


@test
def a_connection_that_says_nothing_is_closed_after_a_second(folder):
    with Server(folder) as server, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        began = time.monotonic()
        silent.connect(server.socket)
        silent.settimeout(60)
        assert silent.recv(100) == b""
        took = time.monotonic() - began
        assert 0.9 < took < 4, took         # the patience for those who speak is 5
        assert "said nothing" in server.said(), server.said()


def confinement_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return next((line.split()[1] for line in status if line.startswith("Seccomp:")), None)


@test
def who_attaches_is_confined_before_the_first_byte_is_read(folder):
    built = subprocess.run([open_program(), "version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if "confinement: libseccomp" not in built or confinement_of("self") is None:
        raise Skip("this build or kernel has no seccomp")
    path = os.path.join(folder, "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen()
        for options in ([], ["--verify"], ["--in-place"], ["-o", os.path.join(folder, "new.zt")]):
            client = subprocess.Popen(command(None, "attach", path, *options), stderr=subprocess.PIPE,
                                      env=CONFINED, text=True)
            with server.accept()[0] as connection:
                assert connection.recv(4096)[:4] == b"TNSH"         # it has said hello and waits
                until = time.monotonic() + 4
                while confinement_of(client.pid) != "2" and time.monotonic() < until:
                    time.sleep(0.01)
                assert confinement_of(client.pid) == "2", confinement_of(client.pid)
            assert "hung up" in client.communicate(timeout=60)[1] and client.returncode == 1


for number in (signal.SIGINT, signal.SIGHUP):           # a background job may have been told to ignore them, and the tool would too
    signal.signal(number, signal.SIG_DFL)
run_tests()
