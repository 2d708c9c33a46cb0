/** What a server or a tool says in passing, as a sentence of its own. */

/** A name that begins it stays as it is spelt: only a plain word is written large. */
export function sentence(words: string): string {
  const whole = words.replace(/^\p{Ll}+(?=[\s,;’']|$)/u, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return whole === "" || /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}
