#!/usr/bin/env python3
"""A network that fails at a given word: failing_proxy.py FROM TO HEX cut|hang [request|answer BYTES]

Passes connections to the socket FROM on to the socket TO, files both, until a client says the bytes HEX. Then that
connection is cut at both ends, or nothing passes on it any more, neither way. With BYTES it fails later: when so many
have passed, of what the client says from then on, or of what it is answered. It says "ready" when it listens and
"failed" when it has done so, and ends with SIGTERM.
"""
import asyncio
import os
import signal
import sys


async def main(at, to, word, way, watched, left):
    async def connected(reader, writer):
        other_reader, other_writer = await asyncio.open_unix_connection(to)
        said, failed = asyncio.Event(), asyncio.Event()

        async def pump(source, target, side):
            before, passing = b"", left
            while data := await source.read(65536):
                if side == "request" and not said.is_set():
                    before = before[-len(word):] + data
                    if word in before:
                        said.set()
                if failed.is_set():
                    break
                if said.is_set() and side == watched:
                    data, passing = data[:passing], passing - len(data)
                target.write(data)
                await target.drain()
                if passing < 0:
                    print("failed", flush=True)
                    failed.set()
                    break
            if failed.is_set() and way == "hang":
                await asyncio.Event().wait()
            for each in (writer, other_writer):
                each.close()

        await asyncio.gather(pump(reader, other_writer, "request"), pump(other_reader, writer, "answer"), return_exceptions=True)

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await asyncio.start_unix_server(connected, at)
    os.chmod(at, 0o777)
    print("ready", flush=True)
    await stop.wait()
    os._exit(0)  # what waits for ever is not asked


side, count = sys.argv[5:] or ("request", "0")
asyncio.run(main(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]), sys.argv[4], side, int(count)))
