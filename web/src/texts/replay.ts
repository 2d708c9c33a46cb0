/** The replay of a turn. It is loaded with that view. */

import { otherLanguage } from ".";
import { seconds } from "./amounts";

export const english = {
  title: "Replay",
  lead: "This is the transcript at that moment. Nothing runs, and nothing changes.",
  slider: "Moment",
  position: (fact: number, all: number): string => `${fact} of ${all}`,
  spoken: (fact: number, all: number, name: string, time: string): string => `${fact} of ${all}: ${name}, ${time}`,
  after: (value: number): string => `+${seconds(value)}`,
  first: "First",
  back: "Back",
  play: "Play",
  pause: "Pause",
  forward: "Forward",
  last: "Last",
  speed: "Speed",
  speeds: { "1": "1×", "4": "4×", max: "Max" },
  more: "Loading more…",
  asks: (what: string): string => `Asks for approval: ${what}`,
  question: (text: string): string => `Asks: ${text}`,
  phases: { writing: "Requested", asked: "Requested", started: "Running", finished: "Done" },
  thinking: "Thinking…",
  facts: {
    "turn.started": "The turn starts",
    "turn.finished": "The turn ends",
    "turn.cancelling": "The turn stops",
    "turn.resumed": "The turn resumes",
    "message.accepted": "A message arrives",
    "message.delivered": "The agent gets the message",
    "step.started": "The model gets a request",
    "step.replied": "The model replies",
    "step.abandoned": "The reply is dropped",
    "call.started": "A call starts",
    "call.finished": "A call ends",
    "approval.asked": "Keryx asks for approval",
    "approval.answered": "You answer",
    "question.asked": "The agent asks a question",
    "question.answered": "You answer",
    "files.changed": "A file changes",
    "prompt.changed": "The prompt changes",
    "usage.recorded": "Usage is recorded",
    "model.retried": "The model is asked again",
    "model.switched": "Another model takes over",
    "context.compacted": "The context is compacted",
    "memory.recalled": "The agent remembers",
    "session.changed": "A setting changes",
  } as Readonly<Record<string, string>>,
};

export type ReplayTexts = typeof english;

/** In the language of the page, which is chosen before this is loaded. */
export const replay: ReplayTexts = otherLanguage?.replay ?? english;
