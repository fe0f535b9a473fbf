const fs = require("node:fs");
const axios = require("axios");

const [method, url, file] = process.argv.slice(2);
const headers = {Authorization: "Bearer " + process.env.KEY};
// Which it would call a form.
if (file) Object.assign(headers, {"Content-Type": "application/octet-stream", "Content-Length": fs.statSync(file).size});
const how = {method, url, headers, responseType: "stream", validateStatus: () => true, maxBodyLength: Infinity, maxRedirects: file ? 0 : 5};
axios({...how, data: file && fs.createReadStream(file)}).then((answer) => {
  answer.data.on("data", (piece) => fs.writeSync(1, piece));
  answer.data.on("end", () => console.error("status", answer.status));
});
