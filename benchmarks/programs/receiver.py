"""An OpenLineage backend that takes every event at once: answers 201, counts, and forgets.

Prints its port, then serves until it is ended. ``GET /`` gives how many events came so far.
"""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


class Receiver(BaseHTTPRequestHandler):
    """Takes events over connections that stay open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    events: ClassVar[list[None]] = []

    def do_POST(self) -> None:
        """Read the event to its end, as any backend must before the connection can take the next."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        else:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.events.append(None)
        self._answer(201, b"")

    def do_GET(self) -> None:
        """Tell how many events came."""
        self._answer(200, str(len(self.events)).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
