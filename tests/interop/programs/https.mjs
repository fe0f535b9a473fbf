import fs from "node:fs";
import https from "node:https";

const [method, url, file] = process.argv.slice(2);
const headers = {Authorization: "Bearer " + process.env.KEY};
if (process.env.EXPECT) headers.Expect = "100-continue";
const request = https.request(url, {method, headers}, (answer) => {
  answer.on("data", (piece) => fs.writeSync(1, piece));
  answer.on("end", () => console.error("status", answer.statusCode));
});
const send = () => (file ? fs.createReadStream(file).pipe(request) : request.end());
if (process.env.EXPECT) request.on("continue", send).flushHeaders(); else send();
