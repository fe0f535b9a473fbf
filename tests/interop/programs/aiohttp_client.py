import asyncio
import os
import sys

import aiohttp


async def main(method, url, file=None):
    headers = {"Authorization": "Bearer " + os.environ["KEY"]}
    if os.environ.get("EXPECT"):
        headers["Expect"] = "100-continue"
    # What it reads of the environment, it reads only when it is told to.
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.request(method, url, data=open(file, "rb") if file else None, headers=headers) as answer:
            async for piece in answer.content.iter_any():
                sys.stdout.buffer.write(piece)
                sys.stdout.flush()
            print("status", answer.status, file=sys.stderr)

asyncio.run(main(*sys.argv[1:]))
