"""A stand-in of S3, which pyarrow's own client speaks to."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class ObjectStore(ThreadingHTTPServer):
    """Objects by key: put whole or in parts, read whole or in ranges, list, delete."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ObjectHandler)
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def end(self) -> None:
        self.shutdown()
        self.server_close()


def environment_of(endpoint: str) -> dict[str, str]:
    """Return the variables by which pyarrow's client finds this S3, whose keys are any."""
    named = {"AWS_ENDPOINT_URL": endpoint, "AWS_EC2_METADATA_DISABLED": "true"}
    return named | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}


class ObjectHandler(BaseHTTPRequestHandler):
    server: ObjectStore
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _say(self, code: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        told = {"Content-Length": str(len(content)), "ETag": '"1"'} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return unquote(parts.path).strip("/"), query

    def _body(self) -> bytes:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return content
        found, rest = b"", content
        while (match := re.match(rb"([0-9a-fA-F]+)[^\r]*\r\n", rest)) and (size := int(match[1], 16)):
            found, rest = found + rest[match.end() : match.end() + size], rest[match.end() + size + 2 :]
        return found

    def do_HEAD(self) -> None:
        key, _ = self._asked()
        if "/" not in key:
            self._say(200)
        elif key in self.server.objects:
            size = str(len(self.server.objects[key]))
            self._say(200, Content_Length=size, Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT")
        else:
            self._say(404)

    def do_GET(self) -> None:
        key, query = self._asked()
        if "list-type" in query:
            return self._list(key, query)
        if key not in self.server.objects:
            words = b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
            return self._say(404, words, Content_Type="application/xml")
        content = self.server.objects[key]
        if found := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or ""):
            first, last = int(found[1]), min(int(found[2]), len(content) - 1)
            told = f"bytes {first}-{last}/{len(content)}"
            return self._say(206, content[first : last + 1], Content_Range=told)
        return self._say(200, content)

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys, folders = [], set()
        for key in sorted(self.server.objects):
            name = key.removeprefix(f"{bucket}/")
            rest = name.removeprefix(prefix)
            if not name.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                keys.append((name, len(self.server.objects[key])))
        told = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><LastModified>2026-01-01T00:00:00.000Z"
            "</LastModified></Contents>"
            for name, size in keys
        )
        told += "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders))
        count = f"<KeyCount>{len(keys) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>"
        words = (
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>{count}{told}</ListBucketResult>"
        )
        self._say(200, words.encode(), Content_Type="application/xml")

    def do_POST(self) -> None:
        key, query = self._asked()
        self._body()
        bucket, _, name = key.partition("/")
        about = f"<Bucket>{bucket}</Bucket><Key>{escape(name)}</Key>"
        if "uploads" in query:
            number = str(len(self.server.parts))
            self.server.parts[number] = {}
            kind, about = "InitiateMultipartUploadResult", f"{about}<UploadId>{number}</UploadId>"
        elif "uploadId" in query:
            parts = self.server.parts[query["uploadId"]]
            self.server.objects[key] = b"".join(parts[part] for part in sorted(parts))
            kind, about = "CompleteMultipartUploadResult", f'{about}<ETag>"1"</ETag>'
        else:
            kind, about = "DeleteResult", ""
        self._say(200, f"<{kind}>{about}</{kind}>".encode(), Content_Type="application/xml")

    def do_PUT(self) -> None:
        key, query = self._asked()
        content = self._body()
        if "partNumber" in query:
            self.server.parts[query["uploadId"]][int(query["partNumber"])] = content
        elif "/" in key:
            self.server.objects[key] = content
        self._say(200)

    def do_DELETE(self) -> None:
        self.server.objects.pop(self._asked()[0], None)
        self._say(204)
