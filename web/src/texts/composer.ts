/** Where a person types: the message box, its commands and keys, and the queue above it. */

import { bytes, wholeNumber } from "./amounts";
import { plural } from "./sentences";

export const composer = {
  dictate: "Dictate",
  stopDictation: "Stop dictating",
  notHeard: "Keryx can't hear you.",
  notHeardHint: "Allow the microphone for this page in the browser, or type.",
  label: "Message",
  placeholder: "Message Keryx…",
  placeholderRunning: "Queue a message or steer…",
  attach: "Attach",
  send: "Send",
  queue: "Queue",
  steer: "Steer",
  steerKeys: "Ctrl ↵",
  stop: "Stop",
  failed: "Your message was not sent. Your text is still here.",
  files: "Attached files",
  remove: (name: string): string => `Remove ${name}`,
  uploading: "Uploading…",
  sendsAfterUpload: "Keryx sends your message when the upload is done.",
  cancelSend: "Cancel sending",
  notUploaded: (name: string): string => `${name} was not uploaded`,
  notUploadedHint: "Remove the file, or remove it and attach it again",
  pastedName: "pasted",
  pastedText: "pasted text.txt",
  tooLong: (length: number, most: number): string =>
    `Your message has ${wholeNumber(length)} characters, and ${wholeNumber(most)} is the most.`,
  tooLongHint: "Attach the text as a file instead",
  tooLongHere: "Shorten it, or attach the text to a message as a file",
  attachText: "Attach as a file",
  /** Text that was typed elsewhere and is in the message box now. */
  returned: {
    queued: "The message that you were editing was sent or removed before you saved it. Your text is here.",
    answer: "The question is closed. Your answer to it is here.",
  },
  size: bytes,
};

export const commands = {
  label: "Suggestions",
  about: {
    model: "Change the model of this session",
    workspace: "Change the folder that this session works in",
    personality: "Change the personality of the agent",
    effort: "Change how much the model thinks",
    exec: "Run Python with all tools, without a model",
    fork: "Start a new session with a copy of this one",
    undo: "Undo the last turn and its file changes",
    stop: "Stop the running turn",
    compact: "Replace the earlier messages with a summary",
    help: "Show all commands and keys",
  },
  takes: {
    model: "NAME",
    workspace: "FOLDER",
    personality: "NAME",
    effort: "LEVEL",
    exec: "CODE",
    compact: "[FOCUS]",
  } as Record<string, string>,
  default: "default",
  defaultAbout: "Profile default",
  current: "Current",
  folder: "Folder",
  thisFolder: "This folder",
  noFile: "No file here has that name.",
  noFolder: "That folder doesn't exist.",
  noFilesYet: "Keryx suggests files when a session works in this folder.",
  run: "Run",
  runs: {
    terminal: "Runs in the terminal, without a model.",
    code: "Runs as Python with all tools, without a model.",
  },
  failed: "The command did not run. Your text is still here.",
  unknown: (name: string): string => `There is no command /${name}.`,
  unknownHint: "Type / to see all commands. To send this as a message, put a space before it.",
  needsValue: (name: string, takes: string): string => `/${name} needs a value: /${name} ${takes}`,
  needsSession: "This command needs a session. Send a message to start one.",
  nothingRuns: "Nothing is running.",
  noTurn: "There is no turn to undo.",
};

export const help = {
  title: "Commands and keys",
  keys: "Keys",
  prefixes: [
    ["!COMMAND", "Run a command in the terminal, without a model"],
    ["@PATH", "Insert the path of a file in the workspace"],
  ] as readonly (readonly [string, string])[],
  keyList: [
    ["↵", "Send the message, or queue it while a turn runs"],
    ["Shift ↵", "New line"],
    ["Ctrl ↵", "Steer: cancel what runs and send the message now"],
    ["Alt ↵", "Send the message after this step"],
    ["Esc", "Stop the turn, or close what is open"],
    ["N", "New session"],
    ["I", "Show or hide the inspector"],
    ["Ctrl K", "Search, and all commands"],
    ["?", "Show this list"],
  ] as readonly (readonly [string, string])[],
};

/** What a steer does right now. */
export const steer = {
  calls: (count: number): string => `Steer cancels ${plural(count, "running call")} and sends your message now.`,
  reply: "Steer cuts off the reply and sends your message now.",
  now: "Steer sends your message now.",
  afterStep: "After this step",
  afterStepAbout: "Cancels nothing. The agent reads your message when this step is done.",
};

export const queue = {
  stopping: {
    title: (count: number): string =>
      count === 1
        ? "Stop the turn. Send the queued message afterwards?"
        : `Stop the turn. Send the ${count} queued messages afterwards?`,
    goOn: (count: number): string => (count === 1 ? "Stop, then send it" : "Stop, then send them"),
    stopAll: "Stop and clear the queue",
  },
  label: "Queued messages",
  next: "Next",
  afterStep: "After this step",
  edit: "Edit",
  up: "Move up",
  down: "Move down",
  remove: "Remove",
  text: "Queued message",
  notSaved: "Your change was not saved.",
  action: (action: string, text: string): string => `${action}: ${text.slice(0, 40)}`,
  attachments: (count: number): string => plural(count, "file"),
};
