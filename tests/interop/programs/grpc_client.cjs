const fs = require("node:fs");
const grpc = require("@grpc/grpc-js");

const [target, roots] = process.argv.slice(2);
const client = new grpc.Client(target, grpc.credentials.createSsl(roots ? fs.readFileSync(roots) : null));
const same = (bytes) => bytes;
client.makeUnaryRequest("/demo.Demo/Ask", same, same, Buffer.from("hello"), {deadline: Date.now() + 20000}, (error, answer) => {
  if (error) throw error;
  console.log("heard: " + answer);
  client.close();
});
