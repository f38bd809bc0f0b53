#!/usr/bin/env python3
"""server.py FOLDER [CERTIFICATE]: serves the files of FOLDER on a free port of 127.0.0.1, which it prints; with a file
that has a certificate and its key, by https.

Faults are switches in the path, each a segment that begins with "~", before the name of the file:

    /~delay=50/model.safetensors     every reply comes 50 ms later
    ~fail=503x2      the first two requests of a path are answered with 503
    ~cut=1000x2      the first two replies end after 1000 bytes of their body
    ~reset=1000x2    the same, with a reset of the connection
    ~silence=x1      the first request is never answered
    ~slow=100        100 bytes per second
    ~short ~long     fewer or more bytes than the range has, with a length to match
    ~wrongrange      another range than that asked for
    ~norange         always the whole file
    ~noetag ~weak    no ETag and no time, or a weak ETag
    ~change=3        from the third request of a path on it has another ETag
    ~grow=3          from the third request on it is longer
    ~to=URL          a redirect to it (%-encoded), ~loop to itself
    ~headers ~xml    very long, or an error with odd XML
    ~encoded         Content-Encoding: gzip
    ~need=TEXT       401 without the header "Authorization: TEXT"
    ~endless=404     this status, and a body that never ends; ~endless=headers: header lines that never end
    ~ticket=3        a redirect to a place that answers three requests and then 403
    ~empty           200 without a body
    ~replaced        the first reply of a path is cut after 1000 bytes and has another ETag and other bytes
    ~lost            an object is written, but the first reply to that is lost
    ~stuck           the same, and the connection stays open for long
    ~partfail=2      the first two parts that are sent are answered with 503
    ~thanks          the reply to a part has a body
    ~lifetime=60     credentials that expire in so many seconds

The paths /bucket/... are an S3 store in memory, which checks every signature (s3.py).  Of files that begin with
"api/" and "/ORG/REPO/resolve/" the hub is made: see run.  GET /_log returns what was asked for since the last time,
as JSON: method, path, range, headers, status, and when each request came and was answered."""
import hashlib
import json
import pathlib
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import s3  # noqa: E402


class State:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.lock = threading.Lock()
        self.log = []
        self.counts = {}
        self.store = s3.Store(self.folder)

    def count(self, key):
        """How often this was called with the key before."""
        with self.lock:
            n = self.counts.get(key, 0)
            self.counts[key] = n + 1
            return n


def state_number(state):
    return state.count("number")


def switches_of(path):
    """The switches of a path as a dict, and the path without them."""
    found, rest = {}, []
    for segment in path.split("/"):
        if segment.startswith("~"):
            name, _, value = urllib.parse.unquote(segment[1:]).partition("=")
            found[name] = value
        else:
            rest.append(segment)
    return found, "/".join(rest)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *ignored):
        pass

    # ---- replying ----

    def note(self, status):
        if self.entry is not None:
            self.entry["status"] = status
            self.entry["end"] = time.monotonic()

    def reply(self, status, headers=(), body=b""):
        """One reply with faults of its body."""
        self.note(status)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        length = len(body)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(body)
        self.note(status)

    def send_body(self, body):
        for name in ("cut", "reset"):
            if name in self.switches:
                at, times = self.switches[name].split("x")
                if self.number < int(times):
                    self.wfile.write(body[:int(at)])
                    self.wfile.flush()
                    if name == "reset":
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    self.connection.close()
                    return
        if "slow" in self.switches:
            rate = int(self.switches["slow"])
            for at in range(0, len(body), max(rate // 10, 1)):
                self.wfile.write(body[at:at + max(rate // 10, 1)])
                self.wfile.flush()
                time.sleep(0.1)
            return
        self.wfile.write(body)
        self.wfile.flush()

    # ---- requests ----

    def handle_any(self):
        state = self.server.state
        came = time.monotonic()
        self.entry = None
        self.stuck = False
        path, _, self.query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length) if length else b""
        if path == "/_log":
            with state.lock:
                log, state.log = state.log, []
            self.switches, self.number = {}, 0
            self.reply(200, [("Content-Type", "application/json")], json.dumps(log).encode())
            return
        if path == "/_object":
            self.switches, self.number = {}, 0
            self.reply(200, body=state.store.objects[urllib.parse.unquote(self.query)][0])
            return
        if path == "/_begin":
            self.switches, self.number = {}, 0
            self.reply(200, body=state.store.begin(urllib.parse.unquote(self.query)).encode())
            return
        self.switches, self.plain = switches_of(path)
        self.number = state.count(path)
        self.entry = {"method": self.command, "path": path, "query": self.query, "range": self.headers.get("Range"),
                      "headers": dict(self.headers.items()), "begin": came, "end": came, "status": 0}
        with state.lock:
            state.log.append(self.entry)
        if "delay" in self.switches:
            time.sleep(int(self.switches["delay"]) / 1000)
        try:
            self.answer()
        except (BrokenPipeError, ConnectionResetError, ValueError, OSError):
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

    def answer(self):
        s = self.switches
        if "silence" in s and self.number < int(s["silence"][1:]):
            time.sleep(15)
            self.close_connection = True
            return
        if "fail" in s:
            status, _, times = s["fail"].partition("x")
            if self.number < int(times or 1 << 30):
                self.reply(int(status), [("Retry-After", "0")], b"<Error><Code>SlowDown</Code></Error>")
                return
        if "endless" in s:
            self.send_endless(s["endless"])
            return
        if "ticket" in s:
            place = "/~place=%sx%s%s" % (s["ticket"], state_number(self.server.state), self.plain)
            self.reply(302, [("Location", place)])
            return
        if "place" in s and self.number >= int(s["place"].split("x")[0]):
            self.reply(403)
            return
        if "empty" in s:
            self.reply(200)
            return
        if "need" in s and self.headers.get("Authorization") != s["need"]:
            self.reply(401)
            return
        if "loop" in s:
            self.reply(302, [("Location", self.path)])
            return
        if "to" in s:
            self.reply(302, [("Location", s["to"])])
            return
        if "xml" in s:
            self.reply(404, [("Content-Type", "application/xml")],
                       b"<?xml?><!-- <Code> --><Error><Code>" + b"A" * 100000 + b"\x1b[31m<Code></Code>&lt;</Error>")
            return
        hub = re.fullmatch(r"/org/repo/resolve/(main|v1)/(.*)", self.plain)
        if hub:
            self.plain = "/set/" + hub[2]
        if self.plain.startswith("/bucket/") or self.plain == "/bucket":
            self.server.state.store.answer(self)
            return
        if not self.send_identity():
            self.send_file()

    def lose_reply(self):
        """What was asked for is done, but nobody is told."""
        self.note(0)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def send_endless(self, what):
        """Until the other side goes away."""
        head, piece = f"HTTP/1.1 {what} X\r\n\r\n", b"no" * 32768
        if what == "headers":
            head, piece = "HTTP/1.1 206 X\r\n", b"X-More: and more\r\n" * 100
        if what == "100":
            head, piece = "", b"HTTP/1.1 102 X\r\n\r\n" * 100
        self.close_connection = True
        self.wfile.write(head.encode())
        while True:
            self.wfile.write(piece)

    def send_identity(self):
        """Services that give credentials; False: the path is none of theirs."""
        new = {"AccessKeyId": "NEWKEY", "SecretAccessKey": s3.KEYS["NEWKEY"], "Token": s3.TOKENS["NEWKEY"],
               "Expiration": "2099-01-02T03:04:05Z"}
        if "lifetime" in self.switches:
            end = time.time() + int(self.switches["lifetime"])
            new["Expiration"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
        if self.plain == "/latest/api/token" and self.command == "PUT":
            self.reply(200, body=b"metadata-token")
        elif self.plain.startswith("/latest/") and self.headers.get("X-aws-ec2-metadata-token") != "metadata-token":
            self.reply(401)
        elif self.plain == "/latest/meta-data/iam/security-credentials/":
            self.reply(200, body=b"a role")
        elif self.plain == "/latest/meta-data/iam/security-credentials/a%20role":
            self.reply(200, body=json.dumps({"Code": "Success"} | new).encode())
        elif self.plain == "/container":
            known = self.headers.get("Authorization") == "container-token"
            self.reply(200 if known else 403, body=json.dumps(new).encode())
        elif self.plain == "/sts/":
            query = dict(urllib.parse.parse_qsl(self.query))
            known = query.get("WebIdentityToken") == "web+token/of=test" and query.get("RoleArn") == "arn:a:role/x"
            self.reply(200 if known else 403, body=(
                "<R><Credentials><AccessKeyId>NEWKEY</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s"
                "</SessionToken><Expiration>2099-01-02T03:04:05Z</Expiration></Credentials></R>"
                % (s3.KEYS["NEWKEY"], s3.TOKENS["NEWKEY"])).encode())
        else:
            return False
        return True

    # ---- files ----

    def send_file(self):
        state, s = self.server.state, self.switches
        name = urllib.parse.unquote(self.plain.lstrip("/"))
        path = (state.folder / name).resolve()
        if state.folder not in path.parents or not path.is_file():
            self.reply(404, body=b"no such file")
            return
        stat = path.stat()
        size = stat.st_size
        etag = '"%s"' % hashlib.md5(f"{name}{size}{stat.st_mtime_ns}".encode()).hexdigest()
        if "change" in s and self.number + 1 >= int(s["change"]):
            etag = '"another"'
        etag = "W/" + etag if "weak" in s else etag
        grown = "grow" in s and self.number + 1 >= int(s["grow"])
        wanted = self.headers.get("If-Match")
        headers = [("ETag", etag), ("Last-Modified", self.date_time_string(stat.st_mtime)), ("Accept-Ranges", "bytes")]
        if "noetag" in s:
            headers = []
        if "replaced" in s and self.number == 0:
            headers[0] = ("ETag", '"before"')
        if wanted is not None and (wanted != etag or "weak" in s) and "grow" not in s:
            self.reply(412, headers)
            return
        headers += [("Content-Encoding", "gzip")] if "encoded" in s else []
        headers += [("X-Long-%d" % i, "x" * 8000) for i in range(10)] if "headers" in s else []
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        with open(path, "rb") as file:
            if not match or "norange" in s:
                self.reply(200, headers, file.read())
                return
            first, last = int(match[1]), min(int(match[2] or size), size - 1)
            if first >= size:
                self.reply(416, headers + [("Content-Range", f"bytes */{size}")])
                return
            file.seek(first)
            body = file.read(last - first + 1)
        if "replaced" in s and self.number == 0:
            self.switches["cut"] = "1000x1"
            body = body.replace(b"model", b"MODEL")
        body = body[:len(body) // 2] if "short" in s else body
        body = body + b"more" if "long" in s else body
        first += 8 if "wrongrange" in s else 0
        self.reply(206, headers + [("Content-Range", f"bytes {first}-{last}/{size + (1000 if grown else 0)}")], body)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *ignored):
        pass                    # clients that went away


def main():
    server = Server(("127.0.0.1", 0), Handler)
    server.state = State(sys.argv[1])
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
