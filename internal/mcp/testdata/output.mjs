// Calls a function that has an output schema, which the SDK checks, until it is refused over the quota.
const [pkg, version, url] = process.argv.slice(2);
let sdk;
if (pkg === 'sdk') {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  sdk = { Client, StreamableHTTPClientTransport };
} else {
  sdk = await import('@modelcontextprotocol/client');
}
const negotiation = pkg === 'client' && version >= '2026' ? { versionNegotiation: { mode: { pin: version } } } : {};
const client = new sdk.Client({ name: 'output', version: '1' }, negotiation);
await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { 'toolgrant-user': 'ann', 'toolgrant-chat': 'output' } } }));
for (let cursor; ;) {
  const page = await client.listTools(cursor && { cursor });
  cursor = page.nextCursor;
  if (!cursor) break;
}
for (let i = 0; ; i++) {
  const result = await client.callTool({ name: 'docs__measure', arguments: {} });
  if (result.isError) {
    if (result.structuredContent.reason !== 'CALL_REASON_QUOTA_EXHAUSTED') throw new Error(JSON.stringify(result));
    break;
  }
  if (result.structuredContent.meters !== 3 || i > 3) throw new Error(JSON.stringify(result));
}
console.log('all as the schema says');
process.exit(0);
