/**
 * Requests that were sent before the page's own code had come. The document's first script sends them;
 * each answer is for the first who asks for its path.
 */

/** What the page reads of an answer. */
export type Answer = Pick<Response, "ok" | "status" | "statusText" | "text">;

declare global {
  var keryxEarly: Map<string, Promise<Answer>> | undefined;
}

export const JSON_HEADERS = { Accept: "application/json" };

export function sendEarly(paths: readonly string[]): void {
  globalThis.keryxEarly = new Map(
    paths.map((path) => {
      const answer = readWhole(path);
      // A failure is for whoever takes the answer; until then it is nobody's.
      answer.catch(() => undefined);
      return [path, answer];
    }),
  );
}

export function takeEarly(path: string): Promise<Answer> | null {
  const answer = globalThis.keryxEarly?.get(path) ?? null;
  globalThis.keryxEarly?.delete(path);
  return answer;
}

/** The text is read at once, so whoever takes the answer later does not wait for it. */
async function readWhole(path: string): Promise<Answer> {
  const response = await fetch(path, { headers: JSON_HEADERS });
  const { ok, status, statusText } = response;
  const text = await response.text();
  return { ok, status, statusText, text: async () => text };
}
