import fs from "node:fs";
import got from "got";

const [method, url, file] = process.argv.slice(2);
const headers = {Authorization: "Bearer " + process.env.KEY};
if (process.env.EXPECT) headers.Expect = "100-continue";
if (file) Object.assign(headers, {"Content-Type": "application/octet-stream", "Content-Length": fs.statSync(file).size});
const answer = got.stream(url, {method, headers, body: file && fs.createReadStream(file), throwHttpErrors: false, retry: {limit: 0}});
let status;
answer.on("response", (head) => { status = head.statusCode; });
answer.pipe(process.stdout);
answer.on("end", () => console.error("status", status));
