/**
 * The endpoints, one function each. Paths are written here and nowhere else, as seen from the page:
 * the server may be anywhere below its host.
 */

import { ofSession as at, ofList, ofMessages } from "./addresses";
import { readText, request, sendBytes } from "./http";
import { afterChanges, inOrder } from "./request_order";
import type {
  ApprovalRules,
  AttachedUpload,
  CreatedShare,
  Decision,
  DescribedFolder,
  ExportFormat,
  FileChanges,
  Hit,
  ImportedSessions,
  MemoryStatus,
  MessagePage,
  ModelContext,
  Models,
  NestedCalls,
  NewestPlan,
  NewProvider,
  NewShare,
  Opening,
  OutgoingMessage,
  PageEdge,
  PathContent,
  Profiles,
  Reach,
  RememberedItem,
  ServerStates,
  SessionPage,
  SettingChange,
  SettingsChanges,
  SettingsShown,
  Setup,
  ShareLinks,
  TagList,
  Tools,
  Upload,
  UsageReport,
  View,
} from "./types";
import type * as wire from "./wire";

const part = encodeURIComponent;

export const login = (proof: wire.Login) => request<void>("POST", "api/login", proof);
export const health = () => request<wire.Health>("GET", "api/health");
export const me = () => request<wire.Me>("GET", "api/me");
export const users = () => request<wire.UserList>("GET", "api/users");
export const addUser = (name: string, password: string) =>
  request<wire.UserInfo>("POST", "api/users", { name, password } satisfies wire.NewUser);
export const changeUser = (name: string, changes: wire.UserChanges) =>
  request<wire.UserInfo>("PATCH", `api/users/${part(name)}`, changes);
export const removeUser = (name: string) => request<void>("DELETE", `api/users/${part(name)}`);
export const logout = () => request<void>("POST", "api/logout");
export const models = () => request<Models>("GET", "api/models");
export const profiles = () => request<Profiles>("GET", "api/profiles");
export const tools = () => request<Tools>("GET", "api/tools");
/** Since then, in seconds; with nothing said, ever. */
export const usage = (since?: number) =>
  request<wire.UsageList>("GET", since === undefined ? "api/usage" : `api/usage?since=${since}`);
/** In groups, in a period, with the days of this browser. */
export const usageReport = (query: URLSearchParams, signal?: AbortSignal) =>
  request<UsageReport>("GET", `api/usage/report?${query}`, undefined, signal);
export const usageExport = (query: URLSearchParams, format: "csv" | "json") =>
  `api/usage/report${format === "csv" ? ".csv" : ""}?${query}`;
export const setup = () => request<Setup>("GET", "api/setup");
export const servers = () => request<wire.FoundServers>("GET", "api/setup/servers");
export const configure = (provider: NewProvider) => request<wire.Configured>("POST", "api/setup", provider);
/** What the configured servers offer right now. */
export const offered = () => request<wire.OfferedModels>("GET", "api/setup/models");
/** The tiny model of the machine that the server runs on, and how far its download is. */
export const localModel = () => request<wire.LocalModel>("GET", "api/setup/local");
export const pullLocalModel = () => request<wire.LocalModel>("POST", "api/setup/local");
export const chooseDefault = (model: string) =>
  request<Setup>("POST", "api/setup/model", { model } satisfies wire.NewModel);

export function listSessions(before: number | null, archived: boolean, limit = 50): Promise<SessionPage> {
  return request("GET", ofList(before, archived, limit));
}

/** The sessions of the child agents of a session. */
export function childSessions(parent: string, before: number | null, archived: boolean): Promise<SessionPage> {
  const query = new URLSearchParams({ parent, limit: "200", archived: String(archived) });
  if (before !== null) query.set("before", String(before));
  return request("GET", `api/sessions?${query}`);
}

export function search(words: string, signal: AbortSignal): Promise<{ hits: readonly Hit[] }> {
  const query = new URLSearchParams({ search: words, limit: "40" });
  return request("GET", `api/sessions?${query}`, undefined, signal);
}

/** The sessions with this tag, in any case. */
export function taggedSessions(tag: string, before: number | null, archived: boolean): Promise<SessionPage> {
  const query = new URLSearchParams({ tag, limit: "200", archived: String(archived) });
  if (before !== null) query.set("before", String(before));
  return request("GET", `api/sessions?${query}`);
}
export const tags = () => request<TagList>("GET", "api/tags");

export const openSession = (opening: Opening) => request<View>("POST", "api/sessions", opening);
export const view = (id: string, signal?: AbortSignal) => request<View>("GET", at(id), undefined, signal);
export const changeSession = (id: string, changes: SettingsChanges) =>
  inOrder(id, () => request<View>("PATCH", at(id), changes));
export const deleteSession = (id: string) => request<void>("DELETE", at(id));

/** The last page, or the one next to a fact. */
export function messages(id: string, from: PageEdge, limit: number, signal?: AbortSignal): Promise<MessagePage> {
  return request("GET", ofMessages(id, from, limit), undefined, signal);
}

/** The facts after this one, as they are in the log. */
export const facts = (id: string, after: number, limit: number, signal?: AbortSignal) =>
  request<wire.FactPage>("GET", at(id, `/facts?after=${after}&limit=${limit}`), undefined, signal);

export const send = (id: string, message: OutgoingMessage) =>
  afterChanges(id, () => request<wire.Accepted>("POST", at(id, "/messages"), message));

export const changeMessage = (id: string, messageId: string, changes: wire.MessageChanges) =>
  request<wire.Changed>("PATCH", at(id, `/messages/${part(messageId)}`), changes);

export const withdraw = (id: string, messageId: string) =>
  request<wire.Withdrawn>("DELETE", at(id, `/messages/${part(messageId)}`));

export const cancelTurn = (id: string, turnId: string) =>
  request<wire.Cancelled>("POST", at(id, `/turns/${part(turnId)}/cancel`));

export const cancelCall = (id: string, callId: string) =>
  request<wire.Cancelled>("POST", at(id, `/calls/${part(callId)}/cancel`));

/** A call that a person runs, with no model. */
export const runCall = (id: string, tool: string, args: Record<string, unknown>, key: string) =>
  afterChanges(id, () =>
    request<wire.CallAccepted>("POST", at(id, "/calls"), { tool, arguments: args, key } satisfies wire.NewCall),
  );

export const approve = (id: string, approvalId: string, decision: Decision, reach: Reach | null) =>
  request<unknown>("POST", at(id, `/approvals/${part(approvalId)}`), { decision, reach } satisfies wire.DecisionBody);

export const rules = () => request<ApprovalRules>("GET", "api/approvals/rules");
export const removeRule = (ruleId: string) => request<void>("DELETE", `api/approvals/rules/${part(ruleId)}`);

/** A page of the memories; with words, what has all of them. */
export function memories(words: string, before: number | null, signal?: AbortSignal): Promise<wire.MemoryList> {
  const query = new URLSearchParams({ limit: "50" });
  if (words !== "") query.set("q", words);
  if (before !== null) query.set("before", String(before));
  return request("GET", `api/memory?${query}`, undefined, signal);
}

export const describedFolder = (workspace: string) =>
  request<DescribedFolder>("GET", `api/trust/folder?${new URLSearchParams({ workspace })}`);
/** Trusts what was shown of it; what changed meanwhile is refused. */
export const trustFolder = (workspace: string, digest: string) =>
  request<DescribedFolder>("POST", "api/trust", { workspace, digest } satisfies wire.TrustBody);

const memoryAt = (id: string, rest = ""): string => `api/memory/${part(id)}${rest}`;
export const memoryStatus = () => request<MemoryStatus>("GET", "api/memory/state");
export const addMemory = (text: string) =>
  request<RememberedItem>("POST", "api/memory", { text } satisfies wire.NewMemory);
export const editMemory = (id: string, text: string) =>
  request<RememberedItem>("PATCH", memoryAt(id), { text } satisfies wire.MemoryEdit);
export const confirmMemory = (id: string) => request<RememberedItem>("POST", memoryAt(id, "/confirm"));
export const forgetMemory = (id: string) => request<wire.Erased>("DELETE", memoryAt(id));
/** These of what failed, or all. */
export const retryMemory = (places: readonly number[] | null) =>
  request<wire.Retried>("POST", "api/memory/retry", { places } satisfies wire.RetryBody);

/** What config.toml says, without its secrets. */
export const config = () => request<SettingsShown>("GET", "api/settings");
/** All of it, or nothing; a setting that changed meanwhile is refused. */
export const changeConfig = (revision: string, changes: readonly SettingChange[]) =>
  request<SettingsShown>("PATCH", "api/settings", { revision, changes } satisfies wire.SettingsChange);
const providerAt = (name: string): string => `api/settings/providers/${part(name)}`;
export const providers = () => request<wire.ProviderEntries>("GET", "api/settings/providers");
export const testProvider = (name: string) => request<wire.TestedProvider>("POST", `${providerAt(name)}/test`);
export const changeProvider = (name: string, change: wire.ProviderChange) =>
  request<wire.TestedProvider>("PUT", providerAt(name), change);
export const removeProvider = (name: string) => request<void>("DELETE", providerAt(name));
export const mcpServers = () => request<ServerStates>("GET", "api/settings/mcp");
export const connectServer = (name: string) => request<ServerStates>("POST", `api/settings/mcp/${part(name)}/connect`);
export const skills = () => request<wire.SkillList>("GET", "api/settings/skills");
export const tokens = () => request<wire.TokenEntries>("GET", "api/settings/tokens");
export const createToken = (name: string) =>
  request<wire.MadeToken>("POST", "api/settings/tokens", { name } satisfies wire.NewToken);
export const revokeToken = (name: string) => request<void>("DELETE", `api/settings/tokens/${part(name)}`);

export const answer = (id: string, questionId: string, words: string) =>
  request<unknown>("POST", at(id, `/questions/${part(questionId)}`), { answer: words } satisfies wire.AnswerBody);

export const saveDraft = (id: string, text: string, attachments: readonly AttachedUpload[]) =>
  request<void>("PUT", at(id, "/draft"), { text, attachments } satisfies wire.DraftBody);

export const upload = (file: Blob, name: string, signal: AbortSignal) =>
  sendBytes<Upload>(`api/uploads?name=${part(name)}`, file, signal);

export const blobText = (id: string, blob: string) => readText(blobAddress(id, blob));
export const nestedCalls = (id: string, blob: string) => request<NestedCalls>("GET", blobAddress(id, blob));

export const readPath = (id: string, path: string, signal?: AbortSignal) =>
  request<PathContent>("GET", at(id, `/files?${new URLSearchParams({ path })}`), undefined, signal);

export const fileChanges = (id: string, signal?: AbortSignal) =>
  request<FileChanges>("GET", at(id, "/changes"), undefined, signal);

export const revert = (id: string, changes: readonly number[]) =>
  request<unknown>("POST", at(id, "/changes/revert"), { changes } satisfies wire.RevertBody);

export const plan = (id: string) => request<NewestPlan>("GET", at(id, "/plan"));

export const modelContext = (id: string, signal?: AbortSignal) =>
  request<ModelContext>("GET", at(id, "/context"), undefined, signal);

export const fork = (id: string, turnId: string | null, newId: string, title: string | null = null) =>
  request<View>("POST", at(id, "/fork"), { turn_id: turnId, session_id: newId, title } satisfies wire.ForkBody);

export const importSessions = (file: Blob, name: string, signal: AbortSignal) =>
  sendBytes<ImportedSessions>(`api/sessions/import?name=${part(name)}`, file, signal);
export const share = (id: string, options: NewShare) => request<CreatedShare>("POST", at(id, "/shares"), options);
export const shares = (id: string) => request<ShareLinks>("GET", at(id, "/shares"));
export const allShares = () => request<ShareLinks>("GET", "api/shares");
export const revokeShare = (id: string, shareId: string) => request<void>("DELETE", at(id, `/shares/${part(shareId)}`));

/** With its changes of files, unless the person says otherwise. */
export const undo = (id: string, turnId: string, files: boolean) =>
  request<wire.Undone>("POST", at(id, "/undo"), { turn_id: turnId, files } satisfies wire.UndoBody);

/** Brings back a turn that another one replaced. */
export const restoreTurn = (id: string, turnId: string) =>
  request<unknown>("POST", at(id, `/turns/${part(turnId)}/restore`));

/** Answered when the summary is there. */
export const compact = (id: string, focus: string) =>
  afterChanges(id, () => request<unknown>("POST", at(id, "/compact"), { focus } satisfies wire.CompactBody));

export const pictureAddress = (id: string, path: string) => at(id, `/pictures?path=${part(path)}`);
export const downloadAddress = (id: string, path: string) => at(id, `/download?path=${part(path)}`);
export const exportAddress = (id: string, format: ExportFormat) => at(id, `/export?format=${format}`);
export function exportsAddress(ids: readonly string[], format: ExportFormat): string {
  const query = new URLSearchParams({ format });
  for (const id of ids) query.append("session_id", id);
  return `api/exports?${query}`;
}
export const blobAddress = (id: string, blob: string) => at(id, `/blobs/${part(blob)}`);
export const eventsAddress = (id: string) => at(id, "/events");
export const allEventsAddress = "api/events";
