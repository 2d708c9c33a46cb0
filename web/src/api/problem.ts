/** Why the server did not do what was asked: problem documents as one typed error. */

import type { Answer } from "./early_requests";

export type ProblemKind =
  | "unreachable"
  | "unauthorized"
  | "not_found"
  | "conflict"
  | "too_large"
  | "too_long"
  | "busy"
  | "refused";

export class Problem extends Error {
  override readonly name = "Problem";
  /** What was asked of the server, without the ids; nothing if it was not asked. */
  operation = "";

  constructor(
    readonly kind: ProblemKind,
    readonly status: number,
    message: string,
    readonly hint: string = "",
    /** What the server itself calls it. */
    readonly serverKind: string = "",
  ) {
    super(message);
  }
}

const KINDS: Record<number, ProblemKind> = {
  401: "unauthorized",
  404: "not_found",
  409: "conflict",
  413: "too_large",
  429: "busy",
};

export async function problemOf(response: Answer): Promise<Problem> {
  const kind = KINDS[response.status] ?? "refused";
  const fields = await document(response);
  const message = text(fields.detail) || text(fields.title) || response.statusText || `HTTP ${response.status}`;
  return new Problem(kind, response.status, message, text(fields.hint), text(fields.kind));
}

/** No document, or none that can be read, is no reason to hide the status. */
async function document(response: Answer): Promise<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(await response.text());
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem("unreachable", 0, error instanceof Error ? error.message : String(error));
}
