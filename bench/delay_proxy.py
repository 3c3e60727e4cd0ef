#!/usr/bin/env python3
"""A network that takes its time: delay_proxy.py MILLISECONDS FROM TO [FROM TO]...

Passes connections to the socket FROM on to the socket TO, files both. What goes either way arrives half of the time
later, so that a question and its answer take all of it. It says "ready" when all listen, and ends with SIGTERM.
"""
import asyncio
import os
import signal
import sys


async def pump(reader, writer, delay):
    """What comes in together goes out together, and what follows does not wait for it."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue()

    async def deliver():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    delivery = asyncio.ensure_future(deliver())
    try:
        while data := await reader.read(1 << 20):
            queue.put_nowait((loop.time() + delay, data))
    except ConnectionError:
        pass
    queue.put_nowait((loop.time() + delay, b""))
    await asyncio.gather(delivery, return_exceptions=True)


async def main(delay, pairs):
    def meet(to):
        async def connected(reader, writer):
            other_reader, other_writer = await asyncio.open_unix_connection(to, limit=1 << 22)
            await asyncio.gather(pump(reader, other_writer, delay), pump(other_reader, writer, delay))

        return connected

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    for at, to in pairs:
        await asyncio.start_unix_server(meet(to), at, limit=1 << 22)
        os.chmod(at, 0o777)
    print("ready", flush=True)
    await stop.wait()


asyncio.run(main(float(sys.argv[1]) / 2000, list(zip(sys.argv[2::2], sys.argv[3::2]))))
