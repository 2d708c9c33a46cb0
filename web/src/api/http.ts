/** One way to the server: JSON in and out, problem documents as errors. */

import { texts } from "../texts";
import { type Answer, JSON_HEADERS, takeEarly } from "./early_requests";
import { asProblem, Problem, problemOf } from "./problem";

/** Browsers refuse to keep more than 64 KiB alive; a character may take three bytes. */
const MOST_KEPT_ALIVE = 20_000;

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

let missed = false;
/** Told of every 401, so that the page can ask for a login wherever it happened. */
let onUnauthorized: () => void = () => {
  missed = true;
};

/** What happened before there was anybody to tell is told now. */
export function whenUnauthorized(callback: () => void): void {
  onUnauthorized = callback;
  if (missed) callback();
}

export function noticeUnauthorized(): void {
  onUnauthorized();
}

export async function request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, headers: JSON_HEADERS };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...init.headers, "Content-Type": "application/json" };
    // What is put is a draft, and must arrive even if the page is being left.
    init.keepalive = method === "PUT" && init.body.length < MOST_KEPT_ALIVE;
  }
  return read<T>(await reach(path, init));
}

/** What is no JSON of ours, as it was stored. */
export async function readText(path: string): Promise<string> {
  return (await reach(path, { method: "GET" })).text();
}

export async function sendBytes<T>(path: string, bytes: Blob, signal: AbortSignal): Promise<T> {
  const headers = { "Content-Type": bytes.type || "application/octet-stream" };
  return read<T>(await reach(path, { method: "POST", headers, body: bytes, signal }));
}

/** Told of everything that the server has done for the page, and when that was asked for. */
let onDone: (operation: string, began: number) => void = () => undefined;

export function whenDone(callback: (operation: string, began: number) => void): void {
  onDone = callback;
}

/** The same for all sessions, messages and files: what is done, not to what. */
function operationOf(method: string, path: string): string {
  const parts = path.split("?")[0]!.split("/");
  return `${method} ${parts.map((part) => (/^[a-z]+$/.test(part) ? part : "*")).join("/")}`;
}

async function reach(path: string, init: RequestInit): Promise<Answer> {
  const operation = operationOf(init.method ?? "GET", path);
  const began = performance.now();
  try {
    const response = await answered(path, init);
    onDone(operation, began);
    return response;
  } catch (error) {
    if (error instanceof Problem) error.operation = operation;
    throw error;
  }
}

async function answered(path: string, init: RequestInit): Promise<Answer> {
  let response: Answer;
  try {
    response = await ((init.method === "GET" ? takeEarly(path) : null) ?? fetch(path, init));
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw asProblem(error);
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.kind === "unauthorized" && path !== "api/login") onUnauthorized();
  throw problem;
}

async function read<T>(response: Answer): Promise<T> {
  const text = await response.text();
  if (!text) return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new Problem("refused", response.status, texts.unreadable);
  }
}
