// The page: index.html with a conversation.
import { ConnectError } from "@connectrpc/connect";
import { Conversation, type ToolSet } from "./conversation";

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const field = (id: string) => element<HTMLInputElement>(id).value;

let stop = new AbortController();

async function connect(): Promise<void> {
  stop.abort();
  const { signal } = (stop = new AbortController());
  const conversation = new Conversation({
    server: field("server"),
    credential: field("credential"),
    user: field("user"),
    chat: field("chat"),
    protocol: field("protocol") === "grpc-web" ? "grpc-web" : "connect",
  });
  show(await conversation.resolve(), conversation);
  await conversation.open();
  status("watching");
  await conversation.watch((set) => show(set, conversation), signal);
}

// Shows the set: what is given can be turned off.
function show(set: ToolSet, conversation: Conversation): void {
  const rows = set.tools.map((tool) => {
    const row = document.createElement("li");
    row.dataset["tool"] = tool.toolId;
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.disabled = tool.core;
    box.onchange = () => attempt(() => conversation.toggle(tool.toolId, box.checked));
    row.append(box, ` ${tool.name} (${tool.toolId})`);
    return row;
  });
  const withheld = set.withheld.map((tool) => {
    const row = document.createElement("li");
    row.dataset["withheld"] = tool.toolId;
    row.textContent = tool.message;
    return row;
  });
  element("tools").replaceChildren(...rows);
  element("withheld").replaceChildren(...withheld);
  element("revision").textContent = set.revision;
}

function status(text: string): void {
  element("status").textContent = text;
}

function attempt(what: () => Promise<unknown>): void {
  what().catch((error: unknown) => status(ConnectError.from(error).message));
}

element<HTMLFormElement>("form").onsubmit = (event) => {
  event.preventDefault();
  status("connecting");
  attempt(connect);
};
element<HTMLFormElement>("enable").onsubmit = (event) => {
  event.preventDefault();
  const conversation = new Conversation({ server: field("server"), credential: field("credential"), user: field("user"), chat: field("chat") });
  attempt(() => conversation.toggle(field("tool"), true));
};
