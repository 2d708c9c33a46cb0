/** The catalogue in German, by the same areas as the English one. It says "Sie" where it cannot do without. */

import type { Catalogue } from "..";
import { agents, plan } from "./agents";
import { approvals, rules } from "./approvals";
import { commands, composer, help, queue, steer } from "./composer";
import { connection, error, problem, unreachable, unreadable } from "./errors";
import { changes, context, files, inspector } from "./inspector";
import { exporting, importing, selecting, sharing, tags } from "./kept_sessions";
import { login } from "./login";
import { memory } from "./memory";
import { notifications } from "./notifications";
import { deletion, list, search } from "./sessions";
import { settings, tools } from "./settings";
import { newSession, setup } from "./setup";
import { shortcuts } from "./shortcuts";
import {
  call,
  code,
  compaction,
  diagram,
  diff,
  file,
  maths,
  notes,
  replacing,
  reply,
  timeline,
  transcript,
  turn,
} from "./transcript";
import { trust } from "./trust";
import { usage } from "./usage";

export { configuration } from "./configuration";
export { replay } from "./replay";
export { usageScreen } from "./usage_screen";

export const german: Catalogue = {
  name: "Keryx",
  close: "Schließen",
  cancel: "Abbrechen",
  save: "Speichern",
  retry: "Noch einmal versuchen",
  dismiss: "Ausblenden",
  loading: "Wird geladen…",
  skip: "Zum Nachrichtenfeld springen",
  unreachable,
  unreadable,
  problem,
  error,
  connection,
  login,
  list,
  deletion,
  selecting,
  tags,
  exporting,
  importing,
  sharing,
  search,
  newSession,
  setup,
  settings,
  tools,
  transcript,
  turn,
  reply,
  replacing,
  notes,
  compaction,
  call,
  timeline,
  diff,
  code,
  maths,
  diagram,
  file,
  composer,
  commands,
  help,
  shortcuts,
  steer,
  queue,
  approvals,
  rules,
  agents,
  plan,
  inspector: { ...inspector, files, changes, context },
  usage,
  trust,
  memory,
  notifications,
};
