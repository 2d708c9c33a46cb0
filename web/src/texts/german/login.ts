/** The screen to sign in, in German. */

import type * as english from "../login";

export const login: typeof english.login = {
  title: "Bei Keryx anmelden",
  lead: "Öffnen Sie den Link, den keryx serve ausgegeben hat, oder fügen Sie ihn hier ein.",
  leadForUsers: "Geben Sie Namen und Passwort ein.",
  name: "Benutzername",
  nameHint: "Leer lassen, wenn dieser Server Ihnen gehört.",
  signOut: (name) => `Abmelden (${name})`,
  token: "Zugangstoken",
  password: "Passwort",
  method: "Anmelden mit",
  submit: "Anmelden",
  wrong: "Token oder Passwort ist falsch. Bitte prüfen und noch einmal versuchen.",
  wrongName: "Name oder Passwort ist falsch. Bitte prüfen und noch einmal versuchen.",
  tooManyAttempts: "Zu viele Versuche. Bitte kurz warten und dann noch einmal versuchen.",
  linkUsed:
    "Dieser Link wurde schon benutzt. Starten Sie keryx serve neu, um einen neuen zu erhalten, oder melden Sie sich mit einem Passwort an.",
};
