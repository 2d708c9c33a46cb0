/** The button that unfolds what stands below it. */

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

export function Disclosure({ open, children }: { open: Signal<boolean>; children: ComponentChildren }) {
  return (
    <button
      type="button"
      class="disclosure"
      aria-expanded={open.value}
      onClick={() => {
        open.value = !open.value;
      }}
    >
      <span class="disclosure-chevron" aria-hidden="true">
        ›
      </span>
      {children}
    </button>
  );
}
