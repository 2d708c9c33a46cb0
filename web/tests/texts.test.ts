import { describe, expect, it } from "vitest";
import { texts } from "../src/texts";

const SCREENS = import.meta.glob<string>("../src/**/*.tsx", { query: "?raw", import: "default", eager: true });
const CATALOGUE = import.meta.glob<string>("../src/texts/*.ts", { query: "?raw", import: "default", eager: true });

/** Attributes and properties whose value a person sees or hears. */
const READ = "aria-label|aria-description|aria-roledescription|aria-valuetext|title|placeholder|alt|label|lead|summary";
const ATTRIBUTE = new RegExp(`\\s(?:${READ})=(?:"([^"]*)"|\\{\\s*["'\`]([^"'\`]*)["'\`]\\s*\\})`, "g");
/** What stands between tags; the text of a tag ends at the next tag or at an expression. */
const NODE = /<\/?[A-Za-z][^<>=]*(?:=(?:"[^"]*"|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})[^<>=]*)*>([^<>{}]*)(?=[<{])/g;
const WORD = /\p{L}{2}/u;

/** Words that people do not say to each other about software, and what to say instead. */
const AVOIDED: readonly (readonly [RegExp, string])[] = [
  [/\bshall\b/i, "can, will"],
  [/\btold\b|\btell me\b|\btells?\b/i, "say what happens: notifies, sends, shows"],
  [/\bsum(?:s|med|ming)? up\b/i, "compact"],
  [/\bnobody\b/i, "no one"],
  [/\bwhoever\b|\bwhat was said\b|\bwhat is there\b/i, "name the subject"],
  [/\bwithdraw/i, "remove"],
  [/\btaken? back\b/i, "undo, revert, remove"],
  [/\bfor good\b|\bfor always\b/i, "always"],
  [/\bboundary\b/i, "after this step"],
  [/\bunder way\b|\bunderway\b/i, "running"],
  [/\blook again\b|\bread again\b/i, "refresh"],
  [/\basks you\b|\bwaits\b/i, "waiting for you, queued"],
  [/\blog (?:in|out)\b/i, "sign in, sign out"],
  [/(?<!there )\bis no\b/i, "is not a"],
  [/\bconversation\b|\bjob\b/i, "session, turn, step, call"],
];

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

function literals(source: string): string[] {
  const attributes = [...source.matchAll(ATTRIBUTE)].map((match) => match[1] ?? match[2] ?? "");
  const nodes = [...source.matchAll(NODE)].map((match) => match[1] ?? "").filter(isProse);
  return [...attributes, ...nodes].map((text) => text.trim()).filter((text) => WORD.test(withoutExpressions(text)));
}

const withoutExpressions = (text: string): string => text.replace(/\$\{[^}]*\}/g, "");

/** Generics look like tags; what follows them has signs that no text on a screen has. */
const isProse = (text: string): boolean => !/[;=()[\]|&]|^\s*[:?]/.test(text);

function stringsOf(source: string): string[] {
  return [...withoutComments(source).matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].map((match) =>
    withoutExpressions(match[1] ?? match[2] ?? ""),
  );
}

describe("literal texts", () => {
  it.each(Object.entries(SCREENS).map(([path, source]) => [path, source] as const))("%s has none", (_path, source) => {
    expect(literals(withoutComments(source))).toEqual([]);
  });

  it.each([
    ['<button aria-label="Close">', "Close"],
    ['<p class="dim">No sessions yet.</p>', "No sessions yet."],
    ["<b>\n  Allow it?\n</b>", "Allow it?"],
    ['<Dialog title="Usage" onClose={close}>', "Usage"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source code, which this test reads.
    ["<input placeholder={`Find ${name}`} />", "Find ${name}"],
    ["<Button onClick={() => void go({ to: 1 })}>Send {count}</Button>", "Send"],
    ["<i />\n<b>{name}</b> is ready <i />", "is ready"],
  ])("%s is found", (source, text) => {
    expect(literals(source)).toEqual([text]);
  });

  it.each([
    '<img alt="" />',
    "<p>{texts.loading}</p>",
    '<span aria-hidden="true">✕</span>',
    "const lines = useMemo(() => signal<readonly string[]>([]), [opened]);",
    "{left > 0 ? <span> · {text}</span> : null}",
    "{told === null ? <div /> : told.configured ? <Start /> : <Welcome />}",
  ])("%s has none", (source) => {
    expect(literals(source)).toEqual([]);
  });
});

describe("the catalogue", () => {
  const strings = Object.entries(CATALOGUE).flatMap(([path, source]) =>
    stringsOf(source).map((text) => [text, path] as const),
  );

  it("is read by this test", () => {
    expect(strings.length).toBeGreaterThan(300);
    expect(strings.map(([text]) => text)).toContain("What can I help with?");
  });

  it.each(AVOIDED)("does not say %s: %s", (word) => {
    expect(strings.filter(([text]) => word.test(text))).toEqual([]);
  });

  it("says what people know from other software", () => {
    expect(texts.newSession.title).toBe("What can I help with?");
    expect(texts.composer.placeholder).toBe("Message Keryx…");
    expect(texts.approvals.allowOnce).toBe("Allow once");
    expect(texts.approvals.allowLasting("session", "write_file")).toBe("Allow for this session");
    expect(texts.approvals.allowLasting("always", "write_file")).toBe("Always allow write_file");
    expect(texts.compaction.auto(102_400)).toBe("Auto-compacts at 102k");
    expect(texts.notes.retrying("rate_limit", 3.2)).toBe("Too many requests to the model. Retrying in 4 s.");
    expect(texts.notes.retried("rate_limit", 4)).toBe("Too many requests to the model. Retried after 4 s.");
  });

  it.each([
    ["cancelled", "interrupt", false, "Cancelled by you"],
    ["cancelled", "timeout", false, "Cancelled: it took too long"],
    ["denied", "denied", false, "Denied"],
    ["denied", "undelivered: it was not delivered", false, "Denied: no one was there to approve it"],
    ["denied", "a rule of the configuration", false, "Denied: a rule of the configuration"],
    ["unknown", "steer", true, "Unknown: cancelled by your steer, ended later"],
    ["failed", null, false, "Failed"],
  ])("of a call that is %s for %s", (outcome, reason, endedLater, text) => {
    expect(texts.call.outcome(outcome) + texts.call.why(outcome, reason, endedLater)).toBe(text);
  });
});
