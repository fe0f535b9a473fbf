// Node.js in the garden: node origin.js CLEAR-PORT TLS-PORT CERT KEY; see origin.py.
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const https = require('https');
const zlib = require('zlib');

const [clear, tls, cert, key] = process.argv.slice(2);
const packed = zlib.gzipSync('packed '.repeat(100));

const odd = {
  'empty': r => { r.setHeader('Content-Length', 0); r.end(); },
  '204': r => { r.statusCode = 204; r.end(); },
  '205': r => { r.statusCode = 205; r.setHeader('Content-Length', 0); r.end(); },
  '304': r => { r.statusCode = 304; r.setHeader('ETag', '"a"'); r.end(); },
  '304-length': r => { r.statusCode = 304; r.setHeader('Content-Length', 5); r.end(); },
  '404': r => { r.statusCode = 404; r.end('gone\n'); },
  'chunked': r => { r.write('hello'); r.end(' world'); },
  'trailers': r => {
    if (r.req.method === 'HEAD') return r.end();
    r.setHeader('Trailer', 'X-Sum');
    r.write('hello');
    r.addTrailers({'X-Sum': '5'});
    r.end();
  },
  'gzip': r => { r.setHeader('Content-Encoding', 'gzip'); r.end(packed); },
  'close': r => { r.removeHeader('Transfer-Encoding'); r.setHeader('Connection', 'close'); r.write('until '); r.end('the end'); },
  'partial': r => { r.statusCode = 206; r.setHeader('Content-Range', 'bytes 0-4/11'); r.end('hello'); },
  'like-an-answer': r => { r.end('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfoo\n'); },
  'empty-chunked': r => { r.setHeader('Transfer-Encoding', 'chunked'); r.end(); },
  'hints': r => { r.writeEarlyHints({link: '</a>; rel=preload'}); r.end('hello'); },
};

function serve(request, response) {
  const kind = request.url.split('/answer-')[1];
  if (kind === '413') {
    response.writeHead(413, {'Content-Length': 5, 'Connection': 'close'});
    response.end('large');
    return;
  }
  const pieces = [];
  request.on('data', piece => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces);
    const digest = crypto.createHash('sha256').update(body).digest('hex');
    fs.appendFileSync(process.env.GARDEN_LOG, JSON.stringify([request.method, request.url, body.length, digest]) + '\n');
    if (odd[kind]) odd[kind](response);
    else response.end(`${request.method} ${request.url} ${body.length} ${digest}\n`);
  });
}

http.createServer(serve).listen(clear, '127.0.0.1');
https.createServer({cert: fs.readFileSync(cert), key: fs.readFileSync(key)}, serve).listen(tls, '127.0.0.1');
