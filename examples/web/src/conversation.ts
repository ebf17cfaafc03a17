// What a page needs of Toolgrant: one conversation of one user, in a browser.
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { ChatAction } from "./gen/toolgrant/v1/chat_pb";
import { ChatService } from "./gen/toolgrant/v1/chat_service_pb";
import { EntitlementService, type EffectiveTool } from "./gen/toolgrant/v1/entitlement_service_pb";
import type { WithheldTool } from "./gen/toolgrant/v1/withheld_pb";

// What a model is given, and what not.
export interface ToolSet {
  tools: EffectiveTool[];
  withheld: WithheldTool[];
  revision: string;
}

export interface Options {
  server: string; // https://host:port
  credential: string; // an API key or a token of the role frontend, of this user
  user: string;
  chat: string;
  protocol?: "connect" | "grpc-web";
}

export class Conversation {
  private readonly entitlements: Client<typeof EntitlementService>;
  private readonly chats: Client<typeof ChatService>;

  constructor(private readonly options: Options) {
    const authorize: Interceptor = (next) => (request) => {
      request.header.set("Authorization", `Bearer ${options.credential}`);
      return next(request);
    };
    const create = options.protocol === "grpc-web" ? createGrpcWebTransport : createConnectTransport;
    const transport = create({ baseUrl: options.server, interceptors: [authorize], useBinaryFormat: true });
    this.entitlements = createClient(EntitlementService, transport);
    this.chats = createClient(ChatService, transport);
  }

  private get about() {
    return { chatId: this.options.chat, userId: this.options.user, surface: { kind: { case: "web", value: {} } } } as const;
  }

  // Asks once.
  async resolve(): Promise<ToolSet> {
    return this.entitlements.resolveTools(this.about, { timeoutMs: 10_000 });
  }

  // Creates the chat, or finds that this page did before.
  async open(): Promise<void> {
    await this.chats.createChat({ ...this.about, requestId: "open" }, { timeoutMs: 10_000 });
  }

  // Turns a tool on or off. A request that was not answered may be repeated with the same requestId.
  async toggle(toolId: string, on: boolean, requestId: string = crypto.randomUUID()): Promise<string> {
    const action = on ? ChatAction.ENABLE : ChatAction.DISABLE;
    const written = await this.chats.setChatTools({ chatId: this.options.chat, requestId, changes: [{ toolId, action }] }, { timeoutMs: 10_000 });
    return written.revision;
  }

  // Follows the set until the signal says stop: tells it at first, and whenever it changes. It connects anew when the
  // connection is lost, from the revision that it knew, and so misses nothing. What will not get better by itself, such
  // as a credential that is not taken, is thrown.
  async watch(tell: (set: ToolSet) => void, signal: AbortSignal): Promise<void> {
    let revision = "";
    for (let wait = 200; !signal.aborted; wait = Math.min(2 * wait, 10_000)) {
      try {
        const consistency = revision === "" ? undefined : { requirement: { case: "atLeastAsFresh", value: revision } as const };
        for await (const answer of this.entitlements.watchTools({ ...this.about, consistency }, { signal })) {
          wait = 200;
          revision = answer.revision;
          if (!answer.checkpoint) {
            tell(answer);
          }
        }
      } catch (error) {
        const code = ConnectError.from(error).code;
        if (!signal.aborted && ![Code.Unavailable, Code.Unknown, Code.DeadlineExceeded, Code.ResourceExhausted, Code.Aborted, Code.Internal].includes(code)) {
          throw error;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random())));
    }
  }
}
