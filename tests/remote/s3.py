"""An S3 store in memory for the tests: objects, ranges, conditions and multipart uploads.

It checks the signature (AWS Signature Version 4) of every request by an implementation of its own, and the
checksums that come with parts."""
import hashlib
import hmac
import itertools
import pathlib
import re
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from crc32c import crc32c

KEYS = {"TESTKEY": "secret/of+the=test", "NEWKEY": "another/secret"}
TOKENS = {"TESTKEY": None, "NEWKEY": "session-token-of-the-test"}
REGION = "eu-test-1"


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def encode(text, safe=""):
    return urllib.parse.quote(text, safe="-._~" + safe)


def signature_error(request):
    """Why a request is not signed well, as S3 names it; None: it is."""
    text = request.headers.get("Authorization")
    if not text:
        return "AccessDenied"
    match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                         r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})", text)
    if not match:
        return "AuthorizationHeaderMalformed"
    key, day, region, signed, signature = match.groups()
    if key not in KEYS:
        return "InvalidAccessKeyId"
    if TOKENS[key] and request.headers.get("x-amz-security-token") != TOKENS[key]:
        return "InvalidToken"
    if region != REGION:
        return "AuthorizationHeaderMalformed"
    names = signed.split(";")
    needed = {"host"} | {name.lower() for name in request.headers.keys() if name.lower().startswith("x-amz-")}
    if not needed <= set(names) or names != sorted(names):
        return "SignatureDoesNotMatch"
    path, _, query = request.path.partition("?")
    pairs = sorted((encode(urllib.parse.unquote(name)), encode(urllib.parse.unquote(value)))
                   for name, _, value in (item.partition("=") for item in query.split("&") if item))
    body = request.headers.get("x-amz-content-sha256", "")
    if body != "UNSIGNED-PAYLOAD" and body != hashlib.sha256(request.body).hexdigest():
        return "XAmzContentSHA256Mismatch"
    canonical = "\n".join([request.command, encode(urllib.parse.unquote(path), "/"),
                           "&".join(f"{name}={value}" for name, value in pairs),
                           *(f"{name}:{' '.join(request.headers[name].split())}" for name in names), "", signed, body])
    when = request.headers["x-amz-date"]
    scope = f"{day}/{region}/s3/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", when, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    secret = ("AWS4" + KEYS[key]).encode()
    for part in (day, region, "s3", "aws4_request"):
        secret = mac(secret, part)
    return None if hmac.compare_digest(mac(secret, to_sign).hex(), signature) else "SignatureDoesNotMatch"


class Store:
    def __init__(self, folder):
        self.folder = folder
        self.objects, self.uploads = {}, {}
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)

    def answer(self, request):
        why = signature_error(request)
        if why and not request.plain.startswith("/bucket/public/"):
            headers = [("x-amz-bucket-region", REGION)] if why == "AuthorizationHeaderMalformed" else []
            self.fail(request, 400 if headers else 403, why, headers)
            return
        key = urllib.parse.unquote(request.plain)[len("/bucket/"):]
        query = dict(urllib.parse.parse_qsl(request.query, keep_blank_values=True))
        file = self.folder / key.removeprefix("public/")
        with self.lock:
            if key not in self.objects and file.is_file():      # what is in the folder is there from the beginning
                self.objects[key] = (file.read_bytes(), '"of-%s"' % hashlib.md5(key.encode()).hexdigest())
            getattr(self, "do_" + request.command)(request, key, query)
        if request.stuck:       # the object is there, but nobody is told for long
            time.sleep(20)
            request.lose_reply()

    def fail(self, request, status, code, headers=()):
        request.reply(status, [("Content-Type", "application/xml"), *headers],
                      f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>".encode())

    def xml(self, request, text):
        request.reply(200, [("Content-Type", "application/xml")], ("<?xml version=\"1.0\"?>" + text).encode())

    # ---- objects ----

    def do_GET(self, request, key, query):
        if "uploads" in query:
            self.list_uploads(request, query)
            return
        if key not in self.objects:
            self.fail(request, 404, "NoSuchKey")
            return
        data, etag = self.objects[key]
        if request.headers.get("If-Match") not in (None, etag):
            self.fail(request, 412, "PreconditionFailed", [("ETag", etag)])
            return
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range") or "")
        if not match:
            request.reply(200, [("ETag", etag)], data)
            return
        first, last = int(match[1]), min(int(match[2]), len(data) - 1)
        if first >= len(data):
            self.fail(request, 416, "InvalidRange", [("Content-Range", f"bytes */{len(data)}")])
            return
        request.reply(206, [("ETag", etag), ("Content-Range", f"bytes {first}-{last}/{len(data)}")],
                      data[first:last + 1])

    def do_HEAD(self, request, key, query):
        if key not in self.objects:
            request.reply(404)
            return
        data, etag = self.objects[key]
        request.reply(200, [("ETag", etag), ("Content-Length", str(len(data)))])

    def do_PUT(self, request, key, query):
        claimed = request.headers.get("x-amz-checksum-crc32c")
        if claimed and len(request.body) < 1 << 16:     # more would take too long here
            import base64
            if base64.b64decode(claimed) != crc32c(request.body).to_bytes(4, "big"):
                self.fail(request, 400, "BadDigest")
                return
        etag = '"%s"' % hashlib.md5(request.body).hexdigest()
        if "partNumber" in query:
            upload = self.uploads.get(query.get("uploadId"))
            if not upload or upload["key"] != key:
                self.fail(request, 404, "NoSuchUpload")
                return
            if "partfail" in request.switches and \
                    request.server.state.count("partfail") < int(request.switches["partfail"]):
                self.fail(request, 503, "SlowDown")
                return
            upload["parts"][int(query["partNumber"])] = (etag, request.body)
        elif request.headers.get("If-None-Match") == "*" and key in self.objects:
            self.fail(request, 412, "PreconditionFailed")
            return
        else:
            self.objects[key] = (request.body, etag)
            if "lost" in request.switches and request.server.state.count("lost put") < 1:
                request.lose_reply()
                return
        request.reply(200, [("ETag", etag)], b"<Thanks/>" if "thanks" in request.switches else b"")

    # ---- uploads ----

    def begin(self, key):
        number = f"upload-{next(self.numbers)}"
        self.uploads[number] = {"key": key, "parts": {}}
        return number

    def do_POST(self, request, key, query):
        if "uploads" in query:
            number = self.begin(key)
            self.xml(request, f"<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>{escape(key)}</Key>"
                              f"<UploadId>{number}</UploadId></InitiateMultipartUploadResult>")
            return
        self.complete(request, key, query)

    def complete(self, request, key, query):
        upload = self.uploads.get(query.get("uploadId"))
        if not upload:
            self.fail(request, 404, "NoSuchUpload")
            return
        if request.headers.get("If-None-Match") == "*" and key in self.objects:
            self.fail(request, 412, "PreconditionFailed")
            return
        listed = re.findall(r"<PartNumber>(\d+)</PartNumber>\s*<ETag>(.*?)</ETag>", request.body.decode())
        data = []
        for i, (number, etag) in enumerate(listed):
            found = upload["parts"].get(int(number))
            if not found or found[0] != etag.replace("&quot;", '"'):
                self.fail(request, 400, "InvalidPart")
                return
            if len(found[1]) < 5 << 20 and i + 1 < len(listed):
                self.fail(request, 400, "EntityTooSmall")
                return
            data.append(found[1])
        if "completefail" in request.switches and request.server.state.count("complete") < 1:
            self.xml(request, "<Error><Code>InternalError</Code></Error>")      # 200 with an error: S3 does that
            return
        sums = b"".join(hashlib.md5(part).digest() for part in data)        # as AWS does it
        etag = '"%s-%d"' % (hashlib.md5(sums).hexdigest(), len(listed))
        self.objects[key] = (b"".join(data), etag)
        del self.uploads[query["uploadId"]]
        if "stuck" in request.switches and request.server.state.count("stuck " + key.rpartition("/")[0]) < 1:
            request.stuck = True
            return
        if "lost" in request.switches and request.server.state.count("lost complete") < 1:
            request.lose_reply()
            return
        self.xml(request, f"<CompleteMultipartUploadResult><Key>{escape(key)}</Key><ETag>{escape(etag)}</ETag>"
                          "</CompleteMultipartUploadResult>")

    def do_DELETE(self, request, key, query):
        if "uploadId" in query:
            if self.uploads.pop(query["uploadId"], None) is None:
                self.fail(request, 404, "NoSuchUpload")
                return
        else:
            self.objects.pop(key, None)
        request.reply(204)

    def list_uploads(self, request, query):
        found = sorted((u["key"], number) for number, u in self.uploads.items()
                       if u["key"].startswith(query.get("prefix", "")))
        begin = 0
        if "upload-id-marker" in query:
            begin = found.index((query["key-marker"], query["upload-id-marker"])) + 1
        page, rest = found[begin:begin + 2], found[begin + 2:]
        more = ""
        if rest:
            more = (f"<NextKeyMarker>{escape(page[-1][0])}</NextKeyMarker>"
                    f"<NextUploadIdMarker>{page[-1][1]}</NextUploadIdMarker>")
        self.xml(request, "<ListMultipartUploadsResult>" +
                 f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>{more}" +
                 "".join(f"<Upload><Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
                         "<Initiated>2020-01-02T03:04:05.000Z</Initiated></Upload>" for key, number in page) +
                 "</ListMultipartUploadsResult>")
