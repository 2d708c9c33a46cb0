/** The screen to sign in. */

export const login = {
  title: "Sign in to Keryx",
  lead: "Open the link that keryx serve printed, or paste it here.",
  leadForUsers: "Enter your name and password.",
  name: "Name",
  nameHint: "Leave it empty if you run this server.",
  signOut: (name: string) => `Sign out (${name})`,
  token: "Token",
  password: "Password",
  method: "Sign in with",
  submit: "Sign in",
  wrong: "The token or password is wrong. Check it and try again.",
  wrongName: "The name or password is wrong. Check it and try again.",
  tooManyAttempts: "Too many attempts. Wait a moment, then try again.",
  linkUsed: "This link was already used. Run keryx serve again to get a new one, or sign in with a password.",
};
