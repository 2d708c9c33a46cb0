/** Errors and lost connections, in German. */

import type * as english from "../errors";
import { sentence } from "../sentences";

const ERRORS: Record<string, string> = {
  rate_limit: "Zu viele Anfragen an das Modell",
  auth: "Der Anbieter des Modells hat den API-Schlüssel abgelehnt",
  quota: "Das Kontingent beim Anbieter des Modells ist aufgebraucht",
  context_too_long: "Der Kontext ist zu lang für das Modell",
  model_not_found: "Das Modell gibt es nicht",
  not_configured: "Das Modell ist nicht eingerichtet",
  unreachable: "Das Modell ist gerade nicht verfügbar",
  stalled: "Das Modell antwortet nicht mehr",
  bad_response: "Das Modell gab keine brauchbare Antwort",
  limit: "Die Runde hat eine Grenze erreicht",
  store: "Keryx kann nicht in seine Datenbank schreiben",
  internal: "Interner Fehler in Keryx",
};

export const error: typeof english.error = (kind) => ERRORS[kind] ?? kind;

/** The server says both in English. */
export const problem: typeof english.problem = (message, hint) =>
  [message, hint].filter(Boolean).map(sentence).join(" ");

export const unreachable = "Der Server ist nicht erreichbar. Prüfen Sie, ob er läuft.";
export const unreadable = "Die Seite kann die Antwort des Servers nicht lesen. Laden Sie die Seite neu.";

export const connection: typeof english.connection = {
  lost: "Verbindung verloren. Wird wiederhergestellt…",
  gone: "Diese Sitzung gibt es nicht mehr.",
  failed: "Diese Sitzung konnte nicht geladen werden.",
};
