// A client of the official TypeScript SDK goes the way of a model: search, turn on, call, be refused over the quota, get an
// approval. It writes a line of JSON for each step. Arguments: the package ("sdk" is version 1, "client" is version 2), the
// revision of the protocol, the URL, the chat.
import { createInterface } from 'node:readline';

const [pkg, version, url, chat] = process.argv.slice(2);
const headers = { 'toolgrant-user': 'ann', 'toolgrant-chat': chat };
const tell = (step, told) => console.log(JSON.stringify({ step, ...told }));

let sdk;
if (pkg === 'sdk') {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema, ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
  sdk = { Client, StreamableHTTPClientTransport, elicit: ElicitRequestSchema, changed: ToolListChangedNotificationSchema };
} else {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  sdk = { Client, StreamableHTTPClientTransport, elicit: 'elicitation/create', changed: 'notifications/tools/list_changed' };
}
const negotiation = pkg === 'client' && version >= '2026' ? { versionNegotiation: { mode: { pin: version } } } : {};

let asked = 0;
let changes = 0;
let heard = () => {};
const connect = async (capabilities) => {
  const client = new sdk.Client({ name: 'typescript-' + pkg, version: '1' }, { capabilities, ...negotiation });
  if (capabilities.elicitation) {
    client.setRequestHandler(sdk.elicit, async (request) => {
      asked++;
      return { action: 'accept', content: { decision: request.params.message.includes('c__wipe') ? 'approve_once' : 'refuse' } };
    });
    client.setNotificationHandler(sdk.changed, async () => { changes++; heard(); });
  }
  await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
};

const client = await connect({ elicitation: {} });
const listed = async () => {
  const names = [];
  for (let cursor; ;) {
    const page = await client.listTools(cursor && { cursor }, { cacheMode: 'refresh' });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
    if (!cursor) return names;
  }
};
const call = async (who, name, args = {}) => {
  const result = await who.callTool({ name, arguments: args });
  return { text: result.content.map((part) => part.text).join(''), structured: result.structuredContent, isError: result.isError === true };
};

tell('list', { names: await listed() });
const found = await call(client, 'tool_search', { query: 'plan a route' });
tell('search', { names: found.structured.matches.map((match) => match.name) });
const changed = new Promise((resolve) => { heard = resolve; });
const turned = await call(client, 'tool_enable', { names: ['b', 'c'] });
const functions = turned.structured.enabled.flatMap((tool) => tool.functions);
tell('enable', { names: functions.map((f) => f.name), schemas: functions.every((f) => f.inputSchema.type === 'object') });
if (version < '2026') await changed;
tell('list', { names: await listed(), changed: changes > 0 });
for (let i = 0; i < 3; i++) tell('call', await call(client, 'b__route', { to: 'Rome' }));
tell('approve', { ...(await call(client, 'c__wipe', { all: true })), asked });

// A client that cannot ask waits for somebody else to decide.
const other = await connect({});
const refused = await call(other, 'c__wipe', { all: false });
tell('wait', refused);
await new Promise((resolve) => createInterface({ input: process.stdin }).once('line', resolve));
tell('approved', await call(other, 'c__wipe', { all: false }));
await client.close();
await other.close();
process.exit(0);
