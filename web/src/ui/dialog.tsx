/** A modal dialog: the browser's own, which keeps the focus inside and closes on Escape. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  kind?: string;
}

function giveBack(before: Element | null): void {
  const nobody = document.activeElement === null || document.activeElement === document.body;
  if (nobody && before instanceof HTMLElement && before.isConnected) before.focus();
}

export function Dialog({ title, onClose, children, kind = "" }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  // At once: what is typed next is meant for it.
  useLayoutEffect(() => {
    const dialog = ref.current!;
    const before = document.activeElement;
    dialog.showModal();
    // It leaves the screen with its element. Chromium gives the focus back when a dialog is closed,
    // but to a field that takes no keys if the dialog is gone right then: so it is given back after that.
    return () => queueMicrotask(() => giveBack(before));
  }, []);
  return (
    <dialog
      ref={ref}
      class={kind ? `dialog ${kind}` : "dialog"}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      {children}
    </dialog>
  );
}
