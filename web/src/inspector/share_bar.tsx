/** A name, a bar and a number. */

interface Props {
  name: string;
  /** How much of the bar is filled, from 0 to 1. */
  part: number;
  number: string;
  kind?: string;
}

export function ShareBar({ name, part, number, kind = "" }: Props) {
  return (
    <div class="share-bar">
      <span>{name}</span>
      <span class={kind ? `share-bar-track is-${kind}` : "share-bar-track"} aria-hidden="true">
        <i style={{ width: `${Math.min(1, Math.max(0, part)) * 100}%` }} />
      </span>
      <span class="share-bar-amount">{number}</span>
    </div>
  );
}
