/** Commands that a person finds by their names, beside what was said in sessions. Pure. */

const MOST_COMMANDS = 8;

/** Something to do, by its name. */
export interface PaletteCommand {
  readonly name: string;
  readonly keys?: string;
  readonly run: () => void;
}

/** Every word has to begin a word of the name; with nothing typed, the first few. */
export function matchingCommands(commands: readonly PaletteCommand[], words: string): readonly PaletteCommand[] {
  const sought = words.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = commands.filter(({ name }) => {
    const parts = name.toLowerCase().split(/[\s/:]+/);
    return sought.every((word) => parts.some((part) => part.startsWith(word)) || name.startsWith(word));
  });
  return matches.slice(0, MOST_COMMANDS);
}
