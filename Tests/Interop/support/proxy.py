"""A TCP proxy that cuts connections: at given numbers of bytes from the client, or where the answer to them should come."""

import asyncio


class CuttingProxy:
    """Passes everything on to a port of this machine, until the bytes that clients have sent reach the next cut."""

    def __init__(self, target, cuts=(), rate=None):
        # A cut is an offset into all that clients send, and whether what is behind it gets there and only the answer is lost.
        self.target = target
        self.cuts = sorted(cuts)
        self.sent = 0
        self.made = 0
        self.port = None
        # How many bytes a second get through; all there are if None.
        self.rate = rate
        self.tasks = set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def stop(self):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def serve(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            await self.pass_on(reader, writer)
        finally:
            self.tasks.discard(task)
            writer.transport.abort()

    async def pass_on(self, reader, writer):
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return
        loses_answer = asyncio.Event()

        async def client_to_server():
            while data := await reader.read(64 << 10):
                while self.cuts and self.sent + len(data) >= self.cuts[0][0]:
                    offset, only_answer = self.cuts.pop(0)
                    self.made += 1
                    if only_answer:
                        loses_answer.set()
                        continue
                    keep = data[: max(0, offset - self.sent)]
                    self.sent += len(keep)
                    upstream_writer.write(keep)
                    await upstream_writer.drain()
                    # What has got there is to be read there before the end of the connection is noticed.
                    await asyncio.sleep(0.02)
                    raise ConnectionAbortedError
                self.sent += len(data)
                upstream_writer.write(data)
                await upstream_writer.drain()
                if self.rate:
                    await asyncio.sleep(len(data) / self.rate)
            upstream_writer.write_eof()

        async def server_to_client():
            while data := await upstream_reader.read(64 << 10):
                if loses_answer.is_set():
                    raise ConnectionAbortedError
                writer.write(data)
                await writer.drain()
            # The server has ended it.
            raise ConnectionAbortedError

        tasks = [asyncio.ensure_future(client_to_server()), asyncio.ensure_future(server_to_client())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            upstream_writer.transport.abort()
