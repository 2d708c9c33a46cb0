/** German has every text that English has, in words of its own. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bytes, clockTime, dayName, money, seconds, shortNumber, tokens, wholeNumber } from "../src/texts/amounts";
import { configuration } from "../src/texts/configuration";
import { english } from "../src/texts/english";
import { german } from "../src/texts/german";
import { configuration as germanConfiguration } from "../src/texts/german/configuration";
import { setLanguage } from "../src/texts/language";

/** Texts that are the same in both languages, and may be. */
const SAME = new Set([
  "name",
  "list.themes.system",
  "setup.key.baseUrlExample",
  // The model that reads it understands English only.
  "setup.local.firstMessage",
  // A word of the command.
  "commands.default",
  // Names of keys.
  "help.keyList.3.0",
  "help.keyList.4.0",
  "trust.hooks",
  "trust.skills",
  "configuration.sections.skills.title",
  "configuration.skills.list",
  "configuration.users.name",
  // Names of products.
  "configuration.choices.tools.web.backend.searxng",
  "configuration.choices.tools.web.backend.brave",
  "configuration.choices.tools.web.backend.tavily",
  "configuration.choices.tools.web.backend.ddgs",
]);

const BROWSER = "en-US";
const WORD = /\p{L}{2}/u;
const SAMPLES = [1, 2, "q", "zz 9"] as const;

type Texts = ReadonlyMap<string, unknown>;

/** Every text of a catalogue, by its way there. */
function textsOf(part: unknown, path: string[] = []): [string, unknown][] {
  if (typeof part !== "object" || part === null) return [[path.join("."), part]];
  return Object.entries(part).flatMap(([name, inner]) => textsOf(inner, [...path, name]));
}

/** What a text says for each kind of argument; a kind that it cannot take says nothing. */
function said(text: unknown): string[] {
  if (typeof text !== "function") return [String(text)];
  return SAMPLES.flatMap((sample) => {
    try {
      return [String(text(...Array(Math.max(1, text.length)).fill(sample)))];
    } catch {
      return [];
    }
  });
}

const ENGLISH: Texts = new Map(textsOf({ ...english, configuration }));
const GERMAN: Texts = new Map(textsOf({ ...german, configuration: germanConfiguration }));

function sameTexts(): string[] {
  return [...ENGLISH]
    .filter(([path, text]) => {
      const other = said(GERMAN.get(path));
      return said(text).some((words, at) => words === other[at] && WORD.test(words.replaceAll(/zz|NaN MB/gi, "")));
    })
    .map(([path]) => path);
}

/** What an error or a setting is called stands behind a function that takes its kind. */
const KINDS: readonly (readonly [string, (kind: string) => [string, string], readonly string[]])[] = [
  [
    "error",
    (kind) => [english.error(kind), german.error(kind)],
    [
      ...["rate_limit", "auth", "quota", "context_too_long", "model_not_found", "not_configured"],
      ...["unreachable", "stalled", "bad_response", "limit", "store", "internal"],
    ],
  ],
  [
    "outcome",
    (kind) => [english.call.outcome(kind), german.call.outcome(kind)],
    ["completed", "failed", "denied", "cancelled", "unknown", "exited"],
  ],
  [
    "reason",
    (kind) => [english.call.why("cancelled", kind, false), german.call.why("cancelled", kind, false)],
    ["timeout", "shutdown", "parent", "crash", "expired", "undelivered", "no_progress", "interrupt", "steer"],
  ],
  [
    "setting",
    (kind) => [english.notes.changed({ [kind]: null }), german.notes.changed({ [kind]: null })],
    ["model", "workspace", "personality", "effort", "approvals", "read_only", "place", "profile"],
  ],
];

describe("the German catalogue", () => {
  beforeEach(() => setLanguage("de", BROWSER));
  afterEach(() => setLanguage("en", BROWSER));

  it("has the shape of the English one", () => {
    const shape = (texts: Texts) => [...texts].map(([path, text]) => `${path}: ${typeof text}`);
    expect(shape(GERMAN).toSorted()).toEqual(shape(ENGLISH).toSorted());
    expect(ENGLISH.size).toBeGreaterThan(300);
  });

  it("has no English text", () => {
    expect(sameTexts().filter((path) => !SAME.has(path))).toEqual([]);
  });

  it("has no text in the list of same ones that is not the same", () => {
    expect([...SAME].filter((path) => !sameTexts().includes(path))).toEqual([]);
  });

  it.each(KINDS)("has German words for every kind of %s", (_what, both, kinds) => {
    for (const kind of kinds) {
      const [one, other] = both(kind);
      expect(other).not.toBe(one);
      expect(other).not.toContain(kind);
    }
  });

  it("says one and many", () => {
    expect(german.transcript.calls(1, 1)).toBe("1 Aufruf, 1 läuft");
    expect(german.transcript.calls(3, 2)).toBe("3 Aufrufe, 2 laufen");
    expect(german.steer.calls(1)).toBe("Eingreifen bricht 1 laufenden Aufruf ab und sendet die Nachricht sofort.");
    expect(german.steer.calls(2)).toBe("Eingreifen bricht 2 laufende Aufrufe ab und sendet die Nachricht sofort.");
    expect(german.timeline.nestedLine("terminal", 5, german.call.running, "", 3)).toBe("terminal: 2 von 5 laufen");
    expect(german.inspector.changes.files(1)).toBe("1 Datei geändert");
    expect(german.inspector.changes.files(2)).toBe("2 Dateien geändert");
  });
});

describe("numbers and times", () => {
  afterEach(() => setLanguage("en", BROWSER));

  const NUMBERS: readonly (readonly [() => string, string, string])[] = [
    [() => seconds(1.25), "1.3 s", "1,3 s"],
    [() => seconds(75), "1 min 15 s", "1 min 15 s"],
    [() => tokens(1_234), "1.2k", "1,2k"],
    [() => shortNumber(0.25), "0.25", "0,25"],
    [() => tokens(2_000), "2k", "2k"],
    [() => tokens(1_500_000), "1.5M", "1,5M"],
    [() => bytes(2_500_000), "2.5 MB", "2,5 MB"],
    [() => money(0.001), "< $0.01", "< 0,01 $"],
    [() => money(12.5), "$12.50", "12,50 $"],
    [() => wholeNumber(100_000), "100,000", "100.000"],
    [() => english.notes.retried("limit", 4), "The turn reached a limit. Retried after 4 s.", ""],
    [() => german.notes.retried("limit", 4), "", "Die Runde hat eine Grenze erreicht. Neuer Versuch nach 4 s."],
  ];

  it.each(NUMBERS)("%s is %s in English and %s in German", (write, inEnglish, inGerman) => {
    setLanguage("en", BROWSER);
    if (inEnglish !== "") expect(write()).toBe(inEnglish);
    setLanguage("de", BROWSER);
    if (inGerman !== "") expect(write()).toBe(inGerman);
  });

  it("has the days and the hours of the language, whatever the browser's is", () => {
    setLanguage("de", BROWSER);
    const noon = new Date(2025, 2, 3, 15, 5).getTime() / 1_000;
    expect(dayName(noon)).toBe("Montag, 3. März");
    expect(clockTime(noon)).toBe("15:05");
  });
});
