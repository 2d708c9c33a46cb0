/** Which keys there are. On a touch screen, Enter makes a new line in every field for long texts, and a button sends. */

export const hasKeyboard = (): boolean => matchMedia("(hover: hover)").matches;

/** Whether this key sends or saves what is typed in a field for long texts. */
export function isSubmitKey(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return false;
  return event.ctrlKey || event.metaKey || hasKeyboard();
}
