/** What a call works on, in few words: what its tool would say of its arguments. Pure. */

import { parseDiff } from "../ui/diff_parser";

const MOST = 200;

export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** Arguments that are still being written are shown by their end. */
export function argumentsPreview(tool: string, text: string): string {
  const read = parseObject(text);
  if (read === null) return text.slice(-80);
  if (tool === "patch" && typeof read.patch === "string") {
    const paths = parseDiff(read.patch).map((file) => file.path);
    if (paths.length > 0) return [...new Set(paths)].sort().join(", ").slice(0, MOST);
  }
  if (typeof read.code === "string") return script(read.code);
  const first = Object.values(read).find((value) => value !== null && value !== "");
  const shown = Array.isArray(first)
    ? first.map(entryText).join(", ")
    : typeof first === "object"
      ? ""
      : String(first ?? "");
  return shown.split("\n", 1)[0]!.slice(0, MOST);
}

/** Of an entry that has fields, the first text. */
function entryText(entry: unknown): string {
  if (typeof entry !== "object" || entry === null) return String(entry);
  return Object.values(entry).find((value): value is string => typeof value === "string") ?? "";
}

function script(code: string): string {
  const lines = code.split("\n").flatMap((line) => line.trim() || []);
  return lines.length === 0 ? "" : `${lines[0]!.slice(0, 80)} … (${lines.length} lines)`;
}
