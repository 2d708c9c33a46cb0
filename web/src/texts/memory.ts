/** What is remembered beyond sessions. */

import { plural } from "./sentences";

export const memory = {
  title: "Memory",
  lead: "What agents remember beyond their sessions. They get what fits with your messages.",
  search: "Search the memory",
  none: "Nothing is remembered yet.",
  noHits: "Nothing was found.",
  add: "Add",
  addLabel: "Remember something",
  addPlaceholder: "A fact in one sentence, in your own words",
  list: "What is remembered",
  more: "Show more",
  edit: "Edit",
  editItem: (text: string): string => `Edit “${text}”`,
  text: "Text",
  forget: "Forget",
  forgetItem: (text: string): string => `Forget “${text}”`,
  forgetTitle: "Forget this permanently?",
  forgetBody: "Keryx erases it here and at every provider, with everything that it replaced.",
  remaining: (names: string): string =>
    `Erased here. ${names} may still have it; Keryx erases it there as soon as it answers.`,
  confirm: "Confirm",
  confirmItem: (text: string): string => `Confirm “${text}”`,
  trust: {
    person: "Trusted like your own words",
    tool: "From files that were read",
    page: "Not trusted: from a web page or a command",
  },
  byYou: "Written by you",
  from: "From",
  deletedSession: "From a deleted session",
  work: (workspace: string): string => `Only for ${workspace}`,
  providers: "Providers",
  state: {
    upToDate: "Up to date",
    waiting: (count: number, since: string): string => `${plural(count, "item")} waiting, for ${since}`,
    failing: (count: number, error: string): string => `${plural(count, "failure")} in a row: ${error}`,
    refused: (count: number): string => `${count} refused`,
    unknown: (count: number): string => `${count} of unknown fate`,
  },
  stuck: (name: string, since: string): string => `${name} has been stuck for ${since}.`,
  retryAll: "Try again now",
  failures: "Not stored",
  failure: { refused: "Refused", unknown: "Maybe stored" },
  retryItem: (text: string): string => `Retry “${text}”`,
  given: {
    label: "From the memory, for this turn",
    none: "The memory gave nothing to this turn.",
    late: (names: string): string => `No answer in time: ${names}.`,
  },
};
