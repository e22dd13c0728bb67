// A tool server that adds numbers and speaks the revision 2026-07-28 and no other, with version 2 of the protocol's own SDK:
// adder.mjs [PORT], over HTTP or else on standard input and output.

import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function adder() {
    const server = new McpServer({ name: 'adder', version: '1.0.0' });
    const about = { description: 'Adds two numbers.', inputSchema: z.object({ a: z.number(), b: z.number() }) };
    server.registerTool('add', about, ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }));
    return server;
}

const only = { legacy: 'reject' };
const port = process.argv[2];
if (port) {
    const handler = toNodeHandler(createMcpHandler(adder, only));
    const log = (request) => console.log(`"${request.method} ${request.url}"`);
    createServer(handler).on('request', log).listen(Number(port), '127.0.0.1');
} else {
    serveStdio(adder, only);
}
