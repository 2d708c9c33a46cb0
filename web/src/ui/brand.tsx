/** The name and its sign. */

import { texts } from "../texts";

export function Brand() {
  return (
    <span class="brand">
      <svg
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        stroke-width="1.8"
        stroke-linecap="round"
        aria-hidden="true"
      >
        <path d="M12 3v18M12 7c-5 0-8-1.5-9-4 4-.5 8 .5 9 4Zm0 0c5 0 8-1.5 9-4-4-.5-8 .5-9 4Z" />
        <path d="M8.5 12c2.5 1.5 4.5 1.5 7 3.5M15.5 12c-2.5 1.5-4.5 1.5-7 3.5" />
      </svg>
      {texts.name}
    </span>
  );
}
