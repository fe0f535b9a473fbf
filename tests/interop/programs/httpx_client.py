import os
import sys

import httpx

http2 = sys.argv[1] == "h2"
method, url, *file = sys.argv[1 + http2:]
headers = {"Authorization": "Bearer " + os.environ["KEY"]}
with httpx.Client(http2=http2, follow_redirects=True, timeout=60) as client:
    with client.stream(method, url, content=open(file[0], "rb") if file else None, headers=headers) as answer:
        for piece in answer.iter_bytes():
            sys.stdout.buffer.write(piece)
            sys.stdout.flush()
print("status", answer.status_code, file=sys.stderr)
