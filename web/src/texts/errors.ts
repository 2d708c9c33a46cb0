/** Errors and lost connections. */

import { sentence } from "./sentences";

const ERRORS: Record<string, string> = {
  rate_limit: "Too many requests to the model",
  auth: "The model's provider refused the API key",
  quota: "The quota of the model's provider is used up",
  context_too_long: "The context is too long for the model",
  model_not_found: "The model does not exist",
  not_configured: "The model is not configured",
  unreachable: "The model is not available right now",
  stalled: "The model stopped answering",
  bad_response: "The model gave no usable reply",
  limit: "The turn reached a limit",
  store: "Keryx cannot write to its database",
  internal: "Keryx has an internal error",
};

/** What an error of this kind is called. */
export const error = (kind: string): string => ERRORS[kind] ?? kind;

/** What the server says went wrong, and what it says to do. */
export const problem = (message: string, hint: string): string =>
  [message, hint].filter(Boolean).map(sentence).join(" ");

export const unreachable = "Cannot reach the server. Check that it is running.";
export const unreadable = "The page cannot read the server's answer. Reload the page.";

export const connection = {
  lost: "Connection lost. Reconnecting…",
  gone: "This session no longer exists.",
  failed: "This session could not be loaded.",
};
