/** What waits for a person, in German: approvals and questions. And the rules that approvals made. */

import { seconds } from "../amounts";
import type * as english from "../approvals";

export const approvals: typeof english.approvals = {
  label: "Wartet auf Sie",
  question: (tool) => `${tool} erlauben?`,
  risks: { none: "", low: "", high: "Hohes Risiko" },
  network: "Braucht das Netz",
  reads: (paths) => `Liest ${paths}`,
  writes: (paths) => `Schreibt ${paths}`,
  expires: (inSeconds) => `Läuft in ${seconds(inSeconds)} ab`,
  deny: "Ablehnen",
  allowOnce: "Einmal erlauben",
  allowLasting: (lasting, tool) =>
    lasting === "session" ? "Für diese Sitzung erlauben" : tool === "" ? "Immer erlauben" : `${tool} immer erlauben`,
  reach: {
    exact: "Nur dies, in diesem Ordner",
    folder: "Alles in diesem Ordner",
    everywhere: "In jedem Ordner",
  },
  // The sentence is the server's, in English.
  inThisSession: (says, folder) => (folder === null ? says : says.replace(`, in sessions that work in ${folder}`, "")),
  whole: "Was es tun würde",
  lastingCovers: (says) => `„Für diese Sitzung“ und „Immer“ würden mindestens abdecken: ${says}.`,
  back: "Zurück",
  answer: "Ihre Antwort",
  sendAnswer: "Antworten",
};

export const rules: typeof english.rules = {
  title: "Freigaberegeln",
  lead: "Diese Regeln sind mit „Immer erlauben“ entstanden. Wird eine Regel entfernt, fragt Keryx vor solchen Aufrufen wieder, in jeder Sitzung.",
  none: "Noch keine Regeln. „Immer erlauben“ legt eine Regel an, wenn Keryx um Freigabe bittet.",
  since: (time) => `seit ${time}`,
  remove: "Entfernen",
  removeRule: (says) => `Entfernen: ${says}`,
  configured: "Aus der Konfiguration",
  configuredLead: "Diese Regeln stehen in config.toml. Ändern Sie sie dort.",
  verdicts: { allow: "Erlauben", ask: "Vorher fragen", deny: "Ablehnen" },
};
