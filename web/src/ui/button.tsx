/** A button with a label, and maybe the key that does the same. */

import type { ComponentChildren } from "preact";

interface Props {
  children: ComponentChildren;
  onClick?: () => void;
  kind?: "plain" | "main" | "stop" | "quiet";
  keys?: string;
  /** The key that presses it, for those who hear the page. */
  shortcut?: string;
  label?: string;
  disabled?: boolean;
  /** What it does is under way: it does nothing else, but keeps the focus, which a disabled one loses. */
  busy?: boolean;
  type?: "button" | "submit";
  pressed?: boolean;
  title?: string;
  /** The id of what says more about it. */
  describedBy?: string;
}

export function Button(props: Props) {
  const { children, onClick, kind = "plain", keys, label, disabled, busy = false, shortcut } = props;
  const { type = "button", pressed, title, describedBy } = props;
  return (
    <button
      type={type}
      class={kind === "quiet" ? "button-quiet" : `button is-${kind}`}
      onClick={busy ? undefined : onClick}
      disabled={disabled}
      aria-disabled={busy || undefined}
      aria-label={label}
      aria-keyshortcuts={shortcut}
      aria-pressed={pressed}
      title={title}
      aria-describedby={describedBy}
    >
      {children}
      {keys === undefined ? null : <kbd aria-hidden="true">{keys}</kbd>}
    </button>
  );
}
