import os
import sys

import requests

method, url, *file = sys.argv[1:]
headers = {"Authorization": "Bearer " + os.environ["KEY"]}
answer = requests.request(method, url, data=open(file[0], "rb") if file else None, headers=headers, stream=True)
# Not iter_content, which waits for whole pieces of what is not chunked.
for piece in answer.raw.stream(65536):
    sys.stdout.buffer.write(piece)
    sys.stdout.flush()
print("status", answer.status_code, file=sys.stderr)
