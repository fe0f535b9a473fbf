import sys

import boto3
from botocore import UNSIGNED
from botocore.config import Config

s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1", config=Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}))
s3.put_object(Bucket="bucket", Key="key", Body=b"content")
print(s3.get_object(Bucket="bucket", Key="key")["Body"].read().decode())
