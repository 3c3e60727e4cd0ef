#!/usr/bin/env python3
"""A network that fails at a given word: failing_proxy.py FROM TO HEX cut|hang

Passes connections to the socket FROM on to the socket TO, files both, until a client says the bytes HEX. Then that
connection is cut at both ends, or nothing passes on it any more, neither way. It says "ready" when it listens and
"failed" when it has done so, and ends with SIGTERM.
"""
import asyncio
import os
import signal
import sys


async def main(at, to, word, way):
    async def connected(reader, writer):
        other_reader, other_writer = await asyncio.open_unix_connection(to)
        failed = asyncio.Event()

        async def pump(source, target, watched):
            said = b""
            while data := await source.read(65536):
                said = said[-len(word):] + data if watched else b""
                if watched and word in said:
                    print("failed", flush=True)
                    failed.set()
                if failed.is_set():
                    if way == "cut":
                        break
                    await asyncio.Event().wait()
                target.write(data)
                await target.drain()
            for each in (writer, other_writer):
                each.close()

        await asyncio.gather(pump(reader, other_writer, True), pump(other_reader, writer, False), return_exceptions=True)

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await asyncio.start_unix_server(connected, at)
    os.chmod(at, 0o777)
    print("ready", flush=True)
    await stop.wait()
    os._exit(0)  # what waits for ever is not asked


asyncio.run(main(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]), sys.argv[4]))
