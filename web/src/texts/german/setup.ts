/** The first steps, in German: an empty session, the choice of a model, the tour. */

import type * as english from "../setup";

export const newSession: typeof english.newSession = {
  title: "Womit kann ich helfen?",
  greeting: (hour, name) => {
    const words = hour < 5 ? "Hallo" : hour < 12 ? "Guten Morgen" : hour < 18 ? "Guten Tag" : "Guten Abend";
    return name === null ? words : `${words}, ${name}`;
  },
  more: "Mehr",
  defaultModel: "Standardmodell",
  folder: (name) => `Ordner: ${name}`,
  folderLabel: "Ordner",
  examples: "Beispiele",
  example: {
    folder: "Was ist in diesem Ordner? Lies die wichtigsten Dateien und erkläre, wie sie zusammenhängen.",
    todo: "Finde alle TODO-Kommentare in diesem Ordner und liste sie nach Datei auf, mit dem, was zu tun ist.",
    history: "Was hat sich hier in den letzten zehn Commits geändert? Fasse es für jemanden zusammen, der weg war.",
    compare:
      "Schreibe ein Skript, das die Codezeilen hier nach Sprache zählt, führe es aus und zeige das Ergebnis als Tabelle.",
    haiku: "Schreibe ein Haiku über den Herbst.",
    explain: "Erkläre einem Kind, warum der Himmel blau ist.",
    letter: "Schreibe einen kurzen, freundlichen Brief, der ein Treffen auf nächste Woche verschiebt.",
  },
};

export const setup: typeof english.setup = {
  title: "Willkommen bei Keryx",
  lead: "Noch ist kein Modell eingerichtet. Machen Sie die Tour, oder wählen Sie ein Modell.",
  tour: {
    title: "Die Tour machen",
    lead: "Sie dauert zwei Minuten und braucht keinen API-Schlüssel. Ein Modell mit festem Drehbuch führt echte Werkzeuge auf diesem Rechner aus. Sie stoppen, lenken und erlauben. Die Tour spricht Englisch.",
    start: "Tour starten",
    sessionTitle: "Die Tour",
    firstMessage: "Los geht’s.",
    label: "Modell mit Drehbuch, echte Werkzeuge",
    about: "Die Antworten des Modells wurden vorab geschrieben. Die Werkzeuge, die es ausführt, sind echt.",
    tryIt: "Selbst ausprobieren",
    steps: {
      cancel: "Einen Aufruf abbrechen",
      answer: "Erlauben oder ablehnen",
      steer: "Eingreifen",
      kill: "Server mit kill -9 beenden",
    },
    done: "erledigt",
    leave: "Echtes Modell verwenden",
  },
  local: {
    title: "Ein winziges Modell auf diesem Rechner",
    lead: "SmolLM2 braucht keinen API-Schlüssel und kein Netz. Es kann nur chatten, am besten auf Englisch: Es benutzt keine Werkzeuge, weiß wenig und irrt sich oft.",
    start: "Laden (93 MB) und chatten",
    chat: "Mit SmolLM2 chatten",
    searching: "Wird auf diesem Rechner gesucht…",
    progress: "SmolLM2 wird heruntergeladen",
    amount: (done, total) => `${done} von ${total} MB`,
    install: "Führen Sie diesen Befehl dort aus, wo Keryx installiert ist, und starten Sie Keryx dann neu:",
    again: "Noch einmal versuchen",
    // The model understands English only.
    firstMessage: "Hello! Who are you?",
  },
  choose: "Modell wählen",
  servers: {
    title: "Auf diesem Rechner",
    lead: "Diese Modellserver laufen auf diesem Rechner. Wählen Sie ein Modell, um es zu verwenden.",
    searching: "Modellserver werden gesucht…",
    none: "Keryx hat keinen Modellserver gefunden. Starten Sie Ollama, LM Studio, vLLM oder llama.cpp, und aktualisieren Sie dann.",
    refresh: "Aktualisieren",
    use: (model) => `${model} verwenden`,
    modelOf: (server) => `Modell von ${server}`,
  },
  key: {
    title: "API-Schlüssel hinzufügen",
    lead: "Für jeden Anbieter mit einer OpenAI-kompatiblen API. Keryx prüft den Schlüssel und speichert ihn dann auf dem Server, wo nur Sie ihn lesen können.",
    provider: "Anbieter",
    other: "OpenAI-kompatibel",
    baseUrl: "Basis-URL",
    baseUrlExample: "https://…/v1",
    key: "API-Schlüssel",
    model: "Modell",
    firstModel: "Das erste verfügbare",
    save: "Prüfen und speichern",
    testing: "Wird geprüft…",
  },
  ready: (model) => `${model} ist bereit.`,
  models: "Modelle…",
  defaultModel: "Standardmodell",
  defaultModelLead: "Neue Sitzungen beginnen mit diesem Modell. Jede Sitzung kann ein anderes verwenden.",
  addModel: "Modellserver oder Schlüssel hinzufügen",
  startSession: "Neue Sitzung mit diesem Modell",
  useHere: "In dieser Sitzung verwenden",
  noModel: "Kein Modell eingerichtet",
};
